"""Check that a run stopped after any iteration and resumed ends bit-identical to one never stopped.

    python benchmarks exactness [--workers 0 2 3] [--stops 1 2 ... 12]

The tiny run (``tiny_run.py``) has all that draws random numbers or keeps state: augmentation,
mixup, dropout, drop path, EMA, clipping, schedules and a best checkpoint. It is stopped after each
iteration with each number of data workers, in the epoch-based and the iteration-based loop and with
a wider model. The whole final checkpoint and the history of validations are compared with those of
an undisturbed run without workers. It takes 3 s for each stop on a quiet machine.
"""

import argparse
import json
import sys
import tempfile
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from mmengine.config import Config
from mmengine.hooks import Hook
from mmengine.runner import Runner

from benchmarks.tiny_run import ITERATIONS, WIDE, build, differences, final_checkpoint, tiny_cfg
from vit_plugin.engine import CheckpointHook


class StoppedError(Exception):
    """Ends a run at a chosen iteration."""


class StopHook(Hook):
    """Saves the state after an iteration and ends the run."""

    priority = 'LOWEST'

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        if runner.iter + 1 == self.iteration:
            next(hook for hook in runner.hooks if isinstance(hook, CheckpointHook)).save_now(runner)
            raise StoppedError


def train(cfg: Config, stop: int | None = None) -> Runner:
    """Train to the end, or until the iteration ``stop`` has been saved."""
    runner = build(cfg)
    if stop:
        runner.register_hook(StopHook(stop))
    with suppress(StoppedError):
        runner.train()
    return runner


def history(work_dir: str | Path) -> dict[str, Any]:
    """The record of a run's validations, without times."""
    record = json.loads(Path(work_dir, 'metrics.json').read_text())
    return {name: value for name, value in record.items() if name not in ('seconds', 'clock')}


def compare(first: str | Path, second: str | Path) -> list[str]:
    """The names of values that differ between two finished runs."""
    names = differences(final_checkpoint(first), final_checkpoint(second))
    return names if history(first) == history(second) else [*names, 'metrics.json']


def stop_and_resume(
    work_dir: str | Path,
    stop: int,
    loop: str,
    workers: int = 0,
    workers_after: int | None = None,
    **options: Any,
) -> None:
    """Train until an iteration has been saved, then resume in a new runner to the end.

    Args:
        work_dir: folder of the run.
        stop: the iteration, counted from 1.
        loop: ``epoch`` or ``iter``.
        workers: number of data workers.
        workers_after: number of data workers after resuming; the same by default.
        options: further options of :func:`benchmarks.tiny_run.tiny_cfg`.
    """
    train(tiny_cfg(work_dir, loop, workers, **options), stop)
    train(
        tiny_cfg(
            work_dir,
            loop,
            workers if workers_after is None else workers_after,
            **options,
            resume=True,
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--workers', type=int, nargs='+', default=[0, 2, 3])
    parser.add_argument('--stops', type=int, nargs='+', default=range(1, ITERATIONS + 1))
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    runs, wrong = 0, []
    for loop, options in (('epoch', {}), ('iter', {}), ('epoch', WIDE)):
        with tempfile.TemporaryDirectory() as folder:
            train(tiny_cfg(Path(folder, 'whole'), loop, **options))
            for workers in args.workers:
                for stop in args.stops:
                    name = f'{loop}{"_wide" if options else ""}_{workers}_{stop}'
                    stop_and_resume(Path(folder, name), stop, loop, workers, **options)
                    different = compare(Path(folder, 'whole'), Path(folder, name))
                    runs += 1
                    if different:
                        wrong.append(name)
                        print(
                            f'{name}: {len(different)} differ, such as {different[0]}', flush=True
                        )
    print(
        f'{runs} runs stopped and resumed (loops epoch and iter, and a wider model, workers '
        f'{args.workers}): {runs - len(wrong)} bit-identical to the undisturbed run, {len(wrong)} '
        'not'
    )
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
