import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

from vit_plugin.apps.planning.allocations import CUDA_BLOCK, Allocations
from vit_plugin.apps.planning.step import pretended_ranks
from vit_plugin.errors import ConfigError

KIB = 1024


@pytest.fixture
def fake():
    return FakeTensorMode()


def test_memory_is_counted_until_torch_frees_it(fake):
    allocations = Allocations(fake, block=1, node=8)
    with fake, allocations:
        a = torch.empty(256)  # 1 KiB
        b = a + a
        view = b[:10]
        del b
        assert allocations.held.total() == 2 * KIB
        del view
        assert allocations.held.total() == KIB
        a.add_(1)
        assert allocations.held.total() == KIB
    assert allocations.peaks[('input', )].total() == 2 * KIB


def test_each_segment_has_a_peak_by_kind(fake):
    allocations = Allocations(fake, block=1, node=8)
    with fake, allocations:
        kept = torch.empty(256)
        allocations.begin('next', 'temporary')
        torch.empty(512)
        allocations.follow([kept], 'gradients')
        torch.empty(1024)
    assert allocations.peaks['next'] == {'activations': 0, 'gradients': KIB, 'temporary': 4 * KIB}


def test_cudas_allocator_gives_whole_blocks(fake):
    allocations = Allocations(fake, CUDA_BLOCK, node=8)
    with fake, allocations:
        one = torch.empty(1)
        assert allocations.held.total() == 512
    assert one.nbytes == 4


def test_storages_that_are_resized_in_python_count(fake):
    """As those of the parameters that FSDP2 gathers. The change of torch's class ends with the context."""
    resize = torch.UntypedStorage.resize_
    allocations = Allocations(fake, block=1, node=8)
    with fake:
        gathered = torch.empty(256)
        gathered.untyped_storage().resize_(0)
        with allocations:
            gathered.untyped_storage().resize_(KIB)
            assert allocations.held['gathered'] == KIB
            gathered.untyped_storage().resize_(0)
            assert allocations.held['gathered'] == 0
    assert torch.UntypedStorage.resize_ is resize


def test_arithmetic_of_forward_and_backward(fake):
    allocations = Allocations(fake, block=1, node=8)
    with fake, allocations:
        nn.Linear(10, 20)(torch.empty(5, 10, requires_grad=True)).sum().backward()
    assert allocations.flops == 3 * 2 * 5 * 10 * 20


@pytest.mark.parametrize(('ranks', 'within', 'between'), [
    (range(16), 2 * KIB * 15 // 16, 2 * KIB // 16),  # on two machines
    (range(8), 2 * KIB * 7 // 8, 0),
    ((0, 8), 0, 2 * KIB // 2),  # as those of HSDP that have the same part
])
def test_messages_within_and_between_machines(fake, ranks, within, between):
    with pretended_ranks(16):
        group = dist.new_group(list(ranks))
        allocations = Allocations(fake, block=1, node=8)
        with fake, allocations:
            dist.all_reduce(torch.empty(256), group=group)
    assert allocations.traffic == dict(within=within, between=between)


def test_a_plan_is_not_made_within_a_run():
    with pretended_ranks(2), pytest.raises(ConfigError, match='in a process of its own'), pretended_ranks(2):
        pass
    assert not dist.is_initialized()


def test_private_parts_of_torch_are_there():
    from torch._subclasses.fake_tensor import FakeTensor
    from torch.testing._internal.distributed.fake_pg import FakeStore
    from torch.utils._python_dispatch import TorchDispatchMode
    assert all((FakeTensor, FakeStore, TorchDispatchMode, dist.ProcessGroup.unbox,
                dist.distributed_c10d._resolve_process_group))
