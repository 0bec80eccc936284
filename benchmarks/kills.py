"""Kill trainings at random moments, resume them, and compare with undisturbed ones bit for bit.

    python benchmarks kills --rounds 100 --kind kill
    python benchmarks kills --rounds 30 --kind term
    python benchmarks kills --rounds 10 --kind usr1

Each run trains :mod:`tiny_run` through ``tools/train.py --resume``, as a user would: one process,
DDP and FSDP2 with two processes in turn, by epoch and by iteration, with 0, 2 and 3 data workers.
It is hit at a random moment after the imports, and the same command is given again until it ends by
itself. Every third kill -9 waits until a checkpoint is being written, for which a slow disk is
simulated. The final checkpoint and the history of validations must be bit-identical to those of an
undisturbed run. A start takes 6 s on two quiet cores, most of it imports.
"""

import argparse
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.exactness import compare
from benchmarks.tiny_run import WIDE, tiny_cfg

SIGNALS = dict(kill=signal.SIGKILL, term=signal.SIGTERM, usr1=signal.SIGUSR1)
LAUNCHES = ('one', 'ddp', 'fsdp2')  # see Setting
MAX_STARTS = 12  # in a run; the last one is not hit
# Temporary files of a checkpoint that is being written.
WRITING = ('.epoch_*', '.iter_*', '.best_*', '.last_checkpoint*')


@dataclass(frozen=True)
class Setting:
    """How a training is started."""

    launch: str = 'one'  # process; or 'ddp', 'fsdp2' with two processes
    loop: str = 'epoch'  # or 'iter'
    workers: int = 0  # of the data loader
    wide: bool = False  # whether the model is wider, see tiny_run.WIDE

    @property
    def name(self) -> str:
        return f'{self.launch}_{self.loop}_{self.workers}{"_wide" if self.wide else ""}'

    def write(self, work_dir: Path) -> Path:
        """Write the config of a run, and return its path."""
        processes = 1 if self.launch == 'one' else 2
        options = {
            **(WIDE if self.wide else {}),
            'train_dataloader.batch_size': 16 // processes,
            'custom_imports': {'imports': ['benchmarks.slow_disk']},
        }
        if self.launch == 'fsdp2':
            options |= {'sharding': {}, 'custom_hooks.0.type': 'vit_plugin.EMAHook'}
        cfg = tiny_cfg(work_dir, self.loop, self.workers, **options)
        work_dir.mkdir(parents=True, exist_ok=True)
        cfg.dump(work_dir.with_suffix('.py'))
        return work_dir.with_suffix('.py')

    def command(self, config: Path) -> list[str]:
        start = [sys.executable, '-W', 'ignore']
        if self.launch != 'one':
            with socket.socket() as free:
                free.bind(('127.0.0.1', 0))
                port = free.getsockname()[1]
            start += [
                '-m',
                'torch.distributed.run',
                '--nproc-per-node=2',
                f'--master-port={port}',
                '--signals-to-handle=SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1',
                '--shutdown-timeout=60',
            ]
        launcher = [] if self.launch == 'one' else ['--launcher', 'pytorch']
        return [*start, 'tools/train.py', str(config), '--resume', *launcher]


SETTINGS = [
    Setting(launch, loop, workers)
    for loop, workers in (('epoch', 0), ('iter', 2), ('epoch', 3), ('iter', 0))
    for launch in LAUNCHES
] + [Setting(wide=True)]


@dataclass
class Round:
    """The outcome of a run that was hit and started again.

    Attributes:
        starts: how often it was started.
        hits: how often it was hit.
        in_a_save: how often it was killed while a checkpoint was being written.
        wrong: descriptions of what is wrong.
    """

    starts: int = 0
    hits: int = 0
    in_a_save: int = 0
    wrong: list[str] = field(default_factory=list)


def start(setting: Setting, config: Path) -> subprocess.Popen:
    log = open(config.with_suffix('.log'), 'ab')  # noqa: SIM115  the process writes to it
    return subprocess.Popen(
        setting.command(config),
        stdout=log,
        stderr=log,
        start_new_session=True,
        env=dict(os.environ, OMP_NUM_THREADS='1', PYTHONPATH=f'{os.getcwd()}:{os.getcwd()}/tests'),
    )


def is_saving(folder: Path) -> bool:
    """True if a checkpoint is being written, or if a killed save has left its files."""
    return any(next(folder.glob(pattern), None) for pattern in WRITING)


