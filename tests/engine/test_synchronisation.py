"""A training step reads no value from the device between two lines of the log.

On a GPU each such read makes the CPU wait. Here the reads are counted on the CPU, where they take the same way.
"""

import pytest
import torch
import torch.nn.functional as F
from campaigns.tiny_run import build, tiny_cfg
from mmengine.hooks import EMAHook
from mmengine.runner import BaseLoop
from torch.utils._python_dispatch import TorchDispatchMode

pytestmark = pytest.mark.filterwarnings('ignore')


class CountReads(TorchDispatchMode):
    """Counts ``item()``, ``float(tensor)``, ``if tensor:`` and the like, but for a tensor that rests on the CPU."""

    def __init__(self, on_cpu: torch.Tensor | None) -> None:
        super().__init__()
        self.reads, self.on_cpu = 0, on_cpu

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._local_scalar_dense.default:
            self.reads += self.on_cpu is None or args[0].data_ptr() != self.on_cpu.data_ptr()
        return function(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def one_hot_without_checks(monkeypatch):
    """As on a GPU, where torch does not look at the labels."""
    monkeypatch.setattr(F, 'one_hot', lambda labels, number: torch.zeros(*labels.shape, number, dtype=labels.dtype)
                        .scatter_(-1, labels[..., None], 1))


def reads_of_steps(runner) -> list[int]:
    """The number of reads in each iteration of a run."""
    loop: BaseLoop = runner.build_train_loop(runner._train_loop)
    runner._train_loop, own, counts = loop, loop.run_iter, []

    def counted(*args) -> None:
        average = next((hook.ema_model.steps for hook in runner.hooks if isinstance(hook, EMAHook)), None)
        with CountReads(average) as mode:
            own(*args)
        counts.append(mode.reads)

    loop.run_iter = counted
    runner.train()
    return counts


@pytest.mark.parametrize('options', [
    {}, {'optim_wrapper.clip_grad': dict(max_norm=1.)}, {'optim_wrapper.type': 'vit_plugin.AmpOptimWrapper'},
    {'custom_hooks': [dict(type='vit_plugin.EMAHook')]}], ids=['plain', 'clipped', 'amp', 'ema'])
def test_nothing_is_read_between_logs(tmp_path, options):
    cfg = tiny_cfg(tmp_path, loop='iter', **{
        'optim_wrapper.optimizer': dict(type='AdamW', lr=1e-3, fused=True), 'default_hooks.logger.interval': 6,
        'default_hooks.checkpoint.interval': 100, **options})
    counts = reads_of_steps(build(cfg))
    assert [i for i, count in enumerate(counts, 1) if count and i % 6] == []


def test_a_read_is_found(tmp_path):
    runner = build(tiny_cfg(tmp_path, loop='iter', **{'default_hooks.logger.interval': 6}))
    loss = runner.model.head.loss_module.forward
    runner.model.head.loss_module.forward = lambda *args, **kwargs: loss(*args, **kwargs) * float(torch.ones(()))
    assert min(reads_of_steps(runner)) > 0
