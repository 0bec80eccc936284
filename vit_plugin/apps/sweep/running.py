"""Run the members of a sweep."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.writing import write_text

from .grid import Member, as_text

FINISHED, LOG, JOB = 'finished', 'sweep.log', 'job'


def is_finished(member: Member) -> bool:
    """Whether a member's training has ended well."""
    return (member.folder / FINISHED).is_file()


class Trainings:
    """The trainings that run now. They end together.

    Inside its context, a SIGTERM to this process goes to all of them. They save and stop, and no other one begins.
    An interrupt from the keyboard kills them, since two must never train in one folder.

    Raises:
        SystemExit: at the end of the context, if this process has received SIGTERM.
    """

    def __init__(self) -> None:
        self._running: set[subprocess.Popen] = set()
        self._signal: int | None = None

    def __enter__(self) -> 'Trainings':
        # Only the main thread can listen to signals.
        self._listens = threading.current_thread() is threading.main_thread()
        if self._listens:
            self._previous = signal.signal(signal.SIGTERM, self._hand_on)
        return self

    def _hand_on(self, number: int, frame: object) -> None:
        self._signal = number
        for training in [*self._running]:
            training.send_signal(number)

    def kill(self) -> None:
        """Kill all, and begin no other one."""
        self._signal = signal.SIGKILL
        for training in [*self._running]:
            training.kill()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is KeyboardInterrupt:
            self.kill()
        if self._listens:
            signal.signal(signal.SIGTERM, self._previous)
        if kind is None and self._signal:
            raise SystemExit(128 + self._signal)

    def run(self, command: Sequence[str], folder: str, env: Mapping[str, str] | None = None) -> int | None:
        """Run a training and return its exit status. What it says is added to ``sweep.log`` in its folder.

        The result is None if it was not begun, because the others were told to end.
        """
        Path(folder).mkdir(parents=True, exist_ok=True)
        with open(Path(folder, LOG), 'ab') as log:
            if self._signal:
                return None
            with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=env) as training:
                self._running.add(training)
                if self._signal:  # it came while this one began
                    training.send_signal(self._signal)
                code = training.wait()
                self._running.discard(training)
        if code == 0:
            write_text(Path(folder, FINISHED), '')
        return code


def train(command: Sequence[str], folder: str) -> int | None:
    """Run one training in this process's place. See :class:`Trainings`."""
    with Trainings() as trainings:
        return trainings.run(command, folder)


def last_words(member: Member) -> str:
    """The last line that a member's training has said."""
    try:
        lines = (member.folder / LOG).read_text(errors='replace').strip().splitlines()
    except OSError:
        return 'it has no log'
    return lines[-1].removeprefix('Error: ') if lines else 'it said nothing'


def cause(code: int, member: Member) -> str:
    """Why a member failed. Who is killed by a signal has no last words on it."""
    return f'ended by {signal.Signals(-code).name}' if code < 0 else f'exit status {code}: {last_words(member)}'


