"""Measure images/s of trainings next to other work on the machine: busy loops, another training.

    python benchmarks busy [--boxes BCCD] [--other PYTHON] [--only digits small hybrid boxes]
                           [--loads idle loop loops training] [--workers 0 2] [--spins 8000 20000]
                           [--seconds 10] [--rounds 3] [--cores 2]
    python benchmarks busy --forecast [--boxes BCCD] [--only KIND ...] [--loads LOAD ...]

OpenMP's idle threads spin before they sleep. On a busy machine this takes cores away from threads
with work, so our commands limit the spinning. Loads: `idle` is the machine without other work,
`loop` and `loops` are one and two programs in a busy loop, and `training` is a second training of
the same kind.

The rows: "default of the runtime" is OpenMP's own spinning, "ours" is what our commands set,
`--spins` adds other values of GOMP_SPINCOUNT, and "one thread" leaves nobody to wait for.
``--other`` is the Python of an environment with ultralytics, whose yolo11n is trained on the boxes.
Next to each images/s is the time relative to the default of the runtime on the idle machine; under
load, relative to twice that time, since a fair share is half of the machine. Rows are interleaved
in each round, and the median counts. A run takes 20 to 30 seconds, half of it the start: about
three hours for all of them at three rounds, on Linux.

`--forecast` runs `vit-plugin train --data` for about a minute instead, and compares the time
that it forecasts before its first step with the time that it then takes.
"""

import argparse
import itertools
import json
import os
import re
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from benchmarks.busy_trainings import Job

PROGRAM = Path(__file__).with_name('busy_trainings.py')
LOOP = [sys.executable, '-c', 'while True: pass']
LOADS = dict(
    idle='idle',
    loop='one busy loop',
    loops='two busy loops',
    training='a second training',
)
RUNTIME_DEFAULT, OURS = 'default of the runtime', 'ours'  # names of rows
# Variables that would keep our commands from choosing the threads and their spinning.
THREAD_VARIABLES = ('GOMP_SPINCOUNT', 'KMP_BLOCKTIME', 'OMP_WAIT_POLICY', 'OMP_NUM_THREADS')
# Defaults of GCC's and LLVM's runtimes: a number of spins, and milliseconds of spinning.
SPINNING_DEFAULTS = dict(GOMP_SPINCOUNT='300000', KMP_BLOCKTIME='200')
FORECAST = re.compile(r'The training takes about ([\d.]+) (seconds|minutes|hours)')
SECONDS = dict(seconds=1.0, minutes=60.0, hours=3600.0)
CLASSES, IMAGES = 8, 216  # of the folders of noise


class Kind(NamedTuple):
    """A kind of training.

    Attributes:
        title: the name in the table.
        flags: arguments of `Request`, named like the flags of ``vit-plugin train``.
        timm: arguments of timm's model, or None if timm cannot train on this data.
        epochs: what the forecast is compared for: about a minute on two cores.
    """

    title: str
    flags: dict[str, Any]
    timm: dict[str, Any] | None
    epochs: int


class Variant(NamedTuple):
    """How a training runs: the library, its Python and its environment."""

    library: str
    python: str
    environment: dict[str, str]


TINY = 'vit_tiny_patch16_224'
KINDS = {
    'digits': Kind(
        'digits of 8 px, default hybrid',
        {},
        dict(model_name=TINY, img_size=8, patch_size=2),
        40,
    ),
    'small': Kind(
        f'{IMAGES} images of 32 px, default hybrid',
        {},
        dict(model_name=TINY, img_size=32, patch_size=4),
        60,
    ),
    'hybrid': Kind(
        'images of 224 px, R26+S/32',
        dict(arch='r26+s/32', img_size=224, batch_size=8),
        dict(model_name='vit_small_r26_s32_224', img_size=224),
        4,
    ),
    'boxes': Kind('boxes, default detector', dict(task='detection'), None, 4),
}


def write_images(folder: Path, side: int) -> None:
    """Write images of noise with this side in pixels, in :data:`CLASSES` classes."""
    rng = np.random.default_rng(0)
    for number in range(IMAGES):
        class_folder = folder / str(number % CLASSES)
        class_folder.mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(256, size=(side, side, 3), dtype=np.uint8)
        cv2.imwrite(str(class_folder / f'{number}.png'), pixels)


