"""Keep torch's number of threads over a resume, since it decides how sums are rounded."""

import os

import torch
from mmengine.device import get_device
from mmengine.runner import Runner

from anyfolder.cores import cores
from anyfolder.wording import counted

THREADS_KEY = 'threads'  # in the runtime information that checkpoints have
THREADS_VARIABLE = 'OMP_NUM_THREADS'


def keep_threads(runner: Runner) -> None:
    """Record the number of threads of a training on a CPU, and restore it on resume.

    ``OMP_NUM_THREADS`` takes precedence; then it warns that sums are rounded differently. It also
    warns if the machine has fewer cores than the run has threads.
    """
    threads = torch.get_num_threads()
    recorded = runner.message_hub.runtime_info.get(THREADS_KEY) if runner._resume else None
    if isinstance(recorded, int) and 0 < recorded != threads and get_device() == 'cpu':
        if THREADS_VARIABLE in os.environ:
            runner.logger.warning(
                f'The run began with {recorded} threads, and {THREADS_VARIABLE} gives it '
                f'{threads}: sums are rounded differently from here on.'
            )
        else:
            torch.set_num_threads(recorded)
            threads = recorded
            if (available := cores()) < recorded:
                runner.logger.warning(
                    f'The run continues with the {recorded} threads of its start, so that its '
                    f'results stay the same, but this machine has {counted(available, "core")}. '
                    f'{THREADS_VARIABLE}={available} is faster, but rounds sums differently.'
                )
    runner.message_hub.update_info(THREADS_KEY, threads)
