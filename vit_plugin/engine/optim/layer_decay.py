"""Layer-wise learning rate decay: lower rates for layers nearer to the input.

It works for any model with a backbone that knows the depth of its parameters, so for classifiers,
detectors and segmentors alike.
"""

from typing import Annotated, Any

from mmengine.logging import print_log
from mmengine.optim import DefaultOptimWrapperConstructor
from pydantic import Field
from torch import nn
from typing_extensions import Required, TypedDict

from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import NotNegative, OpenDict
from vit_plugin.errors import ConfigError
from vit_plugin.models.protocol import HasLayerDepths, HasNoWeightDecay, innermost
from vit_plugin.registry import OPTIM_WRAPPER_CONSTRUCTORS

DecayRate = Annotated[float, Field(gt=0, le=1)]


class OptimizerConfig(OpenDict, total=False):
    """The optimizer. Its learning rate is required, because the depths scale it."""

    type: Required[str | type]
    lr: Required[NotNegative]
    weight_decay: NotNegative


class WrapperConfig(OpenDict):
    """The optimizer wrapper."""

    optimizer: OptimizerConfig


class ParamwiseConfig(TypedDict, total=False):
    """MMEngine's options for groups of parameters."""

    custom_keys: dict[str, dict]
    bias_lr_mult: NotNegative
    bias_decay_mult: NotNegative
    norm_decay_mult: NotNegative
    flat_decay_mult: NotNegative
    dwconv_decay_mult: NotNegative
    dcn_offset_lr_mult: NotNegative
    bypass_duplicate: bool


class LayerDecayConfig(ParamwiseConfig):
    """MMEngine's options, and the decay rate."""

    layer_decay_rate: DecayRate


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """MMEngine's constructor with layer-wise learning rate decay (arXiv:2106.08254, Section 3.2).

    The learning rate of a parameter of depth k of n is multiplied by
    ``layer_decay_rate ** (n - 1 - k)``. ``get_layer_depth(name)`` of the backbone returns k and n.
    Parameters outside the backbone have the full rate. Parameters that a module names in
    ``no_weight_decay()`` have no weight decay. Parameters with the same settings share a group.

    Some schedules, such as OneCycleLR, set the rate of all groups themselves. They undo the decay.

    Args:
        optim_wrapper_cfg: config of the optimizer wrapper and its optimizer.
        paramwise_cfg: ``layer_decay_rate``, above 0 and at most 1, and any of MMEngine's options
            (``norm_decay_mult``, ``bias_decay_mult``, ``flat_decay_mult``, ``custom_keys``, ...).
            Their factors multiply.

    Raises:
        ConfigError: if no module of the model has depths.
    """

    def __init__(self, optim_wrapper_cfg: WrapperConfig, paramwise_cfg: LayerDecayConfig) -> None:
        with as_config_error('LayerDecayOptimWrapperConstructor'):
            super().__init__(optim_wrapper_cfg, paramwise_cfg)
        self.rate = paramwise_cfg['layer_decay_rate']

    def add_params(
        self, params: list[dict], module: nn.Module, prefix: str = '', **kwargs: Any
    ) -> None:
        """Append the groups of the module's trainable parameters to ``params``."""
        if prefix and not any(parameter.requires_grad for parameter in module.parameters()):
            # `_merge_groups` logs frozen parameters together; the parent would warn about each.
            return
        # The parent's method calls `add_params` for every child, with a prefix.
        super().add_params(params, module, prefix, **kwargs)
        if not prefix:
            params[:] = self._merge_groups(params, module)

    def _merge_groups(self, singles: list[dict], model: nn.Module) -> list[dict]:
        """Apply the decay, merge groups with equal settings, and log the result.

        Args:
            singles: the parent's groups, of one parameter each.
            model: the whole model.

        Returns:
            The merged groups, with the lowest learning rate first.
        """
        names = {parameter: name for name, parameter in model.named_parameters()}
        scales, undecayed = self._find_scales(model), self._names_without_decay(model)
        groups: dict[str, dict] = {}
        for single in singles:
            (parameter,) = single.pop('params')
            name = names[parameter]
            settings = {'lr': self.base_lr, **single}
            if self.base_wd is not None:
                settings.setdefault('weight_decay', self.base_wd)
            settings['lr'] *= scales.get(name, 1.0)
            if name in undecayed:
                settings['weight_decay'] = 0.0
            # Text, since a setting of `custom_keys` may be a list.
            key = repr(sorted(settings.items()))
            group = groups.setdefault(key, {**settings, 'params': []})
            group['params'].append(parameter)
        ordered = sorted(
            groups.values(), key=lambda group: (group['lr'], group.get('weight_decay', 0.0))
        )
        frozen = [parameter for parameter in model.parameters() if not parameter.requires_grad]
        described = [
            (
                f'lr {group["lr"]:.4g}, weight decay {group.get("weight_decay", "default")}',
                group['params'],
            )
            for group in ordered
        ]
        if frozen:
            described.append(('frozen', frozen))
        text = 'Groups of parameters:'
        for title, parameters in described:
            number = sum(parameter.numel() for parameter in parameters)
            text += f'\n{title}: {len(parameters)} tensors, {number:,} parameters'
        print_log(text, 'current')
        return ordered

    def _find_scales(self, model: nn.Module) -> dict[str, float]:
        """The factor for every parameter of a backbone, by its name in the model."""
        # A classifier or detector may delegate to its backbone.
        backbones = innermost(model, HasLayerDepths)
        if not backbones:
            raise ConfigError(
                f'optim_wrapper: no part of {type(model).__name__} has get_layer_depth, which '
                'layer-wise decay needs; use a vit_plugin.VisionTransformer or TimmBackbone as the '
                'backbone.'
            )
        scales = {}
        for prefix, backbone in backbones.items():
            for name, _ in backbone.named_parameters():
                depth, num_depths = backbone.get_layer_depth(name)
                scales[prefix + name] = self.rate ** (num_depths - 1 - depth)
        return scales

    @staticmethod
    def _names_without_decay(model: nn.Module) -> set[str]:
        """The names in the model of the parameters that modules exempt from weight decay."""
        return {
            f'{prefix}.{name}' if prefix else name
            for prefix, module in model.named_modules()
            if isinstance(module, HasNoWeightDecay)
            for name in module.no_weight_decay()
        }
