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
    """As many blocks as numbers, each a KiB of parameters, with the names of a classifier's."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.backbone = nn.ModuleDict(
            dict(blocks=nn.Sequential(*(nn.Linear(16, 16, False) for _ in range(number))))
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.backbone['blocks'](x)


def test_each_segment_has_a_peak_by_kind():
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


def test_arithmetic_of_forward_and_backward():
    fake = FakeTensorMode()
    with fake, Work(fake) as work:
        nn.Linear(256, 1, bias=False)(torch.empty(5, 256, requires_grad=True)).sum().backward()
    assert work.flops == 3 * 2 * 5 * 256


def test_a_question_for_a_device_goes_no_further():
    """They are two of three calls, and would take a fifth of the time of a plan."""
    fake, seen = FakeTensorMode(), []

    class Below(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with fake, Below(), Work(fake):
        assert torch.empty(2, device='cuda').device.type == 'cuda'
    assert torch.ops.prim.device.default not in seen


@pytest.mark.parametrize(
    ('ranks', 'within', 'between'),
    [
        (range(16), 2 * KIB * 15 // 16, 2 * KIB // 16),  # on two machines
        (range(8), 2 * KIB * 7 // 8, 0),
        ((0, 8), 0, 2 * KIB // 2),  # as those of HSDP that have the same part
    ],
)
def test_messages_within_and_between_machines(ranks, within, between):
    fake = FakeTensorMode()
    with pretended_ranks(16):
        group = dist.new_group(list(ranks))
        with fake, Work(fake, gpus_per_node=8) as work:
            dist.all_reduce(torch.empty(256), group=group)
    assert work.traffic == dict(within=within, between=between)


def test_a_plan_is_not_made_within_a_run():
    with (
        pretended_ranks(2),
        rejects('needs a process of its own'),
        pretended_ranks(2),
    ):
        pass
    assert not dist.is_initialized()


def test_a_torch_without_the_trackers_is_a_sentence(monkeypatch):
    monkeypatch.delitem(sys.modules, 'vit_plugin.measure.planning.tracing')
    monkeypatch.setitem(sys.modules, 'torch.distributed._tools.mem_tracker', None)
    with rejects('Planning needs the memory trackers of torch, .* install another torch'):
        import vit_plugin.measure.planning.tracing  # noqa: F401
