"""Signals to a training run: in one process, to one of two, and to their data workers."""

import multiprocessing
import os
import signal
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mmengine.hooks import Hook
from ranks import on_ranks
from rejection import rejects

from benchmarks.tiny_run import build, final_checkpoint, tiny_cfg
from vit_plugin.engine import OptimWrapper, PreemptionHook
from vit_plugin.engine.faults.preemption import PREEMPTED, Preempted


class Signals(Hook):
    """Sends signals to the processes of the run at the given stages."""

    priority = 'VERY_HIGH'

    def __init__(
        self, number: int = signal.SIGTERM, workers: bool = False, **stages: Callable[[Any], bool]
    ) -> None:
        self.number, self.workers = number, workers
        for stage, when in stages.items():
            setattr(self, stage, lambda runner, when=when, **kwargs: when(runner) and self.send())

    def send(self) -> None:
        for process in torch.multiprocessing.active_children() if self.workers else ():
            os.kill(process.pid, self.number)
        os.kill(os.getpid(), self.number)


def at(iteration: int) -> Callable[[Any], bool]:
    return lambda runner: runner.iter == iteration


def status(cfg: Any, *hooks: Hook) -> int:
    """Train, and return the exit status that a program would have."""
    runner = build(cfg)
    for hook in hooks:
        runner.register_hook(hook)
    try:
        runner.train()
    except Preempted as end:
        return end.code
    return 0


def saved_step(work_dir: Path) -> int:
    path = (work_dir / PREEMPTED).read_text()
    assert path == str(final_checkpoint(work_dir))
    return torch.load(path, weights_only=False)['meta']['iter']


def test_a_signal_to_all_processes_saves_this_step_and_the_next_run_goes_on(tmp_path):
    handlers = [signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGUSR1)]
    sent = Signals(signal.SIGUSR1, workers=True, before_train_iter=at(5))
    assert status(tiny_cfg(tmp_path, 'iter', workers=1), sent) == 128 + signal.SIGUSR1
    assert saved_step(tmp_path) == 6
    assert handlers == [signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGUSR1)]

    assert status(tiny_cfg(tmp_path, 'iter', resume=True)) == 0
    assert not (tmp_path / PREEMPTED).exists()
    assert torch.load(final_checkpoint(tmp_path), weights_only=False)['meta']['iter'] == 12


@pytest.mark.nightly
def test_a_second_signal_and_one_during_a_save_change_nothing(tmp_path):
    again = Signals(
        signal.SIGUSR1, before_save_checkpoint=lambda runner: True, after_train_iter=at(3)
    )
    sent = Signals(workers=True, before_train_iter=at(3))
    assert status(tiny_cfg(tmp_path, workers=1), sent, again) == 128 + signal.SIGTERM
    assert saved_step(tmp_path) == 4


def test_before_the_first_step_there_is_nothing_to_save(tmp_path):
    (tmp_path / 'last_checkpoint').write_text('of_another_run.pth')
    assert status(tiny_cfg(tmp_path), Signals(before_run=lambda runner: True)) == 143
    assert (tmp_path / PREEMPTED).read_text() == ''
    assert not list(tmp_path.glob('*.pth'))
    assert (
        'SIGTERM came before the first step, so that there was nothing to save'
        in next(tmp_path.glob('*/*.log')).read_text()
    )


@pytest.mark.nightly
def test_a_validation_and_one_step_come_first(tmp_path):
    assert status(tiny_cfg(tmp_path), Signals(before_val_iter=at(4))) == 143
    assert saved_step(tmp_path) == 5
    assert list(tmp_path.glob('best*'))


@pytest.mark.parametrize('interval', [2, 3])
def test_accumulated_gradients_are_not_lost(monkeypatch, interval):
    parameter = torch.nn.Parameter(torch.ones(1))
    wrapper = OptimWrapper(optimizer=torch.optim.SGD([parameter], lr=0.1), accumulative_counts=4)
    wrapper.initialize_count_status(torch.nn.Linear(1, 1), 0, 12)
    runner, hook, asked = (
        SimpleNamespace(optim_wrapper=wrapper, iter=0),
        PreemptionHook(interval=interval),
        [],
    )
    monkeypatch.setattr(hook, '_agree', lambda: asked.append(runner.iter + 1) or 0)
    for runner.iter in range(12):
        wrapper.update_params((parameter**2).sum())
        hook.after_train_iter(runner, 0)
    assert asked == [4, 8, 12]


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore:.*fork.*:DeprecationWarning')
def test_forked_processes_end_by_the_signal(tmp_path):
    """MMDetection's ``eval_map`` makes a pool for each validation, which ends its processes by
    SIGTERM.
    """
    forks = multiprocessing.get_context('fork')
    with PreemptionHook().listening(SimpleNamespace(work_dir=str(tmp_path))):
        process = forks.Process(target=time.sleep, args=(60,), daemon=True)
        process.start()
        process.terminate()  # while it starts
        process.join(200)
        assert process.exitcode == -signal.SIGTERM
        for _ in range(20):
            with forks.Pool(2) as pool:  # terminates it
                pool.starmap(max, [(i, 1) for i in range(8)])


def preempt_one(work_dir: str) -> None:
    warnings.simplefilter('ignore')  # torch's about an argument that MMEngine gives
    rank = torch.distributed.get_rank()
    sent = [Signals(before_train_iter=at(1))] if rank == 1 else []
    cfg = tiny_cfg(
        work_dir, launcher='pytorch', experiment_name='tiny', **{'train_cfg.val_interval': 10}
    )
    assert status(cfg, *sent) == 143, rank


def test_a_signal_to_one_of_two_stops_both(tmp_path, launched):
    on_ranks(2, tmp_path, preempt_one, str(tmp_path / 'work'))
    assert saved_step(tmp_path / 'work') == 2


def test_wrong_settings_are_a_sentence():
    with rejects(r"PreemptionHook: signals\[0\]='SIGTREM' .* did you mean 'SIGTERM'"):
        PreemptionHook(signals=['SIGTREM'])
    with rejects('PreemptionHook: interval=0 must be greater than or equal to 1'):
        PreemptionHook(interval=0)
