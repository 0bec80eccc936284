import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from torch import nn

from vit_plugin.engine import OptimizeHook
from vit_plugin.engine.optimize import use_passes
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import StdConv2d
from vit_plugin.passes import onednn
from vit_plugin.passes.fold import Folded


class Part:
    """Of a runner, what the hook asks for."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model


@pytest.fixture
def runner(tiny_hybrid, monkeypatch) -> Part:
    monkeypatch.setattr(onednn, 'MIN_PRODUCTS', 0)
    monkeypatch.setattr(onednn, 'ROWS', 3)
    return Part(VisionTransformer(**tiny_hybrid))


def is_folded(model: nn.Module) -> bool:
    return any(isinstance(module.kernel, Folded) for module in model.modules() if isinstance(module, StdConv2d))


def is_onednn(model: nn.Module) -> bool:
    return any(isinstance(module, onednn.OneDnnLinear) for module in model.modules())


def test_what_learns_is_not_folded_and_all_is_undone(runner):
    hook = OptimizeHook(linear='onednn')
    hook.before_train(runner)
    assert (is_folded(runner.model), is_onednn(runner.model)) == (False, onednn.is_available())
    hook.before_val(runner)
    assert not is_folded(runner.model)
    hook.after_val(runner)
    assert is_onednn(runner.model) == onednn.is_available()
    hook.after_train(runner)
    assert not is_onednn(runner.model)
    hook.before_test(runner)
    assert is_folded(runner.model)
    hook.after_test(runner)
    assert not is_folded(runner.model)


@pytest.mark.parametrize(('cfg', 'count'), [
    (dict(), 1), (dict(custom_hooks=[dict(type='EMAHook')]), 1), (dict(optimize=False), 0),
    (dict(custom_hooks=[dict(type='vit_plugin.OptimizeHook', linear='torch')]), 1)])
def test_our_tools_take_it_unless_told_otherwise(cfg, count):
    cfg = Config(cfg)
    use_passes(cfg)
    hooks = [hook for hook in cfg.get('custom_hooks', []) if hook.type == 'vit_plugin.OptimizeHook']
    assert len(hooks) == count
    assert hooks == [dict(type='vit_plugin.OptimizeHook', linear='torch')] or all(len(hook) == 1 for hook in hooks)


@pytest.mark.filterwarnings('ignore')
def test_in_a_run(digits_config):
    digits_config.train_cfg.max_epochs = 1
    digits_config.param_scheduler = None
    use_passes(digits_config)
    runner = Runner.from_cfg(digits_config)
    seen = []
    runner.model.backbone.register_forward_hook(
        lambda model, args, out: seen.append((model.training, is_folded(model))))
    runner.train()
    runner.test()
    assert set(seen) == {(True, False), (False, False), (False, True)}
    assert torch.isfinite(next(runner.model.parameters())).all()
