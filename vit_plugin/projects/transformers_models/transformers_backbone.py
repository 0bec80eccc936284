"""Any transformers model with feature maps or a pooled vector, computed by transformers."""

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import torch
from mmengine.logging import print_log
from safetensors.torch import load_file
from torch import Tensor, nn

from vit_plugin.arguments.fields import FrozenStages, Indices, InitConfig
from vit_plugin.errors import ConfigError, rejecting
from vit_plugin.models.backbones.layered import frozen_modules, read_frozen_stages
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.models.layers.map_sizes import find_size_mismatch
from vit_plugin.registry import MODELS
from vit_plugin.weights.hub import HUB_CONFIG, HUB_WEIGHTS
from vit_plugin.weights.opening import Source, read_source
from vit_plugin.weights.report import Report, shortened_list

from .backbone_config import backbone_config
from .pooled_model import (
    build_pooled_model,
    build_with_classifier,
    last_map,
    output_to_map,
    pooled_vectors,
)

PROBE_SIDE = 256  # image side in pixels to probe a model whose config has no size
MAP_NORMS_PREFIX = 'hidden_states_norms.'  # norms of maps, which only backbone classes have
# Last names of the modules that hold the stages of a model, and the layers of a stage.
STAGE_LISTS, LAYER_LISTS = ('stages', 'layers', 'blocks', 'layer', 'block'), ('layers', 'blocks')


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
        self.num_layers = len(_find_stages(self.model)[1])
        self.depths = _find_depths(self.model)
        if with_cp:
            self.recompute(True)
        self.frozen = self._freeze(frozen_stages)
        has_maps = out_type != 'pooled'
        if has_maps and (other_strides := find_size_mismatch(self, self.strides, self.in_channels)):
            print_log(
                f'TransformersBackbone {self.model_type} returns {other_strides}: take another '
                'model for boxes and masks.',
                'current',
                logging.WARNING,
            )

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
        model = build_with_classifier(self.model, weight, bias)
        with TemporaryDirectory() as folder, _quiet():
            model.save_pretrained(folder, max_shard_size='1TB')
            config = json.loads(Path(folder, HUB_CONFIG).read_text(encoding='utf-8'))
            return config, load_file(Path(folder, HUB_WEIGHTS))

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
        _, loaded = read_source(source)
        weights = _strip_prefixes(loaded, self.model.base_model_prefix)
        with _quiet():
            built, loading_info = type(self.model).from_pretrained(
                None,
                config=self.model.config,
                state_dict=weights,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
            )
        state = self.model.state_dict()  # without a classifier
        unusable = [
            name for name in loading_info['missing_keys'] if not name.startswith(MAP_NORMS_PREFIX)
        ]
        unusable += [key for key, *_ in loading_info['mismatched_keys']]
        if unusable := [name for name in unusable if name in state]:
            raise ConfigError(
                f'The checkpoint does not fit TransformersBackbone {self.model_type!r}: '
                f'{shortened_list(unusable)} are missing or of another shape; give the weights of '
                'this model, under the names of transformers.'
            )
        values = built.state_dict()
        self.model.load_state_dict({name: values[name] for name in state})
        initialized = {
            name: 'the checkpoint lacks it'
            for name in loading_info['missing_keys']
            if name in state
        }
        matched = {name: (name,) for name in state if name not in initialized}
        return Report(
            'transformers',
            matched={f'model.{name}': keys for name, keys in matched.items()},
            initialized={f'model.{name}': why for name, why in initialized.items()},
        )

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
        list_name, stages = _find_stages(self.model)
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


@contextmanager
def _quiet() -> Iterator[None]:
    """Within this context, transformers shows no progress bars and no loading reports."""
    from transformers.utils import logging as hf_logging

    level, has_bars = hf_logging.get_verbosity(), hf_logging.is_progress_bar_enabled()
    hf_logging.set_verbosity_error()
    hf_logging.disable_progress_bar()
    try:
        yield
    finally:
        hf_logging.set_verbosity(level)
        if has_bars:
            hf_logging.enable_progress_bar()


def _strip_prefixes(weights: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """Strip our prefixes, ``backbone.model.`` or ``model.``, from transformers' names.

    Args:
        weights: the weights.
        prefix: transformers' name of the encoder within a classifier, which stays.
    """
    names = {key: key for key in weights}
    for start in ('backbone.model.', 'model.'):
        is_own_prefix = start == f'{prefix}.'
        inside = {key.removeprefix(start): key for key in weights if key.startswith(start)}
        # `model.` can also be a component of a transformers model, unless all names begin with it.
        if inside and not is_own_prefix and (start != 'model.' or len(inside) == len(names)):
            names = inside
            break
    return {name: weights[key] for name, key in names.items()}


def _find_stages(model: nn.Module) -> tuple[str, nn.ModuleList]:
    """The name and the list of the stages, or of the blocks of an encoder of one width."""
    for name, module in model.named_modules():
        if isinstance(module, nn.ModuleList) and name.rpartition('.')[2] in STAGE_LISTS:
            return name, module
    raise ConfigError('TransformersBackbone: this model has no list of stages; take another.')


def find_layers(model: nn.Module) -> Mapping[str, nn.Module]:
    """The layers of all stages in order, by their names."""
    list_name, stages = _find_stages(model)
    layers_by_name: dict[str, nn.Module] = {}
    for i, stage in enumerate(stages):
        lists = [
            (name, module)
            for name, module in stage.named_modules()
            if name.rpartition('.')[2] in LAYER_LISTS
            and isinstance(module, (nn.ModuleList, nn.Sequential))
        ]
        if not lists:
            layers_by_name[f'{list_name}.{i}'] = stage  # the block of an encoder of one width
            continue
        inner, layers = lists[0]
        layers_by_name |= {
            f'{list_name}.{i}.{inner}.{name}': layer for name, layer in layers.named_children()
        }
    return layers_by_name


def _find_depths(model: nn.Module) -> dict[str, int]:
    """The depth of each parameter: 0 before the layers, from 1 within, and the last one after."""
    layers = {name: number for number, name in enumerate(find_layers(model), 1)}
    list_name, _ = _find_stages(model)
    depths: dict[str, int] = {}
    current = 0  # depth of the last layer so far; parameters are in the order of the modules
    for name, _ in model.named_parameters():
        inside = [number for layer, number in layers.items() if name.startswith(f'{layer}.')]
        if inside:
            current = inside[0]
        is_after = current > 0 and not name.startswith(f'{list_name}.')
        depths[name] = len(layers) + 1 if is_after else current
    return depths
