"""Stop or kill a rank of a distributed run: how soon does the run end, and what does it report?

    python benchmarks dead_rank [--rounds 1] [--timeout 10] [--ranks 2] [--sharded]

Each round stops (SIGSTOP) and kills (SIGKILL) rank 0 and rank 1 of a run on gloo with two data
workers per rank, under torchrun and under a stand-in for ``srun --kill-on-bad-exit``. The run must
name the lost rank once in its log, exit with status 1 in time, and leave no process. A round takes
about two minutes.
"""

import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
ROOT = HERE.parent
# Seconds between SIGTERM and SIGKILL, by default of torchrun and as KillWait of Slurm.
GRACE = 30.0
# Seconds allowed on top of the time-out and the grace: the other ranks wait for an answer of the
# lost one, and on a busy machine Python takes long to exit.
MARGIN = 15.0


@dataclass(frozen=True)
class End:
    """How a run ended after a signal to one of its ranks.

    Attributes:
        seconds: from the signal until all its processes were gone, launcher and data workers too.
        reports: the log lines that report a lost rank, with its number unless its connection was
            closed.
        left: number of processes that the launcher has not ended.
        status: exit status of the launcher, or of another rank.
        log: the complete output.
    """

    seconds: float
    reports: Sequence[str]
    left: int
    status: int
    log: str


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        return listener.getsockname()[1]


def start(
    folder: Path, ranks: int, launcher: str, timeout: float, options: Sequence[str]
) -> list[subprocess.Popen]:
    """Start a tiny endless run, whose output goes to the file ``log`` in the folder.

    Returns the process of torchrun, or with Slurm that of each rank.
    """
    script = [
        str(HERE / 'tiny_run.py'),
        str(folder),
        '--workers',
        '2',
        '--cfg-options',
        'train_cfg.max_epochs=100000',
        'log_level=INFO',
        f'env_cfg.dist_cfg.timeout={timeout:g}',
        'default_hooks.logger.interval=1',
        'default_hooks.checkpoint.interval=50',
        'train_cfg.val_interval=50',
        *options,
    ]
    base = dict(
        os.environ,
        PYTHONPATH=f'{ROOT}{os.pathsep}{os.environ.get("PYTHONPATH", "")}',
        OMP_NUM_THREADS='1',
        MASTER_ADDR='127.0.0.1',
        MASTER_PORT=str(free_port()),
    )
    log = open(folder / 'log', 'w')  # noqa: SIM115  left open for the processes
    if launcher == 'torchrun':
        commands = [
            [
                sys.executable,
                str(ROOT / 'tools/torchrun.py'),
                f'--nproc-per-node={ranks}',
                '--rdzv-backend=c10d',
                f'--rdzv-endpoint=127.0.0.1:{base["MASTER_PORT"]}',
                *script[:2],
                '--launcher',
                'pytorch',
                *script[2:],
            ]
        ]
    else:
        commands = [[sys.executable, *script[:2], '--launcher', 'slurm', *script[2:]]] * ranks
    return [
        subprocess.Popen(
            command,
            cwd=ROOT,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=dict(
                base, SLURM_PROCID=str(rank), SLURM_LOCALID=str(rank), SLURM_NTASKS=str(ranks)
            ),
        )
        for rank, command in enumerate(commands)
    ]


def pids_of(folder: Path) -> dict[int, str]:
    """The state, a letter of /proc/PID/stat, of each process with the folder in its command."""
    states = {}
    for entry in Path('/proc').iterdir():
        if entry.name.isdecimal():
            try:
                if str(folder).encode() in (entry / 'cmdline').read_bytes().split(b'\0'):
                    states[int(entry.name)] = (
                        (entry / 'stat').read_text().rpartition(')')[2].split()[0]
                    )
            except OSError:
                continue
    return {pid: state for pid, state in states.items() if state != 'Z'}  # no zombies


def trainers(folder: Path) -> dict[int, int]:
    """The process of each rank, without its data workers."""
    ranks, pids = {}, pids_of(folder)
    for pid in pids:
        command = Path(f'/proc/{pid}/cmdline').read_text()
        parent = int(Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()[1])
        above = Path(f'/proc/{parent}/cmdline').read_text() if parent in pids else ''
        if 'torchrun.py' not in command and (not above or 'torchrun.py' in above):
            lines = Path(f'/proc/{pid}/environ').read_text().split('\0')
            variables = dict(line.split('=', 1) for line in lines if '=' in line)
            ranks[int(variables.get('RANK') or variables['SLURM_PROCID'])] = pid
    return ranks