def run_here(members: Sequence[Member], command: Callable[[Member], Sequence[str]], jobs: int = 1,
             tell: Callable[[str], None] = print) -> dict[Path, str]:
    """Run members on this machine. Those that are finished are left out.

    Args:
        members: the members.
        command: the command line that trains a member, and goes on from its last checkpoint if there is one.
        jobs: how many run at the same time. Each has its share of the cores, unless ``OMP_NUM_THREADS`` is set.
        tell: is given a line at the beginning and end of each member.

    Returns:
        The folders of the members that failed, with their last words.

    Raises:
        SystemExit: if this process received SIGTERM, after the trainings have saved and stopped.
    """
    failed: dict[Path, str] = {}
    env = dict(os.environ)
    if jobs > 1:
        env.setdefault('OMP_NUM_THREADS', str(max((os.cpu_count() or 1) // jobs, 1)))

    def run(i: int, member: Member) -> None:
        name = f'[{i + 1}/{len(members)}] {member.folder.name}'
        if is_finished(member):
            tell(f'{name}: finished before')
            return
        tell(f'{name}: runs')
        if code := trainings.run(command(member), str(member.folder), env):
            failed[member.folder] = cause(code, member)
            tell(f'{name}: failed, {failed[member.folder]}')

    with ThreadPoolExecutor(jobs) as pool, Trainings() as trainings:
        for done in [pool.submit(run, i, member) for i, member in enumerate(members)]:
            done.result()
    return failed


def run_on_slurm(members: Sequence[Member], command: Callable[[Member], Sequence[str]], partition: str, folder: Path,
                 settings: Mapping[str, Any], tell: Callable[[str], None] = print,
                 cluster: str = 'slurm') -> dict[Path, str]:
    """Run members as one array of Slurm jobs, through the package `submitit`, and wait for all of them.

    Args:
        members, command, tell: see :func:`run_here`. Every node must see the folders.
        partition: the partition.
        folder: folder for submitit's files.
        settings: further settings of submitit's executor, such as ``timeout_min`` or ``slurm_gpus_per_node``.
        cluster: ``'slurm'``, or submitit's ``'local'`` to run the jobs on this machine.

    Returns:
        See :func:`run_here`.

    Raises:
        ConfigError: if Slurm is not there or refuses the jobs, if a setting is unknown, or if jobs of an earlier call
            still wait or run.
        MissingExtraError: if `submitit` is not installed.
    """
    with needed_by('--slurm'):
        import submitit
    waiting = [member for member in members if not is_finished(member)]
    if cluster == 'slurm':
        check_no_jobs(waiting)
    try:
        executor = submitit.AutoExecutor(folder, cluster=cluster)
        executor.update_parameters(name=folder.parent.name, slurm_partition=partition, **settings)
        with executor.batch():
            jobs = [executor.submit(train, [*command(member)], str(member.folder)) for member in waiting]
    except (RuntimeError, NameError, ValueError, TypeError, OSError, submitit.core.utils.FailedJobError) as error:
        raise ConfigError(f'--slurm {partition}: the jobs were not submitted '
                          f'({" ".join(str(error).split()).rstrip(".")}).') from error
    for member, job in zip(waiting, jobs, strict=True):
        write_text(member.folder / JOB, job.job_id)
        tell(f'{member.folder.name}: job {job.job_id}')
    failed = {}
    for member, job in zip(waiting, jobs, strict=True):
        try:
            how = f'exit status {code}' if (code := job.result()) else ''
        except KeyboardInterrupt:  # two jobs must never train in one folder
            for one in jobs:
                one.cancel(check=False)
            raise
        except Exception as error:  # noqa: BLE001  the job was killed, or submitit did not get its result
            how = f'job {job.job_id} is {job.state} ({type(error).__name__})'
        if how:
            failed[member.folder] = f'{how}: {last_words(member)}'
            tell(f'{member.folder.name}: failed, {failed[member.folder]}')
    return failed


def check_no_jobs(members: Sequence[Member]) -> None:
    """Raise a ``ConfigError`` if a job of one of the members still waits or runs."""
    jobs = [path.read_text() for member in members if (path := member.folder / JOB).is_file()]
    if jobs:
        asked = subprocess.run(['squeue', '--noheader', '--format=%i', f'--jobs={",".join(jobs)}'], text=True,
                               capture_output=True, check=False)  # it fails if Slurm has forgotten all of them
        if asked.stdout.split():
            raise ConfigError(f'Jobs of an earlier call still wait or run ({", ".join(asked.stdout.split())}); wait '
                              'for them, or end them with scancel.')


def train_command(script: Path, options: Mapping[str, Any]) -> Callable[[Member], list[str]]:
    """The command line of each member, given the path of ``tools/train.py`` and what all members share."""
    shared = [f'{key}={as_text(value)}' for key, value in options.items()]
    return lambda member: [sys.executable, str(script), member.config, '--work-dir', str(member.folder), '--resume',
                           '--cfg-options', *shared, *member.options]
