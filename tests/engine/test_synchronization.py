"""Training steps between two log lines read no value of a tensor.

On a GPU each such read makes the CPU wait. Here the reads are counted on the CPU, where they use
the same operator.
"""

import pytest
import torch
import torch.nn.functional as F
from mmengine.runner import BaseLoop
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.tiny_run import build, tiny_cfg

pytestmark = pytest.mark.filterwarnings('ignore')


class CountReads(TorchDispatchMode):
    """Counts ``item()``, ``float(tensor)``, ``if tensor:`` and the like."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._local_scalar_dense.default:
            self.reads += 1
        return function(*args, **(kwargs or {}))


@pytest.fixture(autouse=True)
def one_hot_without_checks(monkeypatch):
    """Replace ``one_hot`` by one that does not read the labels, as torch does not on a GPU."""
    monkeypatch.setattr(
        F,
        'one_hot',
        lambda labels, number: torch.zeros(*labels.shape, number, dtype=labels.dtype).scatter_(
            -1, labels[..., None], 1
        ),
    )


def reads_of_steps(runner) -> list[int]:
    """The number of reads in each iteration of a run."""
    loop: BaseLoop = runner.build_train_loop(runner._train_loop)
    runner._train_loop, run_iter, counts = loop, loop.run_iter, []

    def count_reads(*args) -> None:
        with CountReads() as mode:
            run_iter(*args)
        counts.append(mode.reads)

    loop.run_iter = count_reads
    runner.train()
    return counts


@pytest.mark.parametrize(
    'options',
    [
        {},
        {'optim_wrapper.clip_grad': dict(max_norm=1.0)},
        {'optim_wrapper.type': 'vit_plugin.AmpOptimWrapper'},
    ],
    ids=['plain', 'clipped', 'amp'],
)
def test_no_value_is_read_between_logs(tmp_path, options):
    cfg = tiny_cfg(
        tmp_path,
        loop='iter',
        **{
            'train_cfg.max_iters': 8,
            'optim_wrapper.optimizer': dict(type='AdamW', lr=1e-3, fused=True),
            'default_hooks.logger.interval': 4,
            'default_hooks.checkpoint.interval': 100,
            'custom_hooks': [],  # without averages, which count their steps on the CPU
            **options,
        },
    )
    counts = reads_of_steps(build(cfg))
    # Apart from the logged iterations, only the first one reads, since it is shown at once.
    assert [i for i, count in enumerate(counts, 1) if count and i % 4] == [1]


def test_reads_are_counted(tmp_path):
    runner = build(tiny_cfg(tmp_path, loop='iter', **{'train_cfg.max_iters': 3}))
    loss = runner.model.head.loss_module.forward
    runner.model.head.loss_module.forward = lambda *args, **kwargs: (
        loss(*args, **kwargs) * float(torch.ones(()))
    )
    assert min(reads_of_steps(runner)) > 0
