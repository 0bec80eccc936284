"""Give every command small files that demand much time or memory, or that run code.

    python benchmarks hostile_files [--doors NAMES GRAPHS ...]

A door is a kind of input of a command, which is started as a user starts it. The files are made by
:mod:`hostile_kinds`: checkpoints, folders of a hub, configs, graphs, class names, boxes, polygons,
tables, images, masks and folders. Each must be refused at once, with status 1 or 2 and a sentence
that names the file. It may also be read, such as YAML whose tag is then plain text.

A mark is any of these: a refusal that does not name the file; a traceback; a signal; a file
``RAN``, which code in the file would make; more than 10 s of processor time beyond that of a
harmless file; or more than 2 GB in all processes together, if that is also a tenth more than for
the harmless file. The harmless file is one that is refused, or read, like this one. There must be
no mark. The machine may be busy, since only processor time counts. It takes 15 minutes on an idle
one.
"""

import argparse
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from PIL import Image

from benchmarks import hostile_kinds as kinds

# Limits of a command: processor time beyond that for a harmless file, and memory.
SECONDS, BYTES = 10.0, 2 << 30
MEMORY_FACTOR = 1.1  # allowed memory, relative to that for a harmless file
KILL_FACTOR = 6  # at this multiple of a limit, the campaign kills a process
INTERVAL = 0.05  # seconds between two measurements of a process
MODEL = 'plain.onnx'  # the model that predicts images


class Outcome(NamedTuple):
    """The outcome of a command.

    Attributes:
        status: the exit status, negative for a signal.
        seconds: processor time of all its processes.
        bytes: the peak of their memory together.
        output: the printed text.
        ran: whether code in a file was run.
    """

    status: int
    seconds: float
    bytes: int
    output: str
    ran: bool


@dataclass
class Door:
    """A command, and the files that it is given.

    Attributes:
        command: its words. ``{file}`` stands for the name that a kind returns.
        files: makes the files of each kind.
        harmless: makes a file that is refused at once.
        readable: makes a file that is read. None: no kind of file is read at this door.
    """

    command: str
    files: Mapping[str, kinds.Kind]
    harmless: kinds.Kind
    readable: kinds.Kind | None = None


DETECTION = 'train --data data --task detection --check --work-dir work'
DOORS = dict(
    CHECKPOINTS=Door('infer {file} i.png --arch Ti/16', kinds.CHECKPOINTS, kinds.text('x.pth', '')),
    CONVERT=Door('convert {file} --out out.pth', kinds.CHECKPOINTS, kinds.text('x.pth', '')),
    WITH_CONFIGS=Door('infer {file} i.png', kinds.WITH_CONFIGS, kinds.text('x.pth', '')),
    HUBS=Door('infer hub i.png', kinds.HUBS, kinds.in_a_hub('{}')),
    CONFIGS=Door(
        'plan {file} --gpus 8 --gpu-memory 80', kinds.CONFIGS, kinds.text('c.yaml', 'a: [')
    ),
    GRAPHS=Door('infer {file} i.png', kinds.GRAPHS, kinds.text('m.onnx', '')),
    NAMES=Door(
        DETECTION,
        kinds.NAMES,
        kinds.yolo('data.yaml', 'names: ['),
        kinds.yolo('data.yaml', 'names: [a]'),
    ),
    BOXES=Door(DETECTION, kinds.BOXES, kinds.coco('{')),
    POLYGONS=Door(
        DETECTION.replace('detection', 'instance'),
        kinds.POLYGONS,
        kinds.coco('{'),
        kinds.coco(kinds.runs([0, 4096])),
    ),
    TABLES=Door(
        'train --data data --task classification --check --work-dir work',
        kinds.TABLES,
        kinds.table('labels.csv', 'filename,label\n'),
    ),
    IMAGES=Door(f'infer {MODEL} {{file}}', kinds.IMAGES, kinds.text('a.png', '')),
    MASKS=Door(
        'train --data data --task segmentation --check --work-dir work',
        kinds.MASKS,
        kinds.text('data/images/a.txt', ''),
    ),
    FOLDERS=Door(f'infer {MODEL} data', kinds.FOLDERS, kinds.text('data/a.txt', '')),
)


