"""``vit-plugin train --check``: start a run like any other, and end it before its first step."""

from pathlib import Path

import torch
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from vit_plugin.threads import describe_threads

DATA_PICTURES = ('labels.png', 'train_batch.png')  # drawn by ReportHook before the first step


def check_run(runner: Runner) -> None:
    """Start a run, load a batch of each of its data sets, and end it before its first step.

    Raises:
        Exception: whatever the run raises up to that point.
    """
    runner.register_hook(CheckHook())
    try:
        runner.train()
    except RunChecked:
        if is_main_process():
            print(describe_threads(torch.get_num_threads()), _outcome(runner.work_dir), sep='\n')


class RunChecked(BaseException):
    """Ends a run before its first step, past all error handlers."""


class CheckHook(Hook):
    """Loads the first batches of a run after all other hooks have begun, and ends it.

    Raises:
        RunChecked: in all processes.
    """

    priority = 'LOWEST'

    def before_train(self, runner: Runner) -> None:
        for loop in (runner.train_loop, runner.val_loop):
            if loop is not None:
                next(iter(loop.dataloader))
        raise RunChecked


def _outcome(work_dir: str) -> str:
    """The last line that a check prints, with the pictures of the data if there are any."""
    pictures = [str(path) for name in DATA_PICTURES if (path := Path(work_dir, name)).is_file()]
    hint = f' Look at {" and ".join(pictures)}' if pictures else ''
    return f'The run was checked up to its first step, and nothing was trained.{hint}'
