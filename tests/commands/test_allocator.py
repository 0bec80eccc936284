"""Freed memory is kept for the next allocation, which then causes no page faults."""

import os
import platform
import subprocess
import sys

import pytest

from vit_plugin.commands.allocator import MALLOC_SETTINGS, TUNABLES

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='needs glibc')
# Two ways to allocate `count` values of 4 bytes: as a tensor, and without the import of torch.
TENSOR = 'from torch import ones'
BYTES = 'def ones(count): return b"1234" * count'
# Prints the page faults of an allocation after a freed one of about its size, before and after
# keep_memory().
SCRIPT = """
import resource
from vit_plugin.commands.allocator import keep_memory


def faults():
    ones(2 ** 24)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    ones(2 ** 24 - 2 ** 16)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


plain = faults()
keep_memory()
print(plain, faults())
"""


def faults(ones: str, **variables: str) -> list[int]:
    """Page faults of an allocation of 64 MiB, without and with the settings of keep_memory()."""
    clean = {
        name: value
        for name, value in os.environ.items()
        if name not in {*MALLOC_SETTINGS, TUNABLES}
    }
    command, environment = [sys.executable, '-c', f'{ones}\n{SCRIPT}'], clean | variables
    return [*map(int, subprocess.check_output(command, env=environment).split())]


@needs_glibc
def test_a_tensor_reuses_the_pages_of_a_freed_tensor():
    plain, kept = faults(TENSOR)
    assert kept < plain / 4


@needs_glibc
def test_settings_of_the_environment_take_precedence():
    plain, kept = faults(BYTES, MALLOC_MMAP_THRESHOLD_='65536')
    assert kept == pytest.approx(plain, abs=64)  # of 16,384 pages
