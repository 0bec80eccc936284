"""Makes every fsync of a process take 20 ms more, as on a shared file system.

The runs of kills.py import it.

On a fast disk the checkpoint of the tiny run is written in a few milliseconds, so a kill rarely
hits it.
"""

import os
import time

_fsync = os.fsync


def slow_fsync(descriptor: int) -> None:
    time.sleep(0.02)
    _fsync(descriptor)


os.fsync = slow_fsync
