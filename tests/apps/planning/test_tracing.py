import sys

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from vit_plugin.apps.planning.step import pretended_ranks
from vit_plugin.apps.planning.tracing import Trace
from vit_plugin.errors import ConfigError

KIB = 1024


@pytest.fixture
def trace():
    """Of a model with a KiB of parameters, trained by SGD with momentum."""
    fake = FakeTensorMode()
    with fake:
        model = nn.Linear(256, 1, bias=False)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    return Trace(model, optimizer, fake, node=8), model, optimizer


def test_each_segment_has_a_peak_by_kind(trace):
    trace, model, optimizer = trace
    with trace:
        images = torch.empty(4, 256)
        trace.memory.segment = 'forward'
        loss = model(images).sum()
        trace.memory.segment = 'backward'
        loss.backward()
        del images, loss
        trace.memory.segment = 'update'
        optimizer.step()
    peaks = trace.peaks()
    assert +peaks['input'] == dict(parameters=KIB, activations=4 * KIB)
    assert peaks['forward']['activations'] == 4 * KIB + 16 + 4  # four outputs and their sum
    assert peaks['backward'].total() >= 6 * KIB  # with the gradient
    assert +peaks['update'] == dict(parameters=KIB, gradients=KIB, optimizer=KIB)


def test_a_segment_that_comes_again_has_its_larger_peak(trace):
    trace, _, _ = trace
    with trace:
        for size in (256, 1024, 512):
            trace.memory.segment = 'again'
            torch.empty(size)
            trace.memory.segment = 'rest'
            torch.empty(1)
    assert trace.peaks()['again'].total() == 5 * KIB


def test_arithmetic_of_forward_and_backward(trace):
    trace, model, _ = trace
    with trace:
        model(torch.empty(5, 256, requires_grad=True)).sum().backward()
    assert trace.work.flops == 3 * 2 * 5 * 256


@pytest.mark.parametrize(('ranks', 'within', 'between'), [
    (range(16), 2 * KIB * 15 // 16, 2 * KIB // 16),  # on two machines
    (range(8), 2 * KIB * 7 // 8, 0),
    ((0, 8), 0, 2 * KIB // 2),  # as those of HSDP that have the same part
])
def test_messages_within_and_between_machines(trace, ranks, within, between):
    trace, _, _ = trace
    with pretended_ranks(16):
        group = dist.new_group(list(ranks))
        with trace:
            dist.all_reduce(torch.empty(256), group=group)
    assert trace.work.traffic == dict(within=within, between=between)


def test_a_plan_is_not_made_within_a_run():
    with pretended_ranks(2), pytest.raises(ConfigError, match='in a process of its own'), pretended_ranks(2):
        pass
    assert not dist.is_initialized()


def test_a_torch_whose_trackers_are_others_is_a_sentence(trace):
    trace, _, _ = trace
    with trace:
        pass
    with pytest.raises(ConfigError, match='The memory trackers of torch .* are not those that planning knows'):
        trace.peaks()


def test_a_torch_without_the_trackers_is_a_sentence(monkeypatch):
    monkeypatch.delitem(sys.modules, 'vit_plugin.apps.planning.tracing')
    monkeypatch.setitem(sys.modules, 'torch.distributed._tools.mem_tracker', None)
    with pytest.raises(ConfigError, match='Planning needs the memory trackers of torch .* install another torch'):
        import vit_plugin.apps.planning.tracing  # noqa: F401
