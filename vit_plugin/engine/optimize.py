"""The passes as one line of a config."""

from collections.abc import Mapping
from typing import Literal

from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.passes import optimize, restore
from vit_plugin.registry import HOOKS

HOOK = 'vit_plugin.OptimizeHook'


@HOOKS.register_module()
class OptimizeHook(Hook):
    """Applies :func:`vit_plugin.passes.optimize` before training, validation and test, and undoes it afterwards.

    Args:
        linear: see :func:`vit_plugin.passes.optimize`.
    """

    def __init__(self, linear: Literal['auto', 'onednn', 'torch'] = 'auto') -> None:
        self.linear = linear
        self._trains = False

    def before_train(self, runner: Runner) -> None:
        self._trains = True
        optimize(runner.model, training=True, linear=self.linear)

    def after_train(self, runner: Runner) -> None:
        self._trains = False
        restore(runner.model)

    def before_val(self, runner: Runner) -> None:
        if not self._trains:  # in training, the weights are about to change
            optimize(runner.model, training=False, linear=self.linear)

    def after_val(self, runner: Runner) -> None:
        if not self._trains:
            restore(runner.model)

    before_test, after_test = before_val, after_val


def use_passes(cfg: Config) -> None:
    """Add an :class:`OptimizeHook` to a config, unless it has one or sets ``optimize=False``."""
    hooks = cfg.get('custom_hooks') or []
    if cfg.get('optimize', True) and not any(
            isinstance(hook, Mapping) and hook.get('type') in (HOOK, OptimizeHook) for hook in hooks):
        cfg.custom_hooks = [*hooks, dict(type=HOOK)]
