"""Facts about the processor, from the operating system."""

import platform
from functools import cache
from pathlib import Path

VENDORS = {'GenuineIntel': 'Intel', 'AuthenticAMD': 'AMD'}


@cache
def vendor() -> str:
    """``'Intel'`` or ``'AMD'``. ``''`` for any other vendor."""
    text = ' '.join((_cpuinfo().get('vendor_id', ''), platform.processor()))  # platform.processor() is for Windows
    return next((name for identifier, name in VENDORS.items() if identifier in text), '')


def name() -> str:
    """The model name of the processor."""
    return _cpuinfo().get('model name') or platform.processor() or platform.machine()


@cache
def computes_in_bfloat16() -> bool | None:
    """Whether the processor has instructions for bfloat16. None if the system does not say."""
    flags = _cpuinfo().get('flags')
    return None if flags is None else bool({'avx512_bf16', 'amx_bf16'} & set(flags.split()))


@cache
def _cpuinfo() -> dict[str, str]:
    """Linux's facts about the first processor. Empty on other systems."""
    path = Path('/proc/cpuinfo')
    first = path.read_text().partition('\n\n')[0] if path.is_file() else ''
    return {key.strip(): value.strip() for key, _, value in (line.partition(':') for line in first.splitlines())}
