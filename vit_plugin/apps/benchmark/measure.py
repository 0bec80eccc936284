"""Measure time, memory and arithmetic of a call."""

import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from vit_plugin.passes import optimize

Call = Callable[[], Any]


def seconds(call: Call, device: torch.device, calls: int = 1) -> float:
    """Seconds of one call, as the mean of several calls. On CUDA the time is between two events."""
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
    """Seconds of each call in each round. The order rotates, so no call always runs on the cooler machine."""
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        start = turn % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(seconds(calls[name], device, repeats))
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
    """Floating-point operations of matrix products, convolutions and attention. A multiply-add counts as two."""
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()


class LinearShapes(TorchFunctionMode):
    """Counts the products (rows, in) x (in, out) of linear layers while it is active, by (rows, in, out)."""

    def __init__(self) -> None:
        super().__init__()
        self.counts: Counter[tuple[int, int, int]] = Counter()

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if func is F.linear:
            x, weight = args[:2]
            self.counts[x.numel() // x.shape[-1], weight.shape[1], weight.shape[0]] += 1
        return func(*args, **(kwargs or {}))


def matmul_call(shapes: Mapping[tuple[int, int, int], int], like: Tensor) -> tuple[Call, int]:
    """A call that only computes these products, with random numbers, and its number of operations.

    On a CPU, the library that our passes choose computes them, see :mod:`~vit_plugin.passes.onednn`.

    Args:
        shapes: see :class:`LinearShapes`.
        like: a tensor with the device and dtype to use.
    """
    layers = [(optimize(nn.Linear(width, out).to(like).eval()), like.new_empty(rows, width).normal_(), count)
              for (rows, width, out), count in shapes.items()]

    def call() -> None:
        with torch.no_grad():
            for layer, x, count in layers:
                for _ in range(count):
                    layer(x)

    return call, sum(2 * rows * width * out * count for (rows, width, out), count in shapes.items())