def logs_of(folder: Path) -> list[Path]:
    """The folders of logs. Each start of a training makes one when its runner is built."""
    return list(folder.glob('20*_*'))


def wait_for_the_moment(
    process: subprocess.Popen, folder: Path, seconds: float, in_a_save: bool
) -> bool:
    """Wait until it is time to hit a training.

    Args:
        process: the training.
        folder: its work directory.
        seconds: the time after the runner is built.
        in_a_save: wait for a save instead.

    Returns:
        False if the training ended before.
    """
    begin, logs = None, len(logs_of(folder))
    while process.poll() is None:
        if begin is None and len(logs_of(folder)) > logs:
            begin = time.monotonic()
        if in_a_save and is_saving(folder):
            return True
        if not in_a_save and begin and time.monotonic() - begin > seconds:
            return True
        time.sleep(0.0005 if in_a_save else 0.01)
    return False


def hit(process: subprocess.Popen, number: int) -> None:
    """Send a signal: kill -9 to all processes of a training, others only to the first.

    A scheduler also signals only the process that it started.
    """
    if number == signal.SIGKILL:
        for pid in process_tree(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, number)
    else:
        process.send_signal(number)
    process.wait(timeout=120)


def process_tree(pid: int) -> list[int]:
    """A process and all that descend from it.

    torchrun starts each in a session of its own, so signaling the process group is not enough.
    """
    pids = [pid]
    for parent in pids:  # the list grows in the loop
        for task in Path(f'/proc/{parent}/task').glob('*/children'):
            with suppress(OSError):
                pids += map(int, task.read_text().split())
    return pids


def run_round(
    setting: Setting, folder: Path, kind: str, seconds: float, rng: random.Random
) -> Round:
    """Start a training again and again until it ends by itself, and hit the earlier starts.

    Args:
        setting: how it is started.
        folder: its work directory.
        kind: the signal, a key of :data:`SIGNALS`.
        seconds: the duration of an undisturbed run. A start is hit in the first 30 % of it.
        rng: draws the moments.
    """
    done, config = Round(), setting.write(folder)
    while True:
        done.starts += 1
        process = start(setting, config)
        if done.starts < MAX_STARTS:
            # About every third kill waits for a save.
            in_a_save = kind == 'kill' and 3 * done.in_a_save <= done.hits
            if wait_for_the_moment(process, folder, rng.uniform(0, 0.3) * seconds, in_a_save):
                hit(process, SIGNALS[kind])
                done.hits += 1
                # A killed save leaves its temporary files.
                done.in_a_save += kind == 'kill' and is_saving(folder)
                continue
        if process.wait(timeout=300):
            done.wrong.append(
                f'start {done.starts} ended with {process.returncode}, see '
                f'{config.with_suffix(".log")}'
            )
        return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--rounds', type=int, default=100, help='kills or signals to send at least')
    parser.add_argument('--kind', choices=SIGNALS, default='kill')
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--launches', nargs='+', choices=LAUNCHES, default=LAUNCHES)
    args = parser.parse_args()
    rng, folder = random.Random(args.seed), Path(tempfile.mkdtemp(prefix='kills_'))
    settings = [setting for setting in SETTINGS if setting.launch in args.launches]
    hits, in_a_save, runs, wrong = 0, 0, 0, []
    undisturbed: dict[Setting, tuple[Path, float]] = {}
    while hits < args.rounds:
        setting = settings[runs % len(settings)]
        if setting not in undisturbed:
            path, begin = folder / f'whole_{setting.name}', time.monotonic()
            if start(setting, setting.write(path)).wait(timeout=600):
                sys.exit(f'The undisturbed run {setting.name} failed, see {path}.log')
            undisturbed[setting] = path, time.monotonic() - begin
        path, seconds = undisturbed[setting]
        done = run_round(setting, folder / f'round_{runs}', args.kind, seconds, rng)
        done.wrong += compare(path, folder / f'round_{runs}') if not done.wrong else []
        hits, in_a_save, runs = hits + done.hits, in_a_save + done.in_a_save, runs + 1
        if done.wrong:
            wrong.append(runs - 1)
            print(f'round {runs - 1} {setting.name}: {done.wrong[:3]}', flush=True)
    print(
        f'{hits} x {args.kind} ({in_a_save} inside a save) in {runs} runs over {len(undisturbed)} '
        f'settings: {runs - len(wrong)} bit-identical to the undisturbed run, {len(wrong)} not, 0 '
        f'manual steps; in {folder}'
    )
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
