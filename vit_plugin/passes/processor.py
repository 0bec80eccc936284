"""What the processor can do: the passes are faster only with certain instruction sets."""

import platform
from functools import cache
from pathlib import Path

import torch


@cache
def instruction_set() -> str:
    """``'AMX'``, ``'AVX-512'`` or ``'AVX2'``: the latest that torch may use, or ``''`` if none."""
    latest = {'AVX512': 'AVX-512', 'AVX2': 'AVX2'}.get(torch.backends.cpu.get_cpu_capability(), '')
    # torch has no name of its own for AMX.
    has_tiles = 'amx_tile' in _cpuinfo().get('flags', '').split()
    return 'AMX' if latest == 'AVX-512' and has_tiles else latest


def name() -> str:
    """The model name of the processor."""
    return _cpuinfo().get('model name') or platform.processor() or platform.machine()


@cache
def computes_in_bfloat16() -> bool | None:
    """True if the processor has instructions for bfloat16. None if the system does not say."""
    flags = _cpuinfo().get('flags')
    return None if flags is None else bool({'avx512_bf16', 'amx_bf16'} & set(flags.split()))


@cache
def _cpuinfo() -> dict[str, str]:
    """The entries of /proc/cpuinfo for the first processor. Empty on other systems."""
    path = Path('/proc/cpuinfo')
    # A blank line follows the entries of each processor.
    first = path.read_text().partition('\n\n')[0] if path.is_file() else ''
    lines = (line.partition(':') for line in first.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines}
