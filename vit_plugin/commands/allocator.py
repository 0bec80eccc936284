"""Let glibc keep the memory that a training frees after each step, for the next one."""

import ctypes
import os
import platform

# Environment variable -> the same setting for mallopt(3): the number of its parameter in malloc.h,
# and a value in bytes, which must fit 32 bits.
MALLOC_SETTINGS = {
    'MALLOC_MMAP_THRESHOLD_': (-3, 2**30),
    'MALLOC_TRIM_THRESHOLD_': (-1, 2**31 - 1),
    'MALLOC_TOP_PAD_': (-2, 2**26),
}
TUNABLES = 'GLIBC_TUNABLES'


def keep_memory() -> None:
    """Let glibc keep freed blocks, rather than give them back to the system after each step.

    The system zeroes memory before it gives it out again. Nothing changes without glibc, or if the
    environment sets one of these variables. Threads that already run keep their arenas.
    """
    if platform.libc_ver()[0] != 'glibc':
        return
    if any(variable in os.environ for variable in (*MALLOC_SETTINGS, TUNABLES)):
        return
    libc = ctypes.CDLL(None)
    for parameter, size in MALLOC_SETTINGS.values():
        libc.mallopt(parameter, size)