def write_data(name: str, folder: Path, boxes: Path | None) -> Path:
    """Write the training data of a key of :data:`KINDS`, except for boxes. Returns its folder."""
    if name == 'digits':
        from vit_plugin.data.digits import write_digits

        write_digits(folder)
    elif name == 'boxes':
        return boxes.resolve() if boxes else folder
    else:
        write_images(folder, 224 if name == 'hybrid' else 32)
    return folder


def boxes_for_ultralytics(data: Path, folder: Path) -> Path:
    """Write the same boxes in ultralytics' format. Returns its YAML file."""
    from benchmarks.ultralytics_side import as_yolo
    from vit_plugin.config import read_config
    from vit_plugin.from_folder.request import Request
    from vit_plugin.from_folder.write import write_config

    request = Request(str(data), task='detection', work_dir=str(folder / 'lists'))
    dataset = read_config(str(write_config(request))).train_dataloader.dataset
    return as_yolo(folder / 'lists', Path(dataset.data_prefix.img), folder / 'yolo')


def variants_of(kind: Kind, spins: Sequence[int], other: str | None) -> dict[str, Variant]:
    """The rows of a kind's table. ``other`` is the Python of ultralytics, if given."""

    def ours(**environment: str) -> Variant:
        return Variant('vit_plugin', sys.executable, environment)

    variants = {RUNTIME_DEFAULT: ours(**SPINNING_DEFAULTS), OURS: ours()}
    variants |= {f'{count:,} spins': ours(GOMP_SPINCOUNT=str(count)) for count in spins}
    variants['one thread'] = ours(OMP_NUM_THREADS='1')
    if kind.timm:
        variants['timm'] = Variant('timm', sys.executable, {})
    elif other:
        variants['ultralytics, yolo11n'] = Variant('ultralytics', other, {})
    return variants


def environment() -> dict[str, str]:
    """This process's environment without the variables of threads, which the commands set."""
    return {name: value for name, value in os.environ.items() if name not in THREAD_VARIABLES}


@contextmanager
def training(variant: Variant, job: Job) -> Iterator[subprocess.Popen]:
    """Run a training in a process of its own. It has warmed up, and ends with this context."""
    with tempfile.TemporaryFile('w+') as errors:
        process = subprocess.Popen(
            [variant.python, str(PROGRAM), json.dumps(asdict(job))],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment() | variant.environment,
        )
        assert process.stdout is not None
        try:
            if process.stdout.readline() != 'begun\n':
                errors.seek(0)
                raise SystemExit(f'{variant.library} did not train: {errors.read()[-2000:]}')
            yield process
        finally:
            process.terminate()
            process.wait()


