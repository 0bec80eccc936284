"""Any transformers model with feature maps or a pooled vector, computed by transformers."""

from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vit_plugin.arguments.fields import FrozenStages, Indices, InitConfig
from vit_plugin.errors import ConfigError, rejecting
from vit_plugin.models.backbones.layered import frozen_modules, read_frozen_stages
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.registry import MODELS
from vit_plugin.weights.opening import Source, read_source
from vit_plugin.weights.report import Report

from .backbone_config import backbone_config
from .backbone_weights import load_backbone_weights, saved_files
from .layer_depths import find_depths, find_layers, find_stages
from .pooled_model import (
    build_pooled_model,
    build_with_classifier,
    last_map,
    output_to_map,
    pooled_vectors,
)

PROBE_SIDE = 256  # image side in pixels to probe a model whose config has no size


@MODELS.register_module()
class TransformersBackbone(WrappedBackbone):
    """A backbone of transformers, computed by transformers' own module.

    For models that :class:`~vit_plugin.models.VisionTransformer` does not compute, such as Swin,
    ConvNeXt and Hiera. The parameters have transformers' names, after ``model.``. Nothing
    that a config names is downloaded or run.

    Args:
        config: the entries of a ``config.json`` with its ``model_type``, a folder, or
            ``hf://ORG/NAME``. Only with entries is a checkpoint self-contained.
        out_indices: the stages whose maps are returned, from 0, without the stem: the blocks of an
            encoder of one width. Negative numbers count from the last one.
        out_type: ``'featmap'`` returns the maps of ``out_indices``. ``'pyramid'`` first returns the
            last map of each finer stride. ``'pooled'`` returns only a vector (B, C): the input of
            the classifier in transformers' own class, or else its ``pooler_output``.
        frozen_stages: -1 freezes nothing. 0 freezes everything before the stages. k > 0 also
            freezes the first k of them. ``'all'`` freezes the model. Frozen parts stay in eval
            mode.
        with_cp: activation checkpointing, which recomputes activations to save memory.
        init_cfg: MMEngine's initialization config. It can load any transformers model with this
            backbone.

    Attributes:
        img_size: height and width of the images in pixels, by the config.
        channels: channels of each output, measured on the meta device.
        strides: pixels per element of each output map, measured likewise; for a vector, the longer
            side of the image.

    Raises:
        ConfigError: if the config is not that of a backbone, if a stage does not exist, if a stride
            is not an integer, or if the model does not support an option.
    """

    # Overrides attributes of WrappedBackbone, which describes them.
    library = 'hf'
    renamed_arguments = {'model_name': 'config=...'}

    def __init__(
        self,
        config: str | dict[str, Any],
        out_indices: int | Indices = -1,
        out_type: Literal['featmap', 'pyramid', 'pooled'] = 'featmap',
        frozen_stages: FrozenStages = -1,
        with_cp: bool = False,
        init_cfg: InitConfig = None,
    ) -> None:
        super().__init__(init_cfg)
        model_config = backbone_config(config, pooled=out_type == 'pooled')
        self.out_type, self.model_config = out_type, model_config
        self.model_type = model_config.model_type
        self.in_channels = getattr(model_config, 'num_channels', 3)
        size = getattr(model_config, 'image_size', None) or PROBE_SIDE
        self.img_size = (size, size) if isinstance(size, int) else tuple(size)
        if out_type != 'pooled':
            self._choose_stages(model_config, out_indices)
        elif out_indices != -1:
            raise ConfigError(
                f'TransformersBackbone: out_indices={out_indices} select maps, but '
                "out_type='pooled' returns a vector; leave them out."
            )
        self.model = self._build(model_config)
        # transformers' constructor has initialized the model, and MMEngine would do so again.
        self.model.is_init = True
        self.channels, self.strides = self._measure(model_config)
        self.num_layers = len(find_stages(self.model)[1])
        self.depths = find_depths(self.model)
        if with_cp:
            self.recompute(True)
        self.frozen = self._freeze(frozen_stages)
        self.warn_of_other_strides(self.model_type)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> the maps (B, C, h, w) or the vector (B, C)."""
        outputs = self.model(images)
        if self.out_type == 'pooled':
            return (pooled_vectors(outputs),)
        return tuple(feature_map.contiguous() for feature_map in self._maps(outputs, images))

    def vector_and_map(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        outputs = self.model(images, output_hidden_states=True)
        return pooled_vectors(outputs), last_map(outputs, images, self.model.config)

    def with_classifier(
        self, weight: Tensor, bias: Tensor
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        return saved_files(build_with_classifier(self.model, weight, bias))

    def no_weight_decay(self) -> set[str]:
        """Names of positions and tokens. transformers lists neither these nor norms and biases."""
        return {
            f'model.{name}'
            for name, _ in self.model.named_parameters()
            if 'position' in name or name.endswith('_token')
        }

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of depths for layer-wise decay, by transformers' layers.

        Parameters between two layers have the depth of the first. Those after all layers, and
        outside the backbone, are last.

        Args:
            param_name: full name of the parameter.
            prefix: prefix of the backbone's own names, such as ``'backbone.'``.
        """
        last = len(find_layers(self.model)) + 1
        return self.depths.get(param_name.removeprefix(f'{prefix}model.'), last), last + 1

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time: transformers' layers."""
        return [*find_layers(self.model).values()]

    def load(
        self,
        source: Source,
        skip: Sequence[str] = (),
        source_grid: tuple[int, int] | None = None,
    ) -> Report:
        """Load any transformers model with this backbone, by transformers' own renaming.

        Heads are skipped. Norms of feature maps are newly initialized if the weights lack them.

        Raises:
            ConfigError: if a tensor of the backbone is missing or has another shape. The model is
                then unchanged.
        """
        if skip or source_grid:
            raise ConfigError(
                'TransformersBackbone takes no skip or source_grid for its weights; leave them out.'
            )
        _, weights = read_source(source)
        return load_backbone_weights(self.model, weights)

    def _choose_stages(self, config: Any, out_indices: int | Sequence[int]) -> None:
        """Set ``self.indices`` and, in the config, the stages to return.

        A pyramid needs the strides, so the model is measured with all stages first.
        """
        names = [name for name in config.stage_names if name != 'stem']
        indices = self.check_out_indices(out_indices, len(names), f'it has {len(names)} stages')
        if self.out_type == 'pyramid':
            config.out_features = names
            _, strides = self._measure(config)
            finest = min(strides[i] for i in indices)
            last_of_stride = {stride: i for i, stride in enumerate(strides)}
            indices |= {i for stride, i in last_of_stride.items() if stride < finest}
        self.indices = tuple(sorted(indices))
        config.out_features = [names[i] for i in self.indices]

    def _build(self, config: Any) -> nn.Module:
        """transformers' module with random weights."""
        from transformers import AutoBackbone

        if self.out_type == 'pooled':
            return build_pooled_model(config)
        return AutoBackbone.from_config(config)

    def _measure(self, config: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Measure channels and strides of the outputs on the meta device, at no cost.

        Raises:
            ConfigError: if the model does not take images of its size, or returns no maps with a
                stride.
        """
        with torch.device('meta'):
            built = self._build(config).eval()
        # BEiT's code creates an index tensor that needs values.
        with torch.device('cpu'), torch.no_grad():
            image = torch.empty(1, self.in_channels, *self.img_size, device='meta')
            height, width = self.img_size
            with rejecting(
                f'TransformersBackbone: {self.model_type} does not take images of '
                f'{height} x {width} pixels',
                'give a config with another image_size',
                (RuntimeError,),
            ):
                outputs = built(image)
        if self.out_type == 'pooled':
            return (pooled_vectors(outputs).shape[1],), (max(self.img_size),)
        maps = self._maps(outputs, image)
        strides = []
        for feature_map in maps:
            if feature_map.ndim != 4 or any(
                side % length
                for side, length in zip(self.img_size, feature_map.shape[2:], strict=True)
            ):
                raise ConfigError(
                    f'TransformersBackbone: {self.model_type} returns {tuple(feature_map.shape)} '
                    f'for an image of {self.img_size[0]} x {self.img_size[1]}, which is not a map '
                    'with a stride; '
                    'take another model, or an image_size of whole patches.'
                )
            strides.append(self.img_size[0] // feature_map.shape[2])
        return tuple(feature_map.shape[1] for feature_map in maps), tuple(strides)

    def _maps(self, outputs: Any, images: Tensor) -> list[Tensor]:
        """The maps in outputs. VitPose returns tokens, which become maps.

        An output that is neither is returned as it is, and rejected by :meth:`_measure`.
        """
        maps = [output_to_map(output, images, self.model_config) for output in outputs.feature_maps]
        pairs = zip(maps, outputs.feature_maps, strict=True)
        return [output if feature_map is None else feature_map for feature_map, output in pairs]

    def _freeze(self, frozen_stages: int | str) -> tuple[str, ...]:
        """Freeze the first stages and return the names of the modules that are fully frozen."""
        if frozen_stages == -1:
            return ()
        list_name, stages = find_stages(self.model)
        num_frozen = read_frozen_stages(frozen_stages, len(stages), self.model_type)
        # Parameters are in the order of the modules: stem, stages, and what follows.
        is_stem = True
        for name, parameter in self.model.named_parameters():
            if name.startswith(f'{list_name}.'):
                is_stem = False
                stage = int(name.removeprefix(f'{list_name}.').partition('.')[0])
                is_frozen = stage < num_frozen
            else:
                is_frozen = is_stem
            parameter.requires_grad = not (is_frozen or frozen_stages == 'all')
        return frozen_modules(self)

    def recompute(self, with_cp: bool) -> None:
        if not with_cp:
            return self.model.gradient_checkpointing_disable()
        try:
            self.model.gradient_checkpointing_enable()
        except ValueError as error:
            raise ConfigError(
                f'TransformersBackbone: transformers cannot recompute the activations of '
                f'{self.model_type}; set with_cp=False.'
            ) from error
