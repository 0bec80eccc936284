"""The processor cores that a process may use, for the numbers of its workers and threads."""

import os


def cores() -> int:
    """The number of logical CPUs that this process may use: those in its affinity mask, at least 1.

    CPU quotas, such as those of containers, are ignored.
    """
    if hasattr(os, 'sched_getaffinity'):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
