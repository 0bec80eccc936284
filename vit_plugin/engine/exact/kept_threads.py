"""Keep torch's number of threads over a resume, since it decides how sums are rounded."""

import os

import torch
from mmengine.device import get_device
from mmengine.runner import Runner

from anyfolder.cores import cores
from anyfolder.wording import counted

THREADS_KEY = 'threads'  # in the runtime information that checkpoints have
VARIABLE = 'OMP_NUM_THREADS'


def keep_threads(runner: Runner) -> None:
    """Record the number of threads of a training on a CPU, and restore it on resume.

    ``OMP_NUM_THREADS`` takes precedence. A warning tells if results may be rounded differently, or
    if the machine has fewer cores.
    """
    now = torch.get_num_threads()
    began = runner.message_hub.runtime_info.get(THREADS_KEY) if runner._resume else None
    if isinstance(began, int) and 0 < began != now and get_device() == 'cpu':
        if VARIABLE in os.environ:
            runner.logger.warning(
                f'The run began with {began} threads, and {VARIABLE} gives it {now}: sums are '
                'rounded differently from here on.'
            )
        else:
            torch.set_num_threads(began)
            now = began
            if (here := cores()) < began:
                runner.logger.warning(
                    f'The run continues with the {began} threads of its start, so that its '
                    f'results stay the same, but this machine has {counted(here, "core")}. '
                    f'{VARIABLE}={here} is faster, but rounds sums differently.'
                )
    runner.message_hub.update_info(THREADS_KEY, now)
