"""Follow the memory, arithmetic and messages of one rank without its data."""

import weakref
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensor, FakeTensorMode
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

# What memory is held for. The gathered are whole parameters and gradients on their way between ranks.
KINDS = ('parameters', 'gradients', 'optimizer', 'ema', 'gathered', 'activations', 'temporary')
READS = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)
CUDA_BLOCK = 512  # bytes; torch's allocator rounds up to them on CUDA

# Collective operations -> how often their tensor crosses the links between the ranks.
COLLECTIVES = {
    'c10d::_allgather_base_': 1, 'c10d::_reduce_scatter_base_': 1, 'c10d::allreduce_': 2,
    '_c10d_functional::all_reduce': 2, '_c10d_functional::all_gather_into_tensor': 1,
    '_c10d_functional::reduce_scatter_tensor': 1}


class Allocations(TorchDispatchMode):
    """Sees every tensor that is made while it is active, and forgets it when torch frees it.

    A value of a fake tensor can be read within it, and is 1.

    Args:
        fake: the mode in which the tensors are fake. Others are not counted, such as those by which ``DTensor`` finds
            out shapes.
        block: allocations are rounded up to multiples of this number of bytes.
        node: number of ranks on a machine.

    Attributes:
        segment: name of what is going on. Each segment has a peak of its own.
        kind: what new tensors are held for, one of ``KINDS``.
        peaks: bytes by kind at the peak of each segment.
        flops: floating-point operations of matrix products, convolutions and attention.
        traffic: bytes that a rank receives, ``'within'`` a machine and ``'between'`` machines. Of the latter, it is a
            rank's share of what its machine receives.
    """

    def __init__(self, fake: FakeTensorMode, block: int, node: int) -> None:
        super().__init__()
        self.fake, self.block, self.node = fake, block, node
        self.kind = 'activations'
        self.segment: Any = ('input', )
        self.held: Counter[str] = Counter()
        self.peaks: dict[Hashable, Counter[str]] = {}
        self.flops, self.traffic = 0, Counter(within=0, between=0)
        self._storages: dict[int, tuple[weakref.ref, int, str]] = {}  # by their identity: bytes and kind

    def follow(self, tensors: Iterable[Tensor | None], kind: str) -> None:
        """Count the memory of these tensors as this kind, also if it was counted as another one."""
        for tensor in tensors:
            if tensor is not None:
                local = tensor.to_local() if isinstance(tensor, DTensor) else tensor
                self._count(local.untyped_storage(), kind)

    def begin(self, segment: Hashable, kind: str) -> None:
        """Begin another segment, whose new tensors are held for this."""
        self.segment, self.kind = segment, kind
        self._note_peak()

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # DTensor calls the operator on its local tensors, which comes here again
        kwargs = kwargs or {}
        try:
            out = func(*args, **kwargs)
        except DataDependentOutputException:
            if func not in READS:
                raise
            return 1. if args[0].is_floating_point() else 1
        mine = [tensor for tensor in tree_leaves(out) if self._is_mine(tensor)]
        for tensor in mine:
            if id(tensor.untyped_storage()) not in self._storages:
                self._count(tensor.untyped_storage(), self.kind)
        if func._overloadpacket in flop_registry and (mine or not tree_leaves(out)):
            self.flops += flop_registry[func._overloadpacket](*args, **kwargs, out_val=out)
        name = func.name().partition('.')[0]
        if name in COLLECTIVES:
            self._send(COLLECTIVES[name], args, out)
        return out

    def __enter__(self) -> 'Allocations':
        self._resizing = _told_of_resizing(self._resized)
        self._resizing.__enter__()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._resizing.__exit__(*error)

    def _is_mine(self, tensor: Any) -> bool:
        return isinstance(tensor, FakeTensor) and tensor.fake_mode is self.fake

    def _count(self, storage: torch.UntypedStorage, kind: str) -> None:
        key = id(storage)
        _, old, old_kind = self._storages.get(key, (None, 0, kind))
        size = -(-storage.nbytes() // self.block) * self.block
        self._storages[key] = weakref.ref(storage, lambda _: self._freed(key)), size, kind
        self.held[old_kind] -= old
        self.held[kind] += size
        self._note_peak()

    def _note_peak(self) -> None:
        if self.held.total() > self.peaks.get(self.segment, Counter()).total():
            self.peaks[self.segment] = Counter(self.held)

    def _freed(self, key: int) -> None:
        _, size, kind = self._storages.pop(key)
        self.held[kind] -= size

    def _resized(self, storage: torch.UntypedStorage) -> None:
        """Count memory that FSDP2 allocates and frees within a storage: that of its gathered parameters."""
        self._count(storage, 'gathered')

    def _send(self, crossings: int, args: tuple, out: Any) -> None:
        tensors = [tensor for tensor in tree_leaves((args, out)) if self._is_mine(tensor)]
        for tensor in tensors:
            if self._storages.get(id(tensor.untyped_storage()), (None, 0, None))[2] in ('activations', 'temporary'):
                self._count(tensor.untyped_storage(), 'gathered')
        ranks = dist.get_process_group_ranks(_group(args))
        machines = len({rank // self.node for rank in ranks})
        size = crossings * max((tensor.nbytes for tensor in tensors), default=0)
        self.traffic['between'] += size * (machines - 1) // len(ranks)
        if machines < len(ranks):
            self.traffic['within'] += size * (len(ranks) - 1) // len(ranks)


def _group(args: tuple) -> dist.ProcessGroup:
    """The process group of a collective: by name in the functional ones, an object of torch's script otherwise."""
    named = [arg for arg in args if isinstance(arg, str)]
    if named:
        resolve: Any = dist.distributed_c10d._resolve_process_group
        return resolve(named[-1])
    return dist.ProcessGroup.unbox(next(arg for arg in args if isinstance(arg, torch.ScriptObject)
                                        and 'ProcessGroup' in str(arg._type())))


@contextmanager
def _told_of_resizing(tell: Callable[[torch.UntypedStorage], None]) -> Iterator[None]:
    """Call the function with each storage whose size Python code changes. No operator shows this."""
    storages: Any = torch.UntypedStorage
    resize = storages.resize_

    def resize_and_tell(storage: torch.UntypedStorage, size: int) -> torch.UntypedStorage:
        resize(storage, size)
        tell(storage)
        return storage

    storages.resize_ = resize_and_tell
    try:
        yield
    finally:
        storages.resize_ = resize
