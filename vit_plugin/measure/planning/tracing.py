"""Count the operations, traffic and memory of a step, by torch's trackers.

They are in ``torch.distributed._tools``, which is private and may change; no other file uses it.
"""

import re
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Mapping
from functools import cache
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch._guards import active_fake_mode
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry
from torch.utils.hooks import RemovableHandle

from vit_plugin.errors import ConfigError

try:
    from torch.distributed._tools.fake_collectives import CollectiveOp, collective_ops, sync_ops
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker
except ImportError as error:
    raise ConfigError(
        f'Planning needs the memory trackers of torch, and torch {torch.__version__} '
        f'lacks them ({error}); install another torch.'
    ) from error

# The trackers' kinds of memory, of two trackers with different spelling -> one of MEMORY_KINDS.
PLANNED_KIND = {
    'Parameter': 'parameters',
    'Sharded Param': 'parameters',
    'Buffer': 'parameters',
    'Gradient': 'gradients',
    'Sharded Grad': 'gradients',
    'Optstate': 'optimizer',
    'OptState': 'optimizer',
    'Unsharded Param': 'gathered',
    'Unsharded Grad': 'gathered',
    'All Gather': 'gathered',
    'Reduce Scatter': 'gathered',
    'Activation': 'activations',
    'Inputs': 'activations',
    'Other': 'activations',
    'Temp': 'activations',
}
MEMORY_KINDS = ('parameters', 'gradients', 'optimizer', 'ema', 'gathered', 'activations')
# A module's full name -> the match of a block, with its number, or None.
match_block = cache(re.compile(r'\.backbone\.blocks\.(\d+)$').search)
# Number of blocks at either end whose cost differs from the others': more than one, because of
# FSDP's prefetching.
END_BLOCKS = 2
SENDING_OPS = collective_ops - sync_ops
# Operators that read a value.
READING_OPS = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)


class Work(TorchDispatchMode):
    """Counts operations and communication. Within it, reading a value of a fake tensor returns 1.

    Args:
        fake: the fake mode whose operations count. DTensor infers shapes in another one.
        gpus_per_node: number of ranks on a machine.

    Attributes:
        flops: floating-point operations of matrix products, convolutions and attention.
        traffic: bytes that a rank receives, ``'within'`` a machine and ``'between'`` machines. The
            latter is a rank's share of what its machine receives.
    """

    def __init__(self, fake: FakeTensorMode, gpus_per_node: int = 1) -> None:
        super().__init__()
        self.fake, self.gpus_per_node = fake, gpus_per_node
        self.flops, self.traffic = 0, Counter(within=0, between=0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None
    ) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            # DTensor calls the operator on its local tensors, which is dispatched here again.
            return NotImplemented
        if func is torch.ops.prim.device.default:  # two thirds of all calls, without any work
            return args[0].__torch_dispatch__(func, types, args)
        kwargs = kwargs or {}
        try:
            out = func(*args, **kwargs)
        except DataDependentOutputException:
            if func not in READING_OPS:
                raise
            return 1.0 if args[0].is_floating_point() else 1
        has_flops, sends = func._overloadpacket in flop_registry, func in SENDING_OPS
        if (has_flops or sends) and active_fake_mode() is self.fake:
            if has_flops:
                self.flops += flop_registry[func._overloadpacket](*args, **kwargs, out_val=out)
            if sends:
                self._count_traffic(func, out, args, kwargs)
        return out

    def _count_traffic(self, func: Any, out: Any, args: tuple, kwargs: Any) -> None:
        """Add the bytes that this rank receives in a collective.

        A collective over n ranks brings each of them (n - 1) / n of the size. Between machines, n
        is the number of machines, and the ranks of a machine divide what it receives.
        """
        ranks = dist.get_process_group_ranks(CollectiveOp.get_process_group(func, args))
        machines = len({rank // self.gpus_per_node for rank in ranks})
        # An all-reduce is a reduce-scatter and an all-gather.
        crossings = 2 if 'allreduce' in func.__name__.replace('_', '') else 1
        size = crossings * CollectiveOp.get_comm_tensor_size(func, out, args, kwargs)
        self.traffic['between'] += size * (machines - 1) // len(ranks)
        if machines < len(ranks):
            self.traffic['within'] += size * (len(ranks) - 1) // len(ranks)


class Peaks(MemTracker):
    """torch's tracker with a peak for each segment of a step, in place of one for each module.

    Segments are the forward and the backward of each block at either end, those of all blocks in
    the middle, and the update. What runs between two segments counts for the first.

    Attributes:
        num_layers: number of blocks, set before the step.
        peaks: the bytes by kind at the peak of each segment.
    """

    num_layers = 0
    peaks: dict[tuple, Counter[str]]
    _segment: tuple = ('forward', 'stem')

    def _track_module_params_and_buffers(
        self, module: nn.Module, install_grad_hooks: bool = True
    ) -> tuple[int, int]:
        # torch's tracker hooks every parameter, which fails for one without a gradient.
        for parameter in module.parameters():
            if not parameter.requires_grad:
                handles = RemovableHandle(OrderedDict()), RemovableHandle(OrderedDict())
                self._param_to_grad_hook_handles.setdefault(parameter, handles)
        return super()._track_module_params_and_buffers(module, install_grad_hooks)

    def _update_peak_stats(self, peak_state: Any) -> None:
        """Find the current segment, and record the memory in use if it is the segment's peak."""
        if self._in_opt:
            self._segment = ('update',)
        elif block := next(filter(None, map(match_block, self._mod_tracker.parents)), None):
            number = int(block[1])
            # Blocks at the end are counted from it, so that models of two depths share segments.
            position: int | str = number
            if END_BLOCKS <= number < self.num_layers - END_BLOCKS:
                position = 'middle'
            elif number >= END_BLOCKS:
                position = number - self.num_layers
            self._segment = ('backward' if self._mod_tracker.is_bw else 'forward', position)
        by_device: list[dict[Any, int]] = list(self._curr_mem_snap.values())
        if sum(sizes['Total'] for sizes in by_device) > self.peaks[self._segment].total():
            peak = Counter(dict.fromkeys(MEMORY_KINDS, 0))
            for sizes in by_device:
                for kind, size in sizes.items():
                    if kind != 'Total':
                        peak[PLANNED_KIND[kind.value]] += size
            self.peaks[self._segment] = peak


class ShardedPeaks(Peaks, FSDPMemTracker):
    """:class:`Peaks` for a model sharded by FSDP2."""


def memory_tracker(
    model: nn.Module, optimizer: torch.optim.Optimizer | None = None, num_layers: int = 0
) -> Peaks:
    """The tracker of a step of this model, sharded by FSDP2 or not."""
    if isinstance(model, FSDPModule):
        tracker: Peaks = ShardedPeaks(model, optimizer)
    else:
        tracker = Peaks()
        tracker.track_external(*filter(None, (model, optimizer)))
    tracker.num_layers, tracker.peaks = num_layers, defaultdict(Counter)
    return tracker
