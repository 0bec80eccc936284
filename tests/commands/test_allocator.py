"""Memory that comes from the system is zeroed page by page, and each page is a fault."""

import os
import platform
import subprocess
import sys

import pytest

from vit_plugin.commands.allocator import SETTINGS, TUNABLES

of_glibc = pytest.mark.skipif(platform.libc_ver()[0] != 'glibc', reason='needs glibc')
SCRIPT = """
import resource, sys
import torch
from vit_plugin.commands.allocator import keep_memory
keep_memory() if sys.argv[1] == 'kept' else None
torch.ones(2 ** 24)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
torch.ones(2 ** 24 - 2 ** 16)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(way: str, **variables: str) -> int:
    clean = {name: value for name, value in os.environ.items() if name not in {*SETTINGS, TUNABLES}}
    done = subprocess.run(
        [sys.executable, '-c', SCRIPT, way],
        env=clean | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


@of_glibc
def test_a_tensor_takes_the_pages_of_one_before():
    assert faults('kept') < faults('plain') / 4


@of_glibc
def test_what_the_environment_sets_stays():
    set_by_hand = dict(MALLOC_MMAP_THRESHOLD_='65536')
    assert faults('kept', **set_by_hand) == pytest.approx(faults('plain', **set_by_hand), abs=64)
