"""Count the files that a command imports and calls, and its calls against the order of the layers.

    python benchmarks walks [--only forward step train infer] [--pairs]

The counts tell how much code someone must read to follow a command. Each command runs once on tiny
images, in a process of its own in which Python's calls are traced. The table has the files of
``vit_plugin`` and ``anyfolder`` that it imports, and those whose functions it calls; the calls from
one file to another, and within a file; and the pairs of files that climb. Calls through other code,
such as MMEngine's, count as calls of the file that called it. Calls without any caller in the two
packages, such as the first one, count as from another file. docs/design.md lists the layers, the
folders of ``vit_plugin`` from the uppermost to the lowest, and a pair climbs if a file of a lower
layer calls one of an upper layer. Data workers and other processes are not traced. It takes a few
minutes.
"""

import argparse
import inspect
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from benchmarks.every_command import CALLS, CONFIG, write_images

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ('vit_plugin', 'anyfolder')
PROGRAMS = ('train', 'infer', 'export', 'embed', 'plan', 'test', 'step', 'forward')
# Numbers of files, twice; of calls, twice; of pairs of files.
COLUMNS = ('', 'imported', 'called', 'to another file', 'within a file', 'climbing')


class CallCounter:
    """Counts calls between functions of the packages, within a ``with`` block.

    Attributes:
        pairs: the number of calls, by the files of caller and callee. The caller is '' if there is
            none in the packages.
    """

    def __init__(self) -> None:
        self.pairs: Counter[tuple[str, str]] = Counter()
        # Code and its file, by the code's identity: equal functions of two files are equal as code.
        # The code is kept, so that no other gets its identity.
        self.files: dict[int, tuple[CodeType, str]] = {}
        self.starts: dict[int, int] = {}  # the instruction at which a function starts

    def file_of(self, code: CodeType) -> str:
        """The path of a function's file in the repository, or '' for other code."""
        if id(code) not in self.files:
            path = Path(code.co_filename)
            inside = path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES
            is_function = bool(code.co_flags & inspect.CO_OPTIMIZED)  # not the body of a class
            name = str(path.relative_to(ROOT)) if inside and is_function else ''
            self.files[id(code)] = code, name
        return self.files[id(code)][1]

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Count a call; Python calls this for each, see ``sys.setprofile``."""
        if event != 'call' or not (file := self.file_of(frame.f_code)):
            return
        # A resumed generator is not a new call.
        if frame.f_lasti != self.starts.setdefault(id(frame.f_code), frame.f_lasti):
            return
        caller = frame.f_back
        while caller is not None and not self.file_of(caller.f_code):
            caller = caller.f_back
        self.pairs[self.file_of(caller.f_code) if caller else '', file] += 1

    def __enter__(self) -> 'CallCounter':
        threading.setprofile(self)
        sys.setprofile(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]  # typeshed has no None


def forward(counter: CallCounter) -> None:
    """A classifier of random weights on one image."""
    import torch

    from vit_plugin.models.classifier import create_model

    model, image = create_model('Ti/16', img_size=64).eval(), torch.zeros(1, 3, 64, 64)
    with torch.inference_mode(), counter:
        model(image)


def step(counter: CallCounter) -> None:
    """The second step of a training, with its batch."""
    from vit_plugin.commands.command_line import build_runner
    from vit_plugin.config import read_config

    cfg = read_config(CONFIG, {'train_dataloader.num_workers': 0, 'work_dir': 'step'})
    cfg.launcher, cfg.train_dataloader.persistent_workers = 'none', False
    runner = build_runner(cfg, ['train_dataloader'])
    optimizer = runner.build_optim_wrapper(cfg.optim_wrapper)
    batches = iter(runner.build_dataloader(cfg.train_dataloader))
    runner.model.train_step(next(batches), optimizer)
    with counter:
        runner.model.train_step(next(batches), optimizer)


def command(name: str) -> Callable[[CallCounter], None]:
    """A command of :data:`~benchmarks.every_command.CALLS`."""

    def run(counter: CallCounter) -> None:
        from vit_plugin.__main__ import main

        with counter:
            main([name, *CALLS[name].arguments.split()])

    return run


def trace(name: str, out: Path) -> None:
    """Run a program in this process, and write what it imported and called."""
    counter = CallCounter()
    try:
        {'forward': forward, 'step': step}.get(name, command(name))(counter)
    except SystemExit as end:
        if end.code:
            raise
    loaded = [Path(getattr(module, '__file__', None) or '/') for module in [*sys.modules.values()]]
    imported = {
        str(path.relative_to(ROOT))
        for path in loaded
        if path.is_relative_to(ROOT) and path.relative_to(ROOT).parts[0] in PACKAGES
    }
    pairs = [[*pair, count] for pair, count in counter.pairs.items()]
    out.write_text(json.dumps(dict(imported=sorted(imported), pairs=pairs)))


def read_layers() -> dict[str, int]:
    """The folders and modules of the plan in docs/design.md, numbered from 0 for the uppermost."""
    plan = (ROOT / 'docs/design.md').read_text().split('```')[1]
    names = re.findall(r'^  ([a-z_]+)/?(?: |$)', plan, re.MULTILINE)
    return {name: number for number, name in enumerate(names)}


def climbs(caller: str, callee: str, layers: dict[str, int]) -> bool:
    """True if a file calls one of an upper layer.

    The library anyfolder is below all layers. Modules that the plan does not list, such as the
    package's ``__init__.py``, are above all.
    """
    if not caller:  # none in the packages, see CallCounter
        return False
    numbers = [
        layers.get(Path(file).parts[1].removesuffix('.py'), -1)
        if file.startswith('vit_plugin')
        else len(layers)
        for file in (caller, callee)
    ]
    return numbers[1] < numbers[0]


def row(name: str, traced: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The cells of a program, see :data:`COLUMNS`, and its climbing pairs as text.

    Args:
        name: name of the program.
        traced: what :func:`trace` has written.
    """
    layers, pairs = read_layers(), traced['pairs']
    upward = [(a, b, count) for a, b, count in pairs if climbs(a, b, layers)]
    numbers = (
        len(traced['imported']),
        len({callee for _, callee, _ in pairs}),
        sum(count for caller, callee, count in pairs if caller != callee),
        sum(count for caller, callee, count in pairs if caller == callee),
        len(upward),
    )
    shown = [f'{a} -> {b}: {count}' for a, b, count in sorted(upward, key=lambda pair: -pair[2])]
    return [name, *(f'{number:,}' for number in numbers)], shown


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--only', nargs='+', choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument('--pairs', action='store_true', help='also name the climbing pairs')
    parser.add_argument('--out', type=Path, help='a .json file for what was traced')
    parser.add_argument('--trace', choices=PROGRAMS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.trace:
        trace(args.trace, args.out)
        return
    widths, traced = (10, 9, 8, 16, 15, 9), {}
    print(*map(str.rjust, COLUMNS, widths))
    with tempfile.TemporaryDirectory() as folder:
        write_images(Path(folder, 'images'))
        # `train` always runs, since the other commands need its model.
        for name in dict.fromkeys(['train', *args.only]):
            out = Path(folder, f'{name}.json')
            this_file = [sys.executable, '-W', 'ignore', str(Path(__file__).resolve())]
            done = subprocess.run(
                [*this_file, '--trace', name, '--out', str(out)],
                cwd=folder,
                env={**os.environ, 'OMP_NUM_THREADS': '1'},
                capture_output=True,
                text=True,
            )
            if done.returncode:
                sys.exit(f'{name} ended with status {done.returncode}:\n{done.stderr[-2000:]}')
            traced[name] = json.loads(out.read_text())
            if name in args.only:
                cells, upward = row(name, traced[name])
                print(*map(str.rjust, cells, widths), flush=True)
                if args.pairs:
                    print(*(f'    {pair}' for pair in upward), sep='\n', flush=True)
    if args.out:
        args.out.write_text(json.dumps(traced))


if __name__ == '__main__':
    main()
