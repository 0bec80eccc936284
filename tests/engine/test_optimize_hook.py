"""The hook that uses the passes in tests."""

import pytest
import torch
from mmengine.config import Config
from mmengine.runner import Runner
from torch import nn

from vit_plugin.engine import OptimizeHook
from vit_plugin.engine.optimize_hook import use_passes
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import StdConv2d
from vit_plugin.passes import onednn, processor
from vit_plugin.passes.fold import Folded
from vit_plugin.passes.onednn import OneDnnMlp


class FakeRunner:
    """What the hook needs of a runner."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model


def is_folded(model: nn.Module) -> bool:
    return any(
        isinstance(module.kernel, Folded)
        for module in model.modules()
        if isinstance(module, StdConv2d)
    )


@pytest.mark.parametrize(('instructions', 'fuses'), [('AVX2', False), ('AVX-512', True)])
def test_passes_are_used_in_a_test_and_undone(tiny_hybrid, monkeypatch, instructions, fuses):
    monkeypatch.setattr(processor, 'instruction_set', lambda: instructions)
    runner, hook = FakeRunner(VisionTransformer(**tiny_hybrid)), OptimizeHook()
    hook.before_test(runner)
    assert is_folded(runner.model)
    fused = any(type(module) is OneDnnMlp for module in runner.model.modules())
    assert fused == (fuses and onednn.is_available())
    hook.after_test(runner)
    assert not is_folded(runner.model)
    assert not any(type(module) is OneDnnMlp for module in runner.model.modules())


@pytest.mark.parametrize(
    ('cfg', 'count'),
    [
        (dict(), 1),
        (dict(custom_hooks=[dict(type='EMAHook')]), 1),
        (dict(optimize=False), 0),
        (dict(custom_hooks=[dict(type='vit_plugin.OptimizeHook')]), 1),
    ],
)
def test_use_passes_adds_the_hook_once(cfg, count):
    cfg = Config(cfg)
    use_passes(cfg)
    hooks = [hook for hook in cfg.get('custom_hooks', []) if hook.type == 'vit_plugin.OptimizeHook']
    assert len(hooks) == count


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore')
def test_passes_are_used_only_in_the_test_of_a_run(digits_config):
    digits_config.train_cfg.max_epochs = 1
    digits_config.param_scheduler = None
    use_passes(digits_config)
    runner = Runner.from_cfg(digits_config)
    modes = []
    runner.model.backbone.register_forward_hook(
        lambda model, args, out: modes.append((model.training, is_folded(model)))
    )
    runner.train()
    runner.test()
    assert set(modes) == {(True, False), (False, False), (False, True)}
    assert torch.isfinite(next(runner.model.parameters())).all()
