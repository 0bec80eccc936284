"""Measure the time, peak memory and FLOPs of calls."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

Call = Callable[[], Any]


def clock() -> float:
    """The time in seconds, after the device has finished its work."""
    # Imported late: it loads setuptools, which changes sys.path.
    from torch.utils.benchmark import timer

    return timer()


def interleaved(
    calls: Mapping[str, Call], rounds: int, repeats: int = 1, clock: Callable[[], float] = clock
) -> dict[str, list[float]]:
    """Time several calls, all of them in each round.

    The first call of a round rotates, so that none always runs on the cooler machine.

    Args:
        calls: the calls by name.
        rounds: number of rounds.
        repeats: calls in a row whose mean is a time.
        clock: returns the time in seconds.

    Returns:
        The seconds of each call in each round.
    """
    names = list(calls)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for number in range(rounds):
        first = number % len(names)
        for name in names[first:] + names[:first]:
            start = clock()
            for _ in range(repeats):
                calls[name]()
            times[name].append((clock() - start) / repeats)
    return times


def peak_memory(call: Call, device: torch.device) -> int:
    """Peak bytes of torch's allocator during the call, above the bytes before it.

    On a CPU it is computed from the profiler's record of every allocation, which is exact and the
    same in every run.
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
    events = [
        event for event in record.profiler.kineto_results.events() if event.name() == '[memory]'
    ]
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()  # negative if memory is freed
        peak = max(peak, held)
    return peak


def count_flops(call: Call) -> int:
    """Floating-point operations of matrix products, convolutions and attention.

    A multiply-add counts as two.
    """
    with FlopCounterMode(display=False) as counter:
        call()
    return counter.get_total_flops()
