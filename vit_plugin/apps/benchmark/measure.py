"""Measure time, memory and arithmetic of a call."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.passes import optimize

Call = Callable[[], Any]


def clock() -> float:
    """Seconds, once the device has done its work."""
    from torch.utils.benchmark import timer  # not before, since this import loads setuptools, which changes sys.path
    return timer()


def interleaved(calls: Mapping[str, Call], rounds: int, repeats: int = 1) -> dict[str, list[float]]:
    """Seconds of each call in each round, the mean of ``repeats`` calls in a row.

    The order rotates, so no call always runs on the cooler machine.
    """
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = clock()
            for _ in range(repeats):
                calls[name]()
            times[name].append((clock() - start) / repeats)
    return times


def peak_memory(call: Call, device: torch.device) -> int:
    """Peak bytes of torch's allocator during the call, above the bytes before it.

    On a CPU this is computed from the profiler's record of every allocation. It is exact and the same in every run.
    """
    if device.type == 'cuda':
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        call()
    held = peak = 0
    events = [event for event in record.profiler.kineto_results.events() if event.name() == '[memory]']
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak


def count_flops(call: Call) -> int:
    """Floating-point operations of matrix products, convolutions and attention. A multiply-add counts as two."""
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


class LinearProducts(TorchFunctionMode):
    """Counts the products (rows, in) x (in, out) of linear layers while it is active, by (rows, in, out)."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[int, int, int]] = Counter()

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is F.linear:
            x, weight = args[:2]
            self.counts[x.numel() // x.shape[-1], weight.shape[1], weight.shape[0]] += 1
        return func(*args, **(kwargs or {}))

    def call(self, like: Tensor) -> Call:
        """A function that only computes these products, of random numbers with this device and dtype.

        On a CPU, the library that our passes choose computes them, see :mod:`~vit_plugin.passes.onednn`.
        """
        layers = [(optimize(nn.Linear(width, out).to(like).eval()), like.new_empty(rows, width).normal_(), count)
                  for (rows, width, out), count in self.counts.items()]

        def multiply() -> None:
            with torch.no_grad():
                for layer, x, count in layers:
                    for _ in range(count):
                        layer(x)

        return multiply
