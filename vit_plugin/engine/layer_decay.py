"""Learning rates that shrink towards the image, for a backbone in any host."""

from typing import Any

from mmengine.logging import print_log
from mmengine.optim import DefaultOptimWrapperConstructor
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.registry import OPTIM_WRAPPER_CONSTRUCTORS


@OPTIM_WRAPPER_CONSTRUCTORS.register_module()
class LayerDecayOptimWrapperConstructor(DefaultOptimWrapperConstructor):
    """MMEngine's constructor with layer-wise decay of the learning rate (arXiv:2106.08254, Section 3.2).

    A parameter of depth k of n has the learning rate times ``layer_decay_rate ** (n - 1 - k)``. The depths are the
    backbone's own, by its ``get_layer_depth(name)``; what is outside of a backbone has the whole rate. The parameters
    that a module names in ``no_weight_decay()`` have no weight decay. Parameters with the same settings share a group.
    A schedule that sets the rate of all groups by itself, as OneCycleLR does, undoes the decay.

    Args:
        optim_wrapper_cfg: config of the optimizer wrapper and its optimizer.
        paramwise_cfg: ``layer_decay_rate``, above 0 and at most 1, and any of MMEngine's options
            (``norm_decay_mult``, ``bias_decay_mult``, ``flat_decay_mult``, ``custom_keys``, ...), which multiply.

    Raises:
        ConfigError: without a ``layer_decay_rate`` or an ``lr``, or when no part of the model tells depths.
    """

    def __init__(self, optim_wrapper_cfg: dict[str, Any], paramwise_cfg: dict[str, Any] | None = None) -> None:
        super().__init__(optim_wrapper_cfg, paramwise_cfg)
        self.rate = self.paramwise_cfg.get('layer_decay_rate')
        if self.base_lr is None:
            raise ConfigError('optim_wrapper: layer-wise decay needs optimizer=dict(lr=...).')
        if not isinstance(self.rate, (int, float)) or not 0 < self.rate <= 1:
            raise ConfigError('optim_wrapper: layer-wise decay needs paramwise_cfg=dict(layer_decay_rate=...) above 0 '
                              f'and at most 1, got {self.rate!r}.')

    def add_params(self, params: list[dict], module: nn.Module, prefix: str = '', **kwargs: Any) -> None:
        """Append the groups of the module's trainable parameters to ``params``."""
        super().add_params(params, module, prefix, **kwargs)  # which calls this for every child
        if not prefix:
            params[:] = self._grouped(params, module)

    def _grouped(self, singles: list[dict], model: nn.Module) -> list[dict]:
        """Groups of one parameter each -> groups of equal settings."""
        names = {parameter: name for name, parameter in model.named_parameters()}
        scales, undecayed = self._scales(model), self._undecayed(model)
        groups: dict[tuple, dict] = {}
        for single in singles:
            (parameter, ) = single.pop('params')
            name = names[parameter]
            settings = {'lr': self.base_lr, **single}
            if self.base_wd is not None:
                settings.setdefault('weight_decay', self.base_wd)
            settings['lr'] *= scales.get(name, 1.)
            if name in undecayed:
                settings['weight_decay'] = 0.
            group = groups.setdefault(tuple(sorted(settings.items())), {**settings, 'params': []})
            group['params'].append(parameter)
        ordered = sorted(groups.values(), key=lambda group: (group['lr'], group.get('weight_decay', 0.)))
        print_log('\n'.join(['Groups of parameters:', *(
            f'lr {group["lr"]:.4g}, weight decay {group.get("weight_decay", "default")}: '
            f'{len(group["params"])} tensors, {sum(parameter.numel() for parameter in group["params"]):,} numbers'
            for group in ordered)]), 'current')
        return ordered

    def _scales(self, model: nn.Module) -> dict[str, float]:
        """The factor of every parameter of a backbone, by its name in the model."""
        telling = {name: module for name, module in model.named_modules() if hasattr(module, 'get_layer_depth')}
        # A classifier or detector may pass the question on, so it is put to the innermost that answers.
        backbones = {name: module for name, module in telling.items()
                     if not any(other != name and other.startswith(f'{name}.' if name else '') for other in telling)}
        if not backbones:
            raise ConfigError(f'optim_wrapper: no part of {type(model).__name__} has get_layer_depth, so that there is '
                              'no layer-wise decay for it; take a vit_plugin.VisionTransformer as the backbone.')
        scales = {}
        for prefix, backbone in backbones.items():
            for name, _ in backbone.named_parameters():
                depth, num_depths = backbone.get_layer_depth(name)
                scales[f'{prefix}.{name}' if prefix else name] = self.rate ** (num_depths - 1 - depth)
        return scales

    @staticmethod
    def _undecayed(model: nn.Module) -> set[str]:
        return {f'{prefix}.{name}' if prefix else name for prefix, module in model.named_modules()
                if hasattr(module, 'no_weight_decay') for name in module.no_weight_decay()}
