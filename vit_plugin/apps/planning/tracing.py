"""What a step takes, by torch's own trackers. The only file that uses ``torch.distributed._tools``."""

from collections import Counter
from collections.abc import Hashable, Mapping
from contextlib import ExitStack
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

from vit_plugin.errors import ConfigError

try:
    from torch.distributed._tools.fake_collectives import CollectiveOp, collective_ops, sync_ops
    from torch.distributed._tools.fsdp2_mem_tracker import FSDPMemTracker
    from torch.distributed._tools.mem_tracker import MemTracker
except ImportError as error:
    raise ConfigError(f'Planning needs the memory trackers of torch 2.6 or newer, and torch {torch.__version__} lacks '
                      f'them ({error}); install another torch.') from error

# What the trackers say that memory is held for -> the plan's word.
KIND = {'Parameter': 'parameters', 'Sharded Param': 'parameters', 'Buffer': 'parameters',
        'Gradient': 'gradients', 'Sharded Grad': 'gradients', 'Optstate': 'optimizer', 'OptState': 'optimizer',
        'Unsharded Param': 'gathered', 'Unsharded Grad': 'gathered', 'All Gather': 'gathered',
        'Reduce Scatter': 'gathered', 'Activation': 'activations', 'Inputs': 'activations', 'Other': 'activations',
        'Temp': 'activations'}
KINDS = ('parameters', 'gradients', 'optimizer', 'ema', 'gathered', 'activations')
READS = (torch.ops.aten.item.default, torch.ops.aten._local_scalar_dense.default)


class Work(TorchDispatchMode):
    """Counts arithmetic and messages. A value of a fake tensor can be read within it, and is 1.

    Args:
        fake: the mode of the tensors that count. DTensor finds out shapes in another one.
        node: number of ranks on a machine.

    Attributes:
        flops: floating-point operations of matrix products, convolutions and attention.
        traffic: bytes that a rank receives, ``'within'`` a machine and ``'between'`` machines. Of the latter, it is a
            rank's share of what its machine receives.
    """

    def __init__(self, fake: FakeTensorMode, node: int) -> None:
        super().__init__()
        self.fake, self.node = fake, node
        self.flops, self.traffic = 0, Counter(within=0, between=0)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: Mapping | None = None) -> Any:
        if any(issubclass(kind, DTensor) for kind in types):
            return NotImplemented  # DTensor calls the operator on its local tensors, which comes here again
        try:
            out = func(*args, **(kwargs or {}))
        except DataDependentOutputException:
            if func not in READS:
                raise
            return 1. if args[0].is_floating_point() else 1
        if active_fake_mode() is self.fake:
            if func._overloadpacket in flop_registry:
                self.flops += flop_registry[func._overloadpacket](*args, **(kwargs or {}), out_val=out)
            if func in collective_ops - sync_ops:
                self._send(func, out, args, kwargs)
        return out

    def _send(self, func: Any, out: Any, args: tuple, kwargs: Any) -> None:
        ranks = dist.get_process_group_ranks(CollectiveOp.get_process_group(func, args))
        machines = len({rank // self.node for rank in ranks})
        crossings = 2 if 'allreduce' in func.__name__.replace('_', '') else 1  # of the links between the ranks
        size = crossings * CollectiveOp.get_comm_tensor_size(func, out, args, kwargs)
        self.traffic['between'] += size * (machines - 1) // len(ranks)
        if machines < len(ranks):
            self.traffic['within'] += size * (len(ranks) - 1) // len(ranks)


class Peaks(MemTracker):
    """torch's tracker with a peak for each segment of a step, in place of one for each module."""

    segment: Hashable = 'input'

    def _update_peak_stats(self, peak_state: Any) -> None:
        total = sum(on_device['Total'] for on_device in self._curr_mem_snap.values())
        if total > self.peaks.get(self.segment, (0, {}))[0]:
            self.peaks[self.segment] = total, [dict(on_device) for on_device in self._curr_mem_snap.values()]

    def __enter__(self) -> Any:
        self.peaks: dict[Hashable, tuple[int, Any]] = {}
        return super().__enter__()


class ShardedPeaks(Peaks, FSDPMemTracker):
    """The same of a model that FSDP2 shards."""


class Trace:
    """A context in which a step's memory, arithmetic and messages are counted.

    Args:
        model: the model, sharded by FSDP2 or not.
        optimizer: its optimizer.
        fake: the mode of their tensors.
        node: number of ranks on a machine.

    Attributes:
        memory: torch's tracker. Its ``segment`` names the part of the step that is going on.
        work: arithmetic and messages.
    """

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, fake: FakeTensorMode, node: int) -> None:
        if isinstance(model, FSDPModule):
            self.memory: Peaks = ShardedPeaks(model, optimizer)
        else:
            self.memory = Peaks()
            self.memory.track_external(model, optimizer)
        self.work, self._fake = Work(fake, node), fake

    def peaks(self) -> dict[Hashable, Counter[str]]:
        """Bytes by kind at the peak of each segment. Raises a ``ConfigError`` if this torch has told of none."""
        peaks: dict[Hashable, Counter[str]] = {}
        for segment, (_, on_devices) in self.memory.peaks.items():
            peaks[segment] = Counter(dict.fromkeys(KINDS, 0))
            for kind, size in (pair for on_device in on_devices for pair in on_device.items() if pair[0] != 'Total'):
                peaks[segment][KIND[kind.value]] += size
        if not peaks:
            raise ConfigError(f'The memory trackers of torch {torch.__version__} are not those that planning knows; '
                              'install another torch.')
        return peaks

    def __enter__(self) -> 'Trace':
        with ExitStack() as stack:
            for mode in (self._fake, self.memory, self.work):
                stack.enter_context(mode)
            self._modes = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._modes.__exit__(*error)
