"""The counts of operations, communication and memory in a traced step."""

import sys

import pytest
import torch
import torch.distributed as dist
from rejection import rejects
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from vit_plugin.measure.planning.traced_step import pretended_ranks
from vit_plugin.measure.planning.tracing import Work, memory_tracker

KIB = 1024


class Blocks(nn.Module):
    """Blocks of a KiB of parameters each, with the names that those of a classifier have."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.backbone = nn.ModuleDict(
            dict(blocks=nn.Sequential(*(nn.Linear(16, 16, False) for _ in range(number))))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.backbone['blocks'](x)


def test_each_segment_has_a_peak_of_each_kind():
    fake = FakeTensorMode()
    with fake:
        model = Blocks(6)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    with fake, memory_tracker(model, optimizer, 6) as memory:
        model(torch.empty(16, 16)).sum().backward()
        optimizer.step()
    blocks = {
        (phase, position)
        for phase in ('forward', 'backward')
        for position in (0, 1, 'middle', -2, -1)
    }
    assert set(memory.peaks) == {('forward', 'stem'), ('update',), *blocks}
    assert +memory.peaks['forward', 'stem'] == dict(parameters=6 * KIB, activations=KIB)
    assert memory.peaks['forward', 1]['activations'] == 3 * KIB  # the images, and two outputs
    assert memory.peaks['forward', -1]['activations'] >= 7 * KIB
    assert memory.peaks['backward', -1]['gradients'] <= KIB
    assert +memory.peaks['update',] == dict(
        parameters=6 * KIB, gradients=6 * KIB, optimizer=6 * KIB
    )


def test_flops_of_forward_and_backward_are_counted():
    fake = FakeTensorMode()
    with fake, Work(fake) as work:
        nn.Linear(256, 1, bias=False)(torch.empty(5, 256, requires_grad=True)).sum().backward()
    # One product in the forward, and two in the backward.
    assert work.flops == 3 * 2 * 5 * 256


def test_queries_of_devices_are_not_passed_on():
    """They are two of three calls, and passing them on would take a fifth of a plan's time."""
    fake, calls = FakeTensorMode(), []

    class Recorded(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            calls.append(func)
            return func(*args, **(kwargs or {}))

    with fake, Recorded(), Work(fake):
        assert torch.empty(2, device='cuda').device.type == 'cuda'
    assert torch.ops.prim.device.default not in calls


@pytest.mark.parametrize(
    ('ranks', 'within', 'between'),
    [
        (range(16), 2 * KIB * 15 // 16, 2 * KIB // 16),  # on two machines
        (range(8), 2 * KIB * 7 // 8, 0),
        ((0, 8), 0, 2 * KIB // 2),  # the replicas of HSDP
    ],
)
def test_messages_within_and_between_machines_are_counted(ranks, within, between):
    fake = FakeTensorMode()
    with pretended_ranks(16):
        group = dist.new_group(list(ranks))
        with fake, Work(fake, gpus_per_node=8) as work:
            dist.all_reduce(torch.empty(256), group=group)
    assert work.traffic == dict(within=within, between=between)


def test_planning_within_a_run_raises():
    with (
        pretended_ranks(2),
        rejects('needs a process of its own'),
        pretended_ranks(2),
    ):
        pass
    assert not dist.is_initialized()


def test_planning_without_torchs_trackers_raises(monkeypatch):
    monkeypatch.delitem(sys.modules, 'vit_plugin.measure.planning.tracing')
    monkeypatch.setitem(sys.modules, 'torch.distributed._tools.mem_tracker', None)
    with rejects('Planning needs the memory trackers of torch, .* install another torch'):
        import vit_plugin.measure.planning.tracing  # noqa: F401
