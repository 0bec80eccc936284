"""Compare libraries that read labeled folders: which read them correctly, in what time and memory.

    python benchmarks reading [--other PYTHON] [--only scenes images coco yolo table]
                              [--share 0.01] [--details]

``anyfolder`` reads the small folders of its tests (scenes), and folders of 20,000 to 200,000 images
or rows. With ``--other``, datumaro, supervision and ultralytics read them too; it is the Python of
an environment after ``pip install datumaro supervision ultralytics``. Each answer is compared with
what was written: it is right, or wrong, or the folder is refused, or refused with a question that
the user can answer (asked).

For a large folder, time is measured until all labels are there; images are only decoded if the
library does so. A tiny folder of the same kind is read before, so that imports do not count. Memory
is the peak above what the process held then, without its child processes. The campaign needs Linux.
Its tables are those of ``anyfolder/README.md``.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.labeled_folders import LARGE, SCENES, LabeledFolder, LargeFolder, Truth, fault_of

READER = Path(__file__).with_name('label_readers.py')
LIBRARIES = 'datumaro', 'supervision', 'ultralytics'  # compared with anyfolder
TINY = 100  # images or boxes of the folder that is read first
# Words of refusals that ask a question: they say what to write or to run.
ASKED = ('Or describe the folder in', '`import ')
VERDICTS = 'right', 'asked', 'refused', 'wrong'


def answers(python: str, library: str, jobs: Sequence[dict[str, str]]) -> list[dict[str, Any]]:
    """The answers of a library to each job, in a process of its own."""
    process = subprocess.run(
        [python, str(READER), library], input=json.dumps(jobs), capture_output=True, text=True
    )
    lines = process.stdout.splitlines()
    if len(lines) != len(jobs):
        raise SystemExit(f'{library} ended after {len(lines)} folders: {process.stderr[-2000:]}')
    return [json.loads(line) for line in lines]


def verdict(answer: dict[str, Any], truth: Truth | None) -> tuple[str, str]:
    """One of :data:`VERDICTS`, and why."""
    if 'refused' in answer:
        sentence = answer['refused']
        is_asked = any(words in sentence for words in ASKED)
        return ('asked' if is_asked else 'refused'), sentence
    if not answer['images']:
        return 'refused', 'it finds no image'
    if truth is None:
        return 'wrong', 'it guesses what is meant'
    fault = fault_of(answer['images'], truth)
    return ('wrong' if fault else 'right'), fault


def pythons(other: str | None) -> dict[str, str]:
    """The Python of each library."""
    return {'anyfolder': sys.executable} | (dict.fromkeys(LIBRARIES, other) if other else {})


def versions(other: str | None) -> str:
    """The versions of the libraries and of Python, and the name of the processor, as text."""
    code = f'import importlib.metadata as m; print(*(m.version(n) for n in {LIBRARIES!r}))'
    numbers = (
        subprocess.run([other, '-c', code], check=True, capture_output=True, text=True).stdout
        if other
        else ''
    )
    words = [f'{name} {number}' for name, number in zip(LIBRARIES, numbers.split(), strict=False)]
    lines = Path('/proc/cpuinfo').read_text().splitlines() if os.name == 'posix' else []
    models = [line.partition(': ')[2] for line in lines if line.startswith('model name')]
    name = models[0] if models else platform.processor()
    return ', '.join([*words, f'Python {platform.python_version()}', f'{os.cpu_count()} x {name}'])


def try_scenes(other: str | None, details: bool) -> None:
    """Print how many scenes of each kind each library reads right."""
    head = ' | '.join(VERDICTS)
    print(f'| folders | library | {head} |\n|---|---|{"---|" * len(VERDICTS)}')
    for words, folders in SCENES.items():
        chosen = [*folders()]
        for library, python in pythons(other).items():
            with tempfile.TemporaryDirectory() as parent:
                jobs = [_write_job(folder, Path(parent, str(i))) for i, folder in enumerate(chosen)]
                replies = answers(python, library, jobs)
            verdicts = [
                verdict(reply, folder.truth) for reply, folder in zip(replies, chosen, strict=True)
            ]
            counts = Counter(kind for kind, _ in verdicts)
            row = ' | '.join(str(counts[kind]) for kind in VERDICTS)
            print(f'| {len(chosen)} {words} | {library} | {row} |', flush=True)
            for folder, (kind, why) in zip(chosen, verdicts, strict=True) if details else ():
                if kind != 'right':
                    print(f'    {library}: {folder.name} [{folder.task}] {kind}: {why[:300]!r}')


def _write_job(labeled: LabeledFolder, folder: Path) -> dict[str, str]:
    """Write a folder. Returns the job of reading it, see :mod:`label_readers`."""
    folder.mkdir()
    labeled.write(folder)
    return dict(folder=str(folder), task=labeled.task)


def try_large(large: LargeFolder, other: str | None, share: float, details: bool) -> None:
    """Print how each library reads a large folder, with its time and memory."""
    count = max(int(share * large.count), TINY)
    with tempfile.TemporaryDirectory() as parent:
        tiny, folder = Path(parent, 'tiny'), Path(parent, 'data')
        large.write(tiny, TINY)
        truth = large.write(folder, count)
        job = dict(first=str(tiny), folder=str(folder), task=large.task)
        for library, python in pythons(other).items():
            [answer] = answers(python, library, [job])
            kind, why = verdict(answer, truth)
            measured = (
                f'{answer["seconds"]:.1f} s | {answer["processor"]:.1f} s | '
                f'{answer["memory"]:.0f} MB'
                if kind in ('right', 'wrong')
                else '- | - | -'
            )
            print(
                f'| {count:,} {large.description} | {library} | {kind} | {measured} |', flush=True
            )
            if details and why:
                print(f'    {why}')


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--other', help='a Python with datumaro, supervision and ultralytics')
    parser.add_argument('--only', nargs='+', choices=['scenes', *LARGE], default=['scenes', *LARGE])
    parser.add_argument(
        '--share', type=float, default=1.0, help='size of the large folders, for a trial'
    )
    parser.add_argument('--details', action='store_true', help='print why an answer is not right')
    args = parser.parse_args()
    print(versions(args.other), end='\n\n')
    if 'scenes' in args.only:
        try_scenes(args.other, args.details)
    columns = 'folder', 'library', 'labels', 'time', 'of a processor', 'memory'
    print(f'\n| {" | ".join(columns)} |\n|{"---|" * len(columns)}')
    for name in args.only:
        if name in LARGE:
            try_large(LARGE[name], args.other, args.share, args.details)
    print(f'\nLoad of {os.cpu_count()} cores at the end: {os.getloadavg()[0]:.1f}')


if __name__ == '__main__':
    main()
