"""Importing this module makes every fsync of the process take 20 ms longer, as on a shared disk.

The runs of :mod:`kills` import it. On a fast disk, the checkpoint of the tiny run is written in a
few milliseconds, so a kill would rarely hit the save.
"""

import os
import time

_fsync = os.fsync


def slow_fsync(descriptor: int) -> None:
    time.sleep(0.02)
    _fsync(descriptor)


os.fsync = slow_fsync
