"""Signals to a training run in one process, to one of two ranks, and to data workers."""

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
from mmengine.hooks import CheckpointHook, Hook
from ranks import on_ranks
from rejection import rejects

from benchmarks.tiny_run import build, final_checkpoint, tiny_cfg
from vit_plugin.engine import OptimWrapper, PreemptionHook
from vit_plugin.engine.faults.preemption import PREEMPTED, Preempted

ENDED_BY_SIGTERM = 128 + signal.SIGTERM  # exit status


class Signals(Hook):
    """Sends signals to the process of the run.

    Args:
        number: the number of the signal.
        workers: whether data workers get it, too.
        **stages: for the name of a hook method, a function of the runner that tells whether to
            send the signal there.
    """

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
    """A condition that holds exactly when this number of iterations is done."""
    return lambda runner: runner.iter == iteration


def exit_status(cfg: Any, *hooks: Hook) -> int:
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
    """The iteration of the checkpoint that a preempted run has marked."""
    path = (work_dir / PREEMPTED).read_text()
    assert path == str(final_checkpoint(work_dir))
    return torch.load(path, weights_only=False)['meta']['iter']


@pytest.mark.nightly
def test_signal_saves_the_step_and_the_next_run_resumes(tmp_path):
    handlers = [signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGUSR1)]
    sent = Signals(signal.SIGUSR1, workers=True, before_train_iter=at(5))
    assert exit_status(tiny_cfg(tmp_path, 'iter', workers=1), sent) == 128 + signal.SIGUSR1
    assert saved_step(tmp_path) == 6
    assert handlers == [signal.getsignal(name) for name in (signal.SIGTERM, signal.SIGUSR1)]

    assert exit_status(tiny_cfg(tmp_path, 'iter', resume=True)) == 0
    assert not (tmp_path / PREEMPTED).exists()
    assert torch.load(final_checkpoint(tmp_path), weights_only=False)['meta']['iter'] == 12


@pytest.mark.nightly
def test_further_signals_change_nothing(tmp_path):
    again = Signals(
        signal.SIGUSR1, before_save_checkpoint=lambda runner: True, after_train_iter=at(3)
    )
    sent = Signals(workers=True, before_train_iter=at(3))
    assert exit_status(tiny_cfg(tmp_path, workers=1), sent, again) == ENDED_BY_SIGTERM
    assert saved_step(tmp_path) == 4


def test_signal_before_the_first_step_saves_nothing(tmp_path):
    (tmp_path / 'last_checkpoint').write_text('of_another_run.pth')
    sent = Signals(before_run=lambda runner: True)
    assert exit_status(tiny_cfg(tmp_path), sent) == ENDED_BY_SIGTERM
    assert (tmp_path / PREEMPTED).read_text() == ''
    assert not list(tmp_path.glob('*.pth'))
    assert (
        'SIGTERM came before the first step, so there was nothing to save'
        in next(tmp_path.glob('*/*.log')).read_text()
    )


@pytest.mark.nightly
def test_signal_in_a_validation_takes_one_more_step(tmp_path):
    assert exit_status(tiny_cfg(tmp_path), Signals(before_val_iter=at(4))) == ENDED_BY_SIGTERM
    assert saved_step(tmp_path) == 5
    assert list(tmp_path.glob('best*'))


@pytest.mark.parametrize('interval', [2, 3])
def test_ranks_agree_only_when_the_optimizer_has_stepped(monkeypatch, interval):
    parameter = torch.nn.Parameter(torch.ones(1))
    wrapper = OptimWrapper(optimizer=torch.optim.SGD([parameter], lr=0.1), accumulative_counts=4)
    wrapper.initialize_count_status(torch.nn.Linear(1, 1), 0, 12)
    runner, hook = (
        SimpleNamespace(optim_wrapper=wrapper, iter=0),
        PreemptionHook(interval=interval),
    )
    agreed: list[int] = []  # the steps after which the ranks agree on a signal

    def agree() -> int:
        agreed.append(runner.iter + 1)
        return 0  # no signal

    monkeypatch.setattr(hook, '_agree', agree)
    for runner.iter in range(12):
        wrapper.update_params((parameter**2).sum())
        hook.after_train_iter(runner, 0)
    assert agreed == [4, 8, 12]


def test_other_checkpoint_hook_saves_nothing(tmp_path, monkeypatch):
    hook, messages = PreemptionHook(), []
    monkeypatch.setattr(hook, '_agree', lambda: int(signal.SIGTERM))
    runner = SimpleNamespace(
        hooks=[CheckpointHook()],  # MMEngine's
        optim_wrapper=None,
        iter=3,
        work_dir=tmp_path,
        logger=SimpleNamespace(warning=messages.append),
        call_hook=lambda name: None,
    )
    with pytest.raises(Preempted):
        hook.after_train_iter(runner)
    assert (tmp_path / PREEMPTED).read_text() == ''
    assert 'after step 4, but without vit_plugin.CheckpointHook nothing was saved' in messages[0]


@pytest.mark.nightly
@pytest.mark.filterwarnings('ignore:.*fork.*:DeprecationWarning')
def test_forked_processes_are_ended_by_signals(tmp_path):
    """MMDetection's ``eval_map`` ends the processes of its pools by SIGTERM."""
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


@pytest.mark.filterwarnings('ignore:.*fork.*:DeprecationWarning')
def test_other_signals_do_not_end_forked_processes(tmp_path):
    """Slurm sends SIGUSR1 to all processes, maybe while a data worker starts."""
    forks = multiprocessing.get_context('fork')
    with PreemptionHook().listening(SimpleNamespace(work_dir=str(tmp_path))):
        process = forks.Process(target=time.sleep, args=(0.1,), daemon=True)
        process.start()
        os.kill(process.pid, signal.SIGUSR1)  # while it starts
        process.join(200)
    assert process.exitcode == 0


def preempt_one(work_dir: str) -> None:
    """Train on two ranks; only the second gets a signal."""
    warnings.simplefilter('ignore')  # of torch, about an argument that MMEngine passes
    rank = torch.distributed.get_rank()
    sent = [Signals(before_train_iter=at(1))] if rank == 1 else []
    cfg = tiny_cfg(
        work_dir, launcher='pytorch', experiment_name='tiny', **{'train_cfg.val_interval': 10}
    )
    assert exit_status(cfg, *sent) == ENDED_BY_SIGTERM, rank


def test_signal_to_one_of_two_ranks_stops_both(tmp_path, launched):
    on_ranks(2, tmp_path, preempt_one, str(tmp_path / 'work'))
    assert saved_step(tmp_path / 'work') == 2


def test_wrong_settings_raise():
    with rejects(r"PreemptionHook: signals\[0\]='SIGTREM' .* did you mean 'SIGTERM'"):
        PreemptionHook(signals=['SIGTREM'])
    with rejects('PreemptionHook: interval=0 must be greater than or equal to 1'):
        PreemptionHook(interval=0)
