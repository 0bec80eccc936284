"""The number of torch's threads, which decides how sums are rounded, from start to resume."""

import os

import torch
from mmengine.device import get_device
from mmengine.runner import Runner

from anyfolder.cores import cores

THREADS_KEY = 'threads'  # in the runtime information that checkpoints have
VARIABLE = 'OMP_NUM_THREADS'


def keep_threads(runner: Runner) -> None:
    """Let a resumed training on a CPU have the threads with which it began, and record them.

    A number in ``OMP_NUM_THREADS`` is left as it is. A warning says if the results may be rounded
    otherwise, or if the machine has fewer cores.
    """
    now = torch.get_num_threads()
    began = runner.message_hub.runtime_info.get(THREADS_KEY) if runner._resume else None
    if isinstance(began, int) and 0 < began != now and get_device() == 'cpu':
        if VARIABLE in os.environ:
            runner.logger.warning(
                f'The run began with {began} threads, and {VARIABLE} gives it {now}: sums are '
                'rounded otherwise from here on.'
            )
        else:
            torch.set_num_threads(began)
            now = began
            if (here := cores()) < began:
                runner.logger.warning(
                    f'The run continues with the {began} threads of its start, so that its '
                    f'results stay the same, but this machine has {here} core{"s" * (here > 1)}. '
                    f'{VARIABLE}={here} is faster, and rounds sums otherwise.'
                )
    runner.message_hub.update_info(THREADS_KEY, now)
