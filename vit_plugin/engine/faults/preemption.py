"""Save and stop when the cluster asks for the machine."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
import torch.distributed as dist
from mmengine.dist import barrier, get_world_size, is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner

from anyfolder.complete import write_text
from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.registry import HOOKS

from ..checkpoints.hook import CheckpointHook
from ..distributed import PART_OF_TIMEOUT, read_timeout
from ..step import is_accumulating

PREEMPTED = 'preempted'  # file in the work directory that names the checkpoint


class Preempted(SystemExit):
    """The run has saved and stops, with exit status 128 + signal number, as if killed by it.

    It is not 0, because the training is not done. Kubernetes counts a pod that ends with 0 as
    complete, and its policies restart 128 and above.
    """

    def __init__(self, number: int) -> None:
        super().__init__(128 + number)


@HOOKS.register_module()
class PreemptionHook(Hook):
    """Saves and stops all processes when one of them receives a signal.

    At the end of each step, the ranks agree whether one was signalled. If so, all save this step,
    rank 0 writes the checkpoint's path to the file ``preempted`` in the work directory, and all
    leave with :class:`Preempted`. The next run removes that file. With gradient accumulation, they
    wait for the optimizer's step. A signal during a validation waits for its end and the next
    step, so the delay is at most one validation and ``interval`` steps.

    A signal before the first step saves nothing. Further signals, and signals to data workers, have
    no effect. A run in a thread of a program that handles signals itself does not listen.

    Args:
        interval: the ranks agree every ``interval`` steps, at the end of gradient accumulation.
        signals: the signals to react to. Slurm sends SIGTERM at the end of a job, and SIGUSR1 where
            a job asks for it.
    """

    priority = 'LOWEST'  # after everything else in the step, its checkpoint included

    def __init__(
        self,
        interval: PositiveInt = 1,
        signals: Sequence[Literal['SIGTERM', 'SIGUSR1', 'SIGUSR2', 'SIGHUP', 'SIGXCPU']] = (
            'SIGTERM',
            'SIGUSR1',
        ),
    ) -> None:
        self.interval = interval
        # Windows has only a few signals.
        self.signals = [signal.Signals[name] for name in signals if hasattr(signal, name)]
        self._received = 0  # number of the first signal
        self._agreed_at = 0  # iteration after which the ranks last agreed
        self._listens = False
        self._group: Any = None

    @contextmanager
    def listening(self, runner: Runner) -> Iterator[None]:
        """Record the signals within this context."""
        if threading.current_thread() is not threading.main_thread():
            names = ' or '.join(number.name for number in self.signals)
            runner.logger.info(f'A run in a thread does not react to {names}.')
            yield
            return
        if is_main_process():
            Path(runner.work_dir, PREEMPTED).unlink(missing_ok=True)
        self._received = 0

        def receive(number: int, frame: object) -> None:
            self._received = self._received or number

        previous = {number: signal.signal(number, receive) for number in self.signals}
        self._listens = True
        self._guard_forks()
        try:
            yield
        finally:
            self._listens = False
            for number, handler in previous.items():
                signal.signal(number, handler)

    def _guard_forks(self) -> None:
        """Let SIGTERM end forked processes, which would otherwise inherit the handler.

        The frameworks' metrics compute in pools of processes, which they end by SIGTERM, some right
        after their start. The other signals are ignored there: a launcher sends them to all
        processes of a run, also to a data worker that :func:`_shield_worker` has not reached yet.
        The signals are blocked over the fork, since Python would lose one that arrives right after
        it.
        """
        masks = threading.local()

        def block() -> None:
            masks.before = signal.pthread_sigmask(
                signal.SIG_BLOCK, self.signals if self._listens else ()
            )

        def unblock() -> None:
            signal.pthread_sigmask(signal.SIG_SETMASK, masks.before)

        def reset() -> None:
            for number in self.signals if self._listens else ():
                is_term = number == signal.SIGTERM
                signal.signal(number, signal.SIG_DFL if is_term else signal.SIG_IGN)
            self._listens = False
            unblock()

        if hasattr(os, 'register_at_fork'):  # Windows cannot fork
            os.register_at_fork(before=block, after_in_parent=unblock, after_in_child=reset)

    def before_run(self, runner: Runner) -> None:
        """Protect the data workers, which start later, from the signals."""
        loops = (runner.train_loop, runner.val_loop) if self._listens else ()
        for loader in (loop.dataloader for loop in loops if loop is not None):
            loader.worker_init_fn = partial(_shield_worker, self.signals, loader.worker_init_fn)

    def before_train(self, runner: Runner) -> None:
        if get_world_size() > 1 and dist.get_backend() != 'gloo':
            # The CPU need not wait for the device, and sees a rank that hangs before NCCL's
            # watchdog ends this one.
            timeout = timedelta(seconds=PART_OF_TIMEOUT * read_timeout(runner.cfg.get('env_cfg')))
            self._group = dist.new_group(backend='gloo', timeout=timeout)
        if number := self._agree():
            # Not the path in `last_checkpoint`, which may belong to another run.
            path = (runner._load_from or '') if runner._resume else ''
            self._stop(runner, number, path, 'before the first step, so there was nothing to save')

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        since_agreed = runner.iter + 1 - self._agreed_at
        if since_agreed < self.interval or is_accumulating(runner.optim_wrapper):
            return
        self._agreed_at = runner.iter + 1
        if number := self._agree():
            # MMEngine's hook cannot save within an epoch, nor can other subclasses of it.
            hook = next((hook for hook in runner.hooks if isinstance(hook, CheckpointHook)), None)
            path = hook.save_now(runner) if hook else ''
            why = '' if hook else ', but without vit_plugin.CheckpointHook nothing was saved'
            self._stop(runner, number, path, f'after step {runner.iter + 1}{why}')

    def _agree(self) -> int:
        """The number of a signal that any rank has received, or 0."""
        if get_world_size() == 1:
            return self._received
        number = torch.tensor(self._received)
        dist.all_reduce(number, dist.ReduceOp.MAX, self._group)
        return int(number)

    def _stop(self, runner: Runner, number: int, path: str, when: str) -> None:
        """Record and log the checkpoint, end the hooks, and raise :class:`Preempted`.

        Args:
            runner: the run.
            number: the number of the signal.
            path: the path of the checkpoint, or ``''``.
            when: when the signal came, the end of the logged clause.
        """
        if is_main_process():
            write_text(Path(runner.work_dir, PREEMPTED), path)
        outcome = f'the checkpoint is {path}' if path else 'there is no checkpoint'
        runner.logger.warning(
            f'{signal.Signals(number).name} came {when}: {outcome}; continue with --resume.'
        )
        runner.call_hook('after_run')
        barrier()  # a launcher may end all processes once one has left
        raise Preempted(number)


def _shield_worker(
    signals: Sequence[int], init: Callable[[int], None] | None, worker_id: int
) -> None:
    """Let a data worker survive the signals, then call its own ``init``.

    The run still makes the step for which the worker loads. Without this, a SIGTERM from any
    process but its parent ends the worker, and Slurm sends one to all processes.
    """
    if hasattr(signal, 'sigwaitinfo'):  # on Linux
        signal.pthread_sigmask(signal.SIG_BLOCK, signals)
        threading.Thread(target=_exit_on_sigterm, args=(os.getppid(), signals), daemon=True).start()
    if init is not None:
        init(worker_id)


def _exit_on_sigterm(sender: int, signals: Sequence[int]) -> None:
    """End this process at a SIGTERM of the process ``sender``. Drop all other signals."""
    while True:
        received = signal.sigwaitinfo(signals)
        if received.si_pid == sender and received.si_signo == signal.SIGTERM:
            os._exit(0)