@contextmanager
def loaded(load: str, variant: Variant, job: Job) -> Iterator[None]:
    """Put one of :data:`LOADS` on the machine within this context."""
    if load == 'training':
        with training(variant, Job(**{**asdict(job), 'seconds': 1e9})):
            yield
        return
    num_loops = dict(idle=0, loop=1, loops=2)[load]
    loops = [subprocess.Popen(LOOP) for _ in range(num_loops)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def images_per_second(load: str, variant: Variant, job: Job) -> float:
    """The images per second of a training under this load, which is started first."""
    with loaded(load, variant, job), training(variant, job) as process:
        assert process.stdout is not None
        return float(process.stdout.readline())


def forecast_and_truth(load: str, kind: Kind, data: Path, out: Path) -> tuple[float, float]:
    """The seconds that a training forecasts before its first step, and those that it then takes.

    Raises:
        SystemExit: if it fails, or forecasts nothing.
    """
    variant = Variant('vit_plugin', sys.executable, {})
    job = Job(variant.library, str(data), 0, 0.0, kind.flags)
    flags = [(f'--{name.replace("_", "-")}', str(value)) for name, value in kind.flags.items()]
    command = [sys.executable, '-m', 'vit_plugin', 'train', '--data', str(data)]
    command += ['--epochs', str(kind.epochs), '--work-dir', str(out), *itertools.chain(*flags)]
    forecast = begun = 0.0
    with (
        loaded(load, variant, job),
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            if match := FORECAST.search(line):
                begun = time.perf_counter()
                forecast = float(match[1]) * SECONDS[match[2]]
        if process.wait() or not forecast:
            raise SystemExit(f'{shlex.join(command)} failed, or printed no forecast.')
        return forecast, time.perf_counter() - begun


def forecasts(args: argparse.Namespace, kind: Kind, data: Path, folder: Path) -> Iterator[str]:
    """The lines of a Markdown table of forecasts and truths under each load."""
    yield f'| {kind.title} | forecast | truth | truth / forecast |'
    yield '|---|--:|--:|--:|'
    for load in args.loads:
        for number in range(args.rounds):
            forecast, truth = forecast_and_truth(load, kind, data, folder / f'{load}_{number}')
            yield f'| {LOADS[load]} | {forecast:.0f} s | {truth:.0f} s | {truth / forecast:.2f} |'


def table(rates_by_variant: Mapping[str, Mapping[str, Sequence[float]]]) -> Iterator[str]:
    """The lines of a Markdown table of the images/s of each variant under each load."""
    loads = [*next(iter(rates_by_variant.values()))]
    names = ' | '.join(LOADS[load] for load in loads)
    yield f'| images/s (time over that of the idle machine, or of half of it) | {names} |'
    yield f'|---|{"--:|" * len(loads)}'
    for name, rates in rates_by_variant.items():
        # Other libraries are compared with themselves on the idle machine.
        compared_with_default = name not in ('timm', 'ultralytics, yolo11n')
        baseline = rates_by_variant[RUNTIME_DEFAULT] if compared_with_default else rates
        fair = statistics.median(baseline['idle']) if baseline.get('idle') else 0.0
        cells = []
        for load in loads:
            rate = statistics.median(rates[load])
            relative = fair / (1 if load == 'idle' else 2) / rate
            cells.append(f'{rate:.3g} ({relative:.2f})' if fair else f'{rate:.3g}')
        yield f'| {name} | {" | ".join(cells)} |'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--boxes', type=Path, help='a folder of boxes, as train --data reads it')
    parser.add_argument('--other', help='the Python of an environment with ultralytics')
    parser.add_argument('--only', nargs='+', choices=KINDS, help='by default all that have data')
    parser.add_argument('--loads', nargs='+', choices=LOADS, default=[*LOADS])
    parser.add_argument('--workers', nargs='+', type=int, default=[0, 2])
    parser.add_argument(
        '--spins', nargs='*', type=int, default=[], help='rows of other spin counts'
    )
    parser.add_argument(
        '--seconds', type=float, default=10.0, help='seconds for which a training is measured'
    )
    parser.add_argument('--forecast', action='store_true', help='compare forecast and actual times')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument(
        '--cores', type=int, default=2, help='number of cores that everything shares'
    )
    args = parser.parse_args()
    if 'boxes' in (args.only or []) and not args.boxes:
        parser.error('--only boxes reads the folder of --boxes')
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: args.cores])
    for name in args.only or KINDS:
        if name == 'boxes' and not args.boxes:
            continue
        kind = KINDS[name]
        variants = variants_of(kind, args.spins, args.other)
        with tempfile.TemporaryDirectory() as temporary:
            data = write_data(name, Path(temporary, 'data'), args.boxes)
            if args.forecast:
                for line in forecasts(args, kind, data, Path(temporary)):
                    print(line, flush=True)
                continue
            flags: dict[str, Any] = {'vit_plugin': kind.flags, 'timm': kind.timm, 'ultralytics': {}}
            folders = dict.fromkeys(flags, data)
            if 'ultralytics, yolo11n' in variants:
                folders['ultralytics'] = boxes_for_ultralytics(data, Path(temporary))
            for workers in args.workers:
                rates: dict[str, dict[str, list[float]]] = {
                    variant_name: {load: [] for load in args.loads} for variant_name in variants
                }
                for load in args.loads * args.rounds:
                    for variant_name, variant in variants.items():
                        folder = str(folders[variant.library])
                        job = Job(
                            variant.library, folder, workers, args.seconds, flags[variant.library]
                        )
                        rates[variant_name][load].append(images_per_second(load, variant, job))
                print(f'\n{kind.title}, {workers} workers:\n', *table(rates), sep='\n', flush=True)
    print(f'\nLoad of {args.cores} cores at the end: {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    main()
