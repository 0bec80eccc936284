"""Compare models of a task that train for the same minutes of processor time.

    python benchmarks models --data FOLDER --models retinanet lw-detr 'ecdet --augment dense-o2o'
        [--arch Ti/16] [--task detection] [--minutes 30] [--seeds 3]
    python -m venv yolo && yolo/bin/pip install ultralytics==8.4.190
    python benchmarks models --data BCCD --yolo yolo/bin/yolo --minutes 5 15 30 [--curve FILE]

Each model is trained by ``vit-plugin train --data FOLDER --model NAME`` on a core of its own, and
validated once, at the end. A name may be followed by other flags of that command. With ``--yolo``,
detectors of ultralytics also train for these minutes, and all models are validated after each
epoch. ``--curve`` draws the AP that each program then writes.
"""

import argparse
import shlex
import tempfile
from pathlib import Path

from benchmarks.equal_minutes import METRICS, Cores, compare, plugin_contender
from benchmarks.ultralytics_side import draw, ultralytics_sides


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--data', required=True, type=Path)
    parser.add_argument('--task', choices=METRICS, default='detection')
    parser.add_argument(
        '--models', nargs='+', default=[], metavar='NAME', help='default: that of train --data'
    )
    parser.add_argument('--arch', help='the backbone; default: a small hybrid')
    parser.add_argument('--minutes', nargs='+', type=float, default=[30.0])
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument(
        '--ours',
        type=shlex.split,
        default=[],
        metavar='FLAGS',
        help="flags of vit-plugin train, in quotes: --ours='--weights FILE'",
    )
    parser.add_argument('--yolo', metavar='PROGRAM', help='also train detectors of ultralytics')
    parser.add_argument('--yolo-models', nargs='+', default=['yolo11n', 'yolo26n'], metavar='MODEL')
    parser.add_argument('--size', type=int, help='longer side of the images; with --yolo 256')
    parser.add_argument('--curve', type=Path, help='a picture of AP over the minutes')
    args = parser.parse_args()
    if args.yolo and args.task != 'detection':
        parser.error('--yolo needs --task detection')
    if args.curve and not args.yolo:
        parser.error('--curve needs --yolo, with which all are validated after each epoch')
    data, cores = args.data.resolve(), Cores()
    size = args.size or (256 if args.yolo else None)
    # A flag in --ours or after a model's name overrides one of these, since the last one counts.
    shared = ['--arch', args.arch] if args.arch else []
    shared += ['--img-size', str(size)] if size else []
    sides = {
        name or 'vit_plugin': plugin_contender(
            data,
            args.task,
            [*shared, *args.ours, *(['--model', *shlex.split(name)] if name else [])],
            one_validation=not args.yolo,
        )
        for name in args.models or ['']
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if args.yolo:
            sides |= ultralytics_sides(args.yolo, args.yolo_models, data, size, cores, folder)
        for line in compare(sides, args.minutes, args.seeds, cores, folder):
            print(line, flush=True)
        if args.curve:
            budgets = [f'{limit}_{seed}' for limit in args.minutes for seed in range(args.seeds)]
            runs = {side: [folder / side / budget / 'run' for budget in budgets] for side in sides}
            draw(runs).savefig(args.curve)


if __name__ == '__main__':
    main()