def kill_all(processes: Sequence[subprocess.Popen]) -> None:
    """Kill each process and its data workers, as Slurm kills all processes of a step."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def signal_and_wait(
    signal_number: int,
    rank: int,
    timeout: float,
    launcher: str = 'torchrun',
    ranks: int = 2,
    options: Sequence[str] = (),
) -> End:
    """Signal a rank of a run that trains, and wait for the end.

    Args:
        signal_number: SIGSTOP or SIGKILL.
        rank: the rank that gets the signal.
        timeout: the time-out of the run in seconds.
        launcher: torchrun or slurm.
        ranks: number of ranks.
        options: further settings of the run.
    """
    with TemporaryDirectory() as name:
        folder = Path(name)
        processes = start(folder, ranks, launcher, timeout, options)
        try:
            deadline = time.monotonic() + 180
            while not re.search(r'Epoch\(train\) +\[ *[3-9]\]', (folder / 'log').read_text()):
                if time.monotonic() > deadline or any(
                    process.poll() is not None for process in processes
                ):
                    raise RuntimeError((folder / 'log').read_text()[-3000:])
                time.sleep(0.1)
            victim = trainers(folder)[rank]
            os.kill(victim, signal_number)
            begin = time.monotonic()
            failed = None
            while pids_of(folder) and time.monotonic() < begin + timeout + 60:
                if failed is None and any(process.poll() for process in processes):
                    failed = time.monotonic()
                if launcher == 'slurm' and failed and time.monotonic() > failed + GRACE:
                    kill_all(processes)
                time.sleep(0.1)
            seconds = time.monotonic() - begin
        finally:
            left = pids_of(folder)
            for pid in left:
                os.kill(pid, signal.SIGKILL)
            statuses = [process.wait() for process in processes]
        log = (folder / 'log').read_text()
        lost = re.compile(rf'ERROR.*(Rank {rank} .*gave no answer|A rank has ended)')
        reports = [line for line in log.splitlines() if lost.search(line)]
        # Slurm has a status for each rank: take that of a rank that got no signal.
        status = statuses[0] if launcher == 'torchrun' else statuses[1 if rank == 0 else 0]
        return End(seconds, reports, len(left), status, log)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--timeout', type=float, default=10.0)
    parser.add_argument('--ranks', type=int, default=2)
    parser.add_argument(
        '--launchers', nargs='+', choices=['torchrun', 'slurm'], default=['torchrun', 'slurm']
    )
    parser.add_argument('--sharded', action='store_true', help='FSDP2 in place of DDP')
    args = parser.parse_args()
    options = (
        ['sharding.group=all', 'custom_hooks.0.type=vit_plugin.EMAHook'] if args.sharded else []
    )
    failed, longest, count = 0, 0.0, 0
    for _ in range(args.rounds):
        for launcher in args.launchers:
            for number in (signal.SIGSTOP, signal.SIGKILL):
                for rank in (0, 1):
                    end = signal_and_wait(number, rank, args.timeout, launcher, args.ranks, options)
                    passed = (
                        len(end.reports) == 1
                        and 'iteration' in end.reports[0]
                        and not end.left
                        and end.status == 1
                        and end.seconds < args.timeout + GRACE + MARGIN
                    )
                    count += 1
                    failed += not passed
                    longest = max(longest, end.seconds)
                    print(
                        f'{launcher} {number.name} rank {rank}: {end.seconds:.1f} s, '
                        f'{len(end.reports)} reports, {end.left} left, status '
                        f'{end.status}{"" if passed else "  WRONG"}',
                        flush=True,
                    )
                    if not passed:
                        print(end.log[-4000:])
    print(
        f'{count} runs of {args.ranks} ranks, time-out {args.timeout:g} s: {count - failed} '
        f'right, the longest ended after {longest:.1f} s'
    )
    return failed > 0


if __name__ == '__main__':
    sys.exit(main())
