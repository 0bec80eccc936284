"""Any timm model with feature maps or a pooled vector, as a backbone computed by timm."""

from collections.abc import Sequence
from typing import Any, Literal

from timm.models import group_parameters
from torch import Tensor, nn

from vit_plugin.arguments.fields import (
    FrozenStages,
    Indices,
    InitConfig,
    PositiveInt,
    Rate,
    Size,
)
from vit_plugin.errors import ConfigError
from vit_plugin.models.backbones.layered import frozen_modules, read_frozen_stages
from vit_plugin.models.backbones.wrapped import WrappedBackbone
from vit_plugin.models.loading.value_checks import check_finite
from vit_plugin.models.timm_weights import fit_timm
from vit_plugin.registry import MODELS
from vit_plugin.weights.opening import Source, read_source
from vit_plugin.weights.report import Report
from vit_plugin.zoo.feature_maps import (
    build_timm,
    feature_infos,
    feature_modules,
    find_classifier,
    supports_final_norm,
)

# Entries of timm's `pretrained_cfg` about the model, not about preprocessing or weights.
PRETRAINED_CFG_KEYS = ('fixed_input_size', 'pool_size', 'first_conv', 'classifier')


@MODELS.register_module()
class TimmBackbone(WrappedBackbone):
    """A timm model, computed by timm's own module.

    For models that :class:`~vit_plugin.models.VisionTransformer` does not compute: CNNs, encoders
    with several stages, and plain Vision Transformers with other blocks. The parameters have timm's
    names, after ``model.``.

    Args:
        model_name: timm's name of the model, such as ``'convnext_tiny'``. It may have the tag of
            its weights after a dot, and ``timm://`` before it.
        out_indices: the features to return, as in timm's ``features_only``: the blocks of a plain
            ViT, the stages of other models. Negative numbers count from the last one.
        out_type: ``'featmap'`` returns a map (B, C, h, w) for each of ``out_indices``.
            ``'pyramid'`` also returns, before those, the last map of every finer stride.
            ``'pooled'`` returns only the vector (B, C), the input of timm's classifier.
        img_size: size of the images in pixels. Only models that take one size need it. Default:
            timm's.
        in_channels: channels of the images.
        drop_rate, drop_path_rate: arguments of timm's model. 0 leaves timm's defaults.
        frozen_stages: -1 freezes nothing. 0 freezes the stem. k > 0 also freezes the first k stages
            of timm's coarse ``group_matcher``, the blocks of a plain ViT. ``'all'`` freezes the
            model. Frozen parts stay in eval mode.
        with_cp: activation checkpointing, which recomputes activations to save memory.
        init_cfg: MMEngine's initialization config. ``dict(type='Pretrained', checkpoint=True)``
            loads timm's weights of this name. Any other checkpoint must have timm's names or ours.

    Attributes:
        img_size: height and width of the images in pixels, by default those of timm's weights.
        channels: channels of each output.
        strides: pixels per element of each output map, as timm states them. If the maps have
            others, a warning is logged.

    Raises:
        ConfigError: if timm has no such model, or if the model does not return feature maps or does
            not take an option.
    """

    # Overrides attributes of WrappedBackbone, which describes them.
    library = 'timm'
    renamed_arguments = {'name': 'model_name=...'}

    def __init__(
        self,
        model_name: str,
        out_indices: int | Indices = -1,
        out_type: Literal['featmap', 'pyramid', 'pooled'] = 'featmap',
        img_size: Size | None = None,
        in_channels: PositiveInt = 3,
        drop_rate: Rate = 0.0,
        drop_path_rate: Rate = 0.0,
        frozen_stages: FrozenStages = -1,
        with_cp: bool = False,
        init_cfg: InitConfig = None,
    ) -> None:
        self.model_name = model_name.removeprefix('timm://')
        self.out_type, self.in_channels = out_type, in_channels
        super().__init__(init_cfg, f'timm://{self.model_name}')
        size = img_size if img_size is None or isinstance(img_size, int) else tuple(img_size)
        drops = dict(drop_rate=drop_rate, drop_path_rate=drop_path_rate)
        options = dict(drops, in_chans=in_channels, img_size=size)
        # Without 0 and None, timm's defaults apply.
        arguments = {key: value for key, value in options.items() if value}
        if out_type == 'pooled':
            self.model, width = _build_without_classifier(self.model_name, arguments)
        else:
            self.model = build_timm(self.model_name, num_classes=0, **arguments)
        native = self.model.pretrained_cfg['input_size'][-2:]
        self.img_size = (size, size) if isinstance(size, int) else size or native
        # MMEngine would initialize again what timm's constructor has initialized.
        self.model.is_init = True
        self.infos = feature_infos(self.model)
        self.num_layers = len(self.infos)
        self.indices = self._output_indices(out_indices)
        self.applies_final_norm = supports_final_norm(self.model)
        self.channels, self.strides = (
            tuple(self.infos[i][key] for i in self.indices) for key in ('num_chs', 'reduction')
        )
        # Before pruning, so that the depths are those of the entire model.
        self.depths = self._depths(coarse=False) if hasattr(self.model, 'group_matcher') else {}
        if out_type == 'pooled':
            self.channels = (width,)
        else:
            self.model.prune_intermediate_layers([*self.indices], prune_norm=False, prune_head=True)
        if with_cp:
            self.recompute(True)
        self.frozen = self._freeze(frozen_stages)
        self.warn_of_other_strides(self.model_name)

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        """Images (B, in_channels, H, W) -> the maps (B, C, h, w), or the pooled vector (B, C).

        The maps are normed by the model's final norm, if timm supports that.
        """
        if self.out_type == 'pooled':
            return (self.model(images),)
        maps = self.model.forward_intermediates(
            images,
            indices=list(self.indices),
            norm=self.applies_final_norm,
            output_fmt='NCHW',
            intermediates_only=True,
        )
        return tuple(feature_map.contiguous() for feature_map in maps)

    def vector_and_map(self, images: Tensor) -> tuple[Tensor, Tensor | None]:
        features, maps = self.model.forward_intermediates(
            images,
            indices=1,  # a number asks timm for that many of the last features
            norm=self.applies_final_norm,
            output_fmt='NCHW',
        )
        return self.model.forward_head(features), maps[-1]

    def with_classifier(
        self, weight: Tensor, bias: Tensor
    ) -> tuple[dict[str, Any], dict[str, Tensor]]:
        pretrained_cfg: Any = self.model.pretrained_cfg
        name = pretrained_cfg['classifier']
        options: dict[str, Any] = {}
        if self.in_channels != pretrained_cfg['input_size'][0]:
            options['in_chans'] = self.in_channels
        if self.img_size != tuple(pretrained_cfg['input_size'][1:]):
            options['img_size'] = list(self.img_size)
        # The `config.json` by which timm builds a model of the hub.
        config = dict(
            architecture=pretrained_cfg['architecture'],
            num_features=self.embed_dims,
            model_args=options,
            pretrained_cfg={key: pretrained_cfg.get(key) for key in PRETRAINED_CFG_KEYS},
        )
        head = {f'{name}.weight': weight, f'{name}.bias': bias}
        return config, {**self.model.state_dict(), **head}

    def no_weight_decay(self) -> set[str]:
        """Names of the parameters without weight decay, from timm's model.

        timm does not list norms or biases.
        """
        exempt: set[str] = getattr(self.model, 'no_weight_decay', set)()  # CNNs have no such method
        return {f'model.{name}' for name, _ in self.model.named_parameters() if name in exempt}

    def get_layer_depth(self, param_name: str, prefix: str = '') -> tuple[int, int]:
        """Depth of a parameter and number of depths for layer-wise decay, by timm's groups.

        Parameters outside the backbone have the largest depth. The final norm has the depth of the
        complete model's last block, as in timm, even if that block is not used; in
        :class:`~vit_plugin.models.VisionTransformer` it is one deeper.

        Args:
            param_name: full name of the parameter.
            prefix: prefix of the backbone's own names, such as ``'backbone.'``.

        Raises:
            ConfigError: if timm's model has no ``group_matcher``.
        """
        if not self.depths:
            raise self._no_depths_error('take another model, or no layer-wise decay')
        last = max(self.depths.values()) + 1
        return self.depths.get(param_name.removeprefix(f'{prefix}model.'), last), last + 1

    def parts_to_shard(self) -> list[nn.Module]:
        """The modules that sharding gathers one at a time: those timm lists as feature outputs."""
        return feature_modules(self.model)

    def load(
        self,
        source: Source,
        skip: Sequence[str] = (),
        source_grid: tuple[int, int] | None = None,
    ) -> Report:
        """Load a checkpoint with timm's names or ours, see :func:`~.timm_weights.fit_timm`.

        The classifier and the modules that timm pruned are skipped.

        Raises:
            ConfigError: if a tensor of the model is missing, has another shape, or is infinite or
                NaN, or if timm's model lacks one of the checkpoint. The model is then unchanged.
        """
        if skip or source_grid:
            raise ConfigError(
                'TimmBackbone takes no skip or source_grid for its weights; leave them out.'
            )
        origin, weights = read_source(source)
        fitted, report = fit_timm(self.model, self.model_name, weights)
        check_finite(fitted.items(), origin)
        self.model.load_state_dict(fitted)
        return report.with_prefix('model.')

    def _output_indices(self, out_indices: int | Sequence[int]) -> tuple[int, ...]:
        """The indices of the features to return, from 0 and sorted."""
        num_features = len(self.infos)
        if self.out_type == 'pooled' and out_indices != -1:
            raise ConfigError(
                f"TimmBackbone: out_indices={out_indices} select maps, but out_type='pooled' "
                'returns a vector; leave them out.'
            )
        indices = self.check_out_indices(
            out_indices, num_features, f'{self.model_name} has {num_features} features'
        )
        if self.out_type == 'pyramid':
            last_of_stride = {info['reduction']: i for i, info in enumerate(self.infos)}
            finest = min(self.infos[i]['reduction'] for i in indices)
            indices |= {i for stride, i in last_of_stride.items() if stride < finest}
        return tuple(sorted(indices))

    def _depths(self, coarse: bool) -> dict[str, int]:
        """The depth of each parameter, by timm's stages if ``coarse``, else by finer groups."""
        return group_parameters(self.model, self.model.group_matcher(coarse=coarse), reverse=True)

    def _no_depths_error(self, remedy: str) -> ConfigError:
        return ConfigError(
            f'TimmBackbone: timm does not know the depths of the parameters of {self.model_name} '
            f'(group_matcher); {remedy}.'
        )

    def _freeze(self, frozen_stages: int | str) -> tuple[str, ...]:
        """Freeze the first stages and return the names of the modules that are fully frozen."""
        if frozen_stages == -1:
            return ()
        try:
            depths = self._depths(coarse=True)
        except (AttributeError, AssertionError) as error:
            raise self._no_depths_error('set frozen_stages=-1') from error
        num_stages = max(depths.values())
        num_frozen = read_frozen_stages(frozen_stages, num_stages, self.model_name)
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad = depths[name] > num_frozen
        return frozen_modules(self)

    def recompute(self, with_cp: bool) -> None:
        try:
            self.model.set_grad_checkpointing(with_cp)
        except (AssertionError, AttributeError) as error:
            raise ConfigError(
                f'TimmBackbone: timm cannot recompute the activations of {self.model_name}; set '
                'with_cp=False.'
            ) from error


def _build_without_classifier(name: str, arguments: dict[str, Any]) -> tuple[Any, int]:
    """timm's model with the identity as its classifier, and the width of what that returns."""
    model = build_timm(name, **arguments)
    classifier = find_classifier(model, name)
    width = model.get_submodule(classifier).in_features
    model.set_submodule(classifier, nn.Identity())
    return model, width
