"""Time, memory and arithmetic of a call."""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.models.layers.linear import linear

Call = Callable[[], Any]


def seconds(call: Call, device: torch.device, calls: int = 1) -> float:
    """Seconds of one call, the mean of several made one after the other; on CUDA between two events."""
    if device.type != 'cuda':
        start = time.perf_counter()
        for _ in range(calls):
            call()
        return (time.perf_counter() - start) / calls
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize(device)
    first.record()
    for _ in range(calls):
        call()
    last.record()
    last.synchronize()
    return first.elapsed_time(last) / 1000 / calls


def interleaved(calls: Mapping[str, Call], rounds: int, device: torch.device,
                repeats: int = 1) -> dict[str, list[float]]:
    """Seconds of each call in each round; another goes first every round, so that none has the cooler machine."""
    names, times = list(calls), {name: [] for name in calls}
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(seconds(calls[name], device, repeats))
    return times


def peak_memory(call: Call, device: torch.device) -> int:
    """Bytes that torch's allocator holds at most during the call, above what it held before.

    On a CPU the sum of the profiler's record of every allocation: exact, and the same in every run.
    """
    if device.type == 'cuda':
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        return torch.cuda.max_memory_allocated(device) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        call()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'trace.json')
        record.export_chrome_trace(str(path))
        events = json.loads(path.read_text())['traceEvents']
    held = peak = 0
    for event in sorted((event for event in events if event['name'] == '[memory]'), key=lambda event: event['ts']):
        held += event['args']['Bytes']
        peak = max(peak, held)
    return peak


def count_flops(call: Call) -> int:
    """Floating-point operations of matrix products, convolutions and attention; a multiply-add is two."""
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


class LinearShapes(TorchFunctionMode):
    """Inside it, how often (rows, in) is multiplied by (in, out) in linear layers, by these three."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[int, int, int]] = Counter()

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is F.linear:
            x, weight = args[:2]
            self.counts[x.numel() // x.shape[-1], weight.shape[1], weight.shape[0]] += 1
        return func(*args, **(kwargs or {}))


def matmul_call(shapes: Mapping[tuple[int, int, int], int], like: Tensor) -> tuple[Call, int]:
    """A call that makes those products and nothing else, of random numbers, and its floating-point operations.

    On a CPU they are made by the faster of torch's libraries, see :mod:`~vit_plugin.models.layers.linear`.

    Args:
        shapes: see :class:`LinearShapes`.
        like: a tensor of the device and dtype.
    """
    operands = [[like.new_empty(shape).normal_() for shape in ((rows, width), (out, width), (out, ))]
                for rows, width, out in shapes]

    def call() -> None:
        with torch.no_grad():
            for operand, count in zip(operands, shapes.values(), strict=True):
                for _ in range(count):
                    linear(*operand)

    return call, sum(2 * rows * width * out * count for (rows, width, out), count in shapes.items())
