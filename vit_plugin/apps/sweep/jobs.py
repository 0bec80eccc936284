"""Train the runs of a sweep, as processes of this machine or as Slurm jobs."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from vit_plugin.errors import ConfigError, needed_by

from .grid import FINISHED, LOG, Run


def start(run: Run, env: Mapping[str, str] | None = None) -> subprocess.Popen:
    """Start a training. Its output is added to the log in its folder."""
    run.folder.mkdir(parents=True, exist_ok=True)
    with open(run.folder / LOG, 'ab') as log:
        return subprocess.Popen(run.command, stdout=log, stderr=subprocess.STDOUT, env=env)


def failure(run: Run, code: int) -> str:
    """Why a training that ended with this exit status failed. If it did not, it is marked as finished."""
    if code == 0:
        (run.folder / FINISHED).touch()
        return ''
    return f'ended by {signal.Signals(-code).name}' if code < 0 else f'exit status {code}: {last_line(run)}'


def last_line(run: Run) -> str:
    """The last line of a run's log."""
    path = run.folder / LOG
    lines = path.read_text(errors='replace').strip().splitlines() if path.is_file() else []
    return lines[-1].removeprefix('Error: ') if lines else f'{LOG} is empty'


def run_here(runs: Sequence[Run], jobs: int = 1) -> dict[Path, str]:
    """Train the runs that are not finished on this machine, ``jobs`` at the same time.

    Each has its share of the cores, unless ``OMP_NUM_THREADS`` is set.

    Returns:
        The folders of the runs that failed, and why.

    Raises:
        SystemExit: on SIGTERM. Then, as on Ctrl-C, the trainings are asked to save and stop, and waited for.
    """
    env = {'OMP_NUM_THREADS': str(max((os.cpu_count() or 1) // jobs, 1)), **os.environ} if jobs > 1 else None
    failed: dict[Path, str] = {}
    waiting, running = _unfinished(runs), dict[Run, subprocess.Popen]()
    earlier = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                run = waiting.pop(0)
                print(f'{run.folder.name}: runs, {len(waiting)} wait')
                running[run] = start(run, env)
            time.sleep(0.1)
            for run in [run for run, process in running.items() if process.poll() is not None]:
                _report(run, failure(run, running.pop(run).returncode), failed)
    finally:
        for process in running.values():
            process.terminate()
        for process in running.values():
            process.wait()
        signal.signal(signal.SIGTERM, earlier)
    return failed


def _unfinished(runs: Sequence[Run]) -> list[Run]:
    for run in runs:
        if run.is_finished:
            print(f'{run.folder.name}: finished before')
    return [run for run in runs if not run.is_finished]


def _report(run: Run, why: str, failed: dict[Path, str]) -> None:
    if why:
        failed[run.folder] = why
        print(f'{run.folder.name}: failed, {why}')


def run_on_slurm(runs: Sequence[Run], partition: str, folder: Path, settings: Mapping[str, Any],
                 cluster: str = 'slurm') -> dict[Path, str]:
    """Train the runs that are not finished as one array of Slurm jobs, by submitit, and wait for all.

    Args:
        runs, partition: the runs, whose folders every node must see.
        folder: folder for submitit's files. Its path is the jobs' name.
        settings: other settings of submitit's executor, such as ``timeout_min`` or ``slurm_gpus_per_node``.
        cluster: ``'slurm'``, or submitit's ``'local'`` to run the jobs on this machine.

    Returns:
        See :func:`run_here`.

    Raises:
        ConfigError: if Slurm is not there or rejects the jobs, if a setting is unknown, or if jobs of an earlier call
            still wait or run.
        MissingExtraError: if submitit is not installed.
    """
    with needed_by('--slurm'):
        import submitit
    name = str(folder.resolve())
    waiting, failed = _unfinished(runs), dict[Path, str]()
    try:
        executor = submitit.AutoExecutor(folder, cluster=cluster)
        if cluster == 'slurm' and (earlier := _jobs_named(name)):
            raise RuntimeError(f'those of an earlier call still wait or run: {earlier}; end them with scancel, or wait')
        executor.update_parameters(name=name, slurm_partition=partition, **settings)
        jobs = executor.map_array(train, waiting)
    except (RuntimeError, NameError, ValueError, TypeError, OSError, submitit.core.utils.FailedJobError) as error:
        raise ConfigError(f'--slurm {partition}: the jobs were not submitted '
                          f'({" ".join(str(error).split()).rstrip(".")}).') from error
    try:
        for run, job in zip(waiting, jobs, strict=True):
            error = job.exception()  # the job was killed, or submitit did not get its result
            _report(run, f'job {job.job_id} is {job.state}: {last_line(run)}' if error else job.result(), failed)
    except KeyboardInterrupt:  # two jobs must never train in one folder
        for job in jobs:
            job.cancel(check=False)
        raise
    return failed


def train(run: Run) -> str:
    """Train within a job, see :func:`failure`."""
    return failure(run, start(run).wait())


def _jobs_named(name: str) -> str:
    """The IDs of this user's jobs of a name that wait or run."""
    queue = subprocess.run(['squeue', '--me', '--noheader', '--format=%i', f'--name={name}'], text=True,
                           capture_output=True, check=False)
    return ', '.join(queue.stdout.split())
