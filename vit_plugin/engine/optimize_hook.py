"""Apply the inference passes (:mod:`vit_plugin.passes`) during a test, by a line of the config."""

from collections.abc import Mapping

from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.passes import optimize, restore
from vit_plugin.registry import HOOKS

HOOK_TYPE = 'vit_plugin.OptimizeHook'  # how a config names the hook below


@HOOKS.register_module()
class OptimizeHook(Hook):
    """Applies :func:`vit_plugin.passes.optimize` for a test only, and undoes it afterward."""

    def before_test(self, runner: Runner) -> None:
        optimize(runner.model.eval(), frozen=True)  # the loop would switch to eval mode only later

    def after_test(self, runner: Runner) -> None:
        restore(runner.model)


def use_passes(cfg: Config) -> None:
    """Add an :class:`OptimizeHook` to a config, unless it has one or sets ``optimize=False``."""
    hooks = cfg.get('custom_hooks') or []
    if cfg.get('optimize', True) and not any(
        isinstance(hook, Mapping) and hook.get('type') in (HOOK_TYPE, OptimizeHook)
        for hook in hooks
    ):
        cfg.custom_hooks = [*hooks, dict(type=HOOK_TYPE)]
