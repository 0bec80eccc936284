"""Train the members of a sweep, here or as Slurm jobs."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from vit_plugin.errors import ConfigError, needed_by

from .grid import FINISHED, LOG, Member


def start(member: Member, env: Mapping[str, str] | None = None) -> subprocess.Popen:
    """Start a member's training. Its output is added to the log in its folder."""
    member.folder.mkdir(parents=True, exist_ok=True)
    with open(member.folder / LOG, 'ab') as log:
        return subprocess.Popen(member.command, stdout=log, stderr=subprocess.STDOUT, env=env)


def finish(member: Member, training: subprocess.Popen) -> str:
    """Wait for a training's end. Returns why it failed, or an empty text."""
    code = training.wait()
    if code == 0:
        (member.folder / FINISHED).touch()
        return ''
    return f'ended by {signal.Signals(-code).name}' if code < 0 else f'exit status {code}: {member.last_line}'


def run_here(members: Sequence[Member], jobs: int = 1, tell: Callable[[str], None] = print) -> dict[Path, str]:
    """Train the members that are not finished, on this machine.

    Args:
        members: the members.
        jobs: how many train at the same time. Each has its share of the cores, unless ``OMP_NUM_THREADS`` is set.
        tell: is given a line at the beginning and end of each member.

    Returns:
        The folders of the members that failed, and why.

    Raises:
        SystemExit: on SIGTERM. Then, as on Ctrl-C, the trainings are told to save and stop, and waited for.
    """
    env = dict(os.environ)
    if jobs > 1:
        env.setdefault('OMP_NUM_THREADS', str(max((os.cpu_count() or 1) // jobs, 1)))
    failed: dict[Path, str] = {}
    for member in members:
        if member.is_finished:
            tell(f'{member.folder.name}: finished before')
    waiting = [member for member in members if not member.is_finished]
    running: dict[subprocess.Popen, Member] = {}
    earlier = signal.signal(signal.SIGTERM, _leave)
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                member = waiting.pop(0)
                tell(f'{member.folder.name}: runs, {len(waiting)} wait')
                running[start(member, env)] = member
            time.sleep(0.1)
            for training in [training for training in running if training.poll() is not None]:
                member = running.pop(training)
                if why := finish(member, training):
                    failed[member.folder] = why
                    tell(f'{member.folder.name}: failed, {why}')
    finally:
        for training in running:
            training.terminate()
        for training in running:
            training.wait()
        signal.signal(signal.SIGTERM, earlier)
    return failed


def _leave(number: int, _: object) -> NoReturn:
    raise SystemExit(128 + number)


def run_on_slurm(members: Sequence[Member], partition: str, folder: Path, settings: Mapping[str, Any],
                 tell: Callable[[str], None] = print, cluster: str = 'slurm') -> dict[Path, str]:
    """Train the members that are not finished as one array of Slurm jobs, by submitit, and wait for all.

    Args:
        members, tell: see :func:`run_here`. Every node must see the folders.
        partition: the partition.
        folder: folder for submitit's files. Its path is the jobs' name.
        settings: other settings of submitit's executor, such as ``timeout_min`` or ``slurm_gpus_per_node``.
        cluster: ``'slurm'``, or submitit's ``'local'`` to run the jobs on this machine.

    Returns:
        See :func:`run_here`.

    Raises:
        ConfigError: if Slurm is not there or refuses the jobs, if a setting is unknown, or if jobs of an earlier call
            still wait or run.
        MissingExtraError: if submitit is not installed.
    """
    with needed_by('--slurm'):
        import submitit
    name = str(folder.resolve())
    waiting = [member for member in members if not member.is_finished]
    try:
        executor = submitit.AutoExecutor(folder, cluster=cluster)
        if cluster == 'slurm' and (earlier := _jobs_named(name)):
            raise RuntimeError(f'those of an earlier call still wait or run: {earlier}; end them with scancel, or wait')
        executor.update_parameters(name=name, slurm_partition=partition, **settings)
        with executor.batch():
            jobs = [executor.submit(train, member) for member in waiting]
    except (RuntimeError, NameError, ValueError, TypeError, OSError, submitit.core.utils.FailedJobError) as error:
        raise ConfigError(f'--slurm {partition}: the jobs were not submitted '
                          f'({" ".join(str(error).split()).rstrip(".")}).') from error
    failed = {}
    try:
        for member, job in zip(waiting, jobs, strict=True):
            tell(f'{member.folder.name}: job {job.job_id}')
        for member, job in zip(waiting, jobs, strict=True):
            error = job.exception()  # the job was killed, or submitit did not get its result
            if why := f'job {job.job_id} is {job.state}: {member.last_line}' if error else job.result():
                failed[member.folder] = why
                tell(f'{member.folder.name}: failed, {why}')
    except KeyboardInterrupt:  # two jobs must never train in one folder
        for job in jobs:
            job.cancel(check=False)
        raise
    return failed


def train(member: Member) -> str:
    """Train a member within a job, see :func:`finish`."""
    return finish(member, start(member))


def _jobs_named(name: str) -> str:
    """The numbers of this user's jobs of a name, that wait or run."""
    queue = subprocess.run(['squeue', '--me', '--noheader', '--format=%i', f'--name={name}'], text=True,
                           capture_output=True, check=False)
    return ', '.join(queue.stdout.split())
