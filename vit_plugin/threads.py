"""How long threads of torch that wait for one another keep their cores busy.

At the end of each operation the threads wait for the last of them. By default they spin first:
those of libgomp, in torch for Linux, 300,000 times (9 ms on an AMD EPYC, where a spin takes 30 ns),
and those of libomp, in torch for macOS and Windows, for 200 ms. Where another program holds a core,
the one thread that has to wait for it keeps all others spinning, and the cores do nothing else.
"""

import os
import sys

# Variables of OpenMP's runtimes -> a short wait: a number of spins, and milliseconds.
BRIEF = {'GOMP_SPINCOUNT': '3000', 'KMP_BLOCKTIME': '1'}
# What else decides it.
POLICIES = ('OMP_WAIT_POLICY', 'KMP_LIBRARY', 'KMP_USE_YIELD')


def wait_briefly() -> None:
    """Let threads that wait give their cores to other programs soon. Child processes inherit it.

    It changes no result. Nothing changes where the environment sets any of this, or after torch
    has been imported, since the runtimes read their variables once.
    """
    if 'torch' not in sys.modules and not {*BRIEF, *POLICIES} & {*os.environ}:
        os.environ.update(BRIEF)


def describe_threads(threads: int) -> str:
    """One sentence on the threads of torch and how they wait."""
    if threads == 1:
        return 'torch computes with 1 thread.'
    found = [f'{name}={os.environ[name]}' for name in (*BRIEF, *POLICIES) if name in os.environ]
    waiting = ', '.join(found) or "by the runtime's own defaults"
    return f'torch computes with {threads} threads, which wait for one another: {waiting}.'
