"""Let glibc keep the memory that a training frees after each step, for the next one."""

import ctypes
import os
import platform

# The environment variable of each setting -> its parameter of mallopt(3), and bytes, a number of 32
# bits.
MALLOC_SETTINGS = {
    'MALLOC_MMAP_THRESHOLD_': (-3, 2**30),
    'MALLOC_TRIM_THRESHOLD_': (-1, 2**31 - 1),
    'MALLOC_TOP_PAD_': (-2, 2**26),
}
TUNABLES = 'GLIBC_TUNABLES'


def keep_memory() -> None:
    """Let glibc keep freed blocks, rather than give them back to the system after each step.

    The system would fill them with zeros again. Nothing changes where the environment sets any of
    this, or on another system or C library. Threads that exist keep what they have.
    """
    if platform.libc_ver()[0] != 'glibc' or {*MALLOC_SETTINGS, TUNABLES} & {*os.environ}:
        return
    libc = ctypes.CDLL(None)
    for parameter, size in MALLOC_SETTINGS.values():
        libc.mallopt(parameter, size)