def run(words: Sequence[str], folder: Path) -> Outcome:
    """Start a command in a folder, watch it, and end it when it is far beyond the limits."""
    log = folder / 'log'
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with log.open('w') as output:
        process = psutil.Popen(
            [sys.executable, '-m', 'vit_plugin', *words],
            cwd=folder,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    largest = 0
    while process.poll() is None:
        seconds, size = measured(process)
        largest = max(largest, size)
        if size > KILL_FACTOR * BYTES or seconds > KILL_FACTOR * SECONDS:
            os.killpg(process.pid, signal.SIGKILL)
        time.sleep(INTERVAL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Outcome(
        process.returncode,
        seconds,
        largest,
        log.read_text(errors='replace'),
        (folder / 'RAN').exists(),
    )


def measured(process: psutil.Process) -> tuple[float, int]:
    """Seconds of the processor and bytes in memory of a process and those that it has started."""
    seconds, size = 0.0, 0
    try:
        for member in (process, *process.children(recursive=True)):
            with member.oneshot():
                times = member.cpu_times()
                seconds += times.user + times.system
                size += member.memory_info().rss
    except psutil.Error:  # it has just ended
        pass
    return seconds, size


def marks_of(found: Outcome, name: str, harmless: Outcome) -> list[str]:
    """The faults of an outcome.

    Args:
        found: the outcome.
        name: the name of the file, which a refusal must contain.
        harmless: the outcome of a harmless file.
    """
    max_bytes = max(BYTES, MEMORY_FACTOR * harmless.bytes)
    lines = [line for line in found.output.splitlines() if line.strip()]
    last_line = lines[-1] if lines else ''
    return [
        *(['code was run'] if found.ran else []),
        *([f'status {found.status}'] if found.status not in (0, 1, 2) else []),
        *(['a traceback'] if 'Traceback (most recent' in found.output else []),
        *([f'{name} is not named'] if found.status and name not in last_line else []),
        *(['too slow'] if found.seconds - harmless.seconds > SECONDS else []),
        *(['too large'] if found.bytes > max_bytes else []),
    ]


def attempt(door: Door, kind: kinds.Kind) -> tuple[Outcome, str]:
    """The outcome of a kind of file, and the name of the file."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        Image.new('RGB', (32, 32)).save(folder / 'i.png')
        if MODEL in door.command:
            kinds.onnx_file(folder / MODEL, kinds.PLAIN_FACTS)
        name = kind(folder)
        try:
            return run(door.command.format(file=name).split(), folder), name
        finally:  # Python cannot remove folders that are nested too deeply
            subprocess.run(['rm', '-rf', str(folder / 'data')], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--doors', nargs='+', choices=DOORS, default=[*DOORS])
    count = marked = 0
    slowest, largest = 0.0, 0
    for name in parser.parse_args().doors:
        door = DOORS[name]
        refused, read = attempt(door, door.harmless)[0], None
        print(f'\n{name}: {door.command} ({refused.seconds:.1f} s for a harmless file)', flush=True)
        for description, kind in door.files.items():
            found, file = attempt(door, kind)
            if found.status == 0 and door.readable and read is None:
                read = attempt(door, door.readable)[0]
            harmless = read if found.status == 0 and read else refused
            marks = marks_of(found, file, harmless)
            beyond = found.seconds - harmless.seconds
            count += 1
            marked += bool(marks)
            slowest, largest = max(slowest, beyond), max(largest, found.bytes)
            last = (found.output.strip().splitlines() or [''])[-1]
            print(
                f'{"MARK: " + ", ".join(marks) if marks else "right":<8} {description}: '
                f'{beyond:+.1f} s, {found.bytes >> 20:,} MB; {last[:160]}',
                flush=True,
            )
    print(
        f'\n{count} files, {marked} marks; at most {slowest:.1f} s beyond the start, and '
        f'{largest / 2**30:.2f} GB'
    )
    sys.exit(marked > 0)


if __name__ == '__main__':
    main()
