"""Models of a task side by side: the metric of each in the same minutes of processor time.

    python benchmarks models --data FOLDER --models retinanet lw-detr 'ecdet --augment dense-o2o'
        [--arch Ti/16] [--task detection] [--minutes 30] [--seeds 3]

Each is trained by ``vit-plugin train --data FOLDER --model NAME`` on a core of its own, and
validated once, at the end. A name may be followed by other flags of that command.
"""

import argparse
import shlex
import tempfile
from pathlib import Path

from benchmarks.equal_minutes import METRICS, Cores, compare, vit_plugin


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--data', required=True, type=Path)
    parser.add_argument('--task', choices=METRICS, default='detection')
    parser.add_argument('--models', nargs='+', required=True, metavar='NAME')
    parser.add_argument('--arch', help='the backbone; default: a small hybrid')
    parser.add_argument('--minutes', nargs='+', type=float, default=[30.0])
    parser.add_argument('--seeds', type=int, default=3)
    args = parser.parse_args()
    arch = ['--arch', args.arch] if args.arch else []  # the last one is taken
    sides = {
        name: vit_plugin(
            args.data, args.task, [*arch, '--model', *shlex.split(name)], one_validation=True
        )
        for name in args.models
    }
    with tempfile.TemporaryDirectory() as folder:
        for line in compare(sides, args.minutes, args.seeds, Cores(), Path(folder)):
            print(line, flush=True)


if __name__ == '__main__':
    main()
