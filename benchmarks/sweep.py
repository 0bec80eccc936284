r"""Train configs over a grid of settings with several seeds, and compare them.

    python benchmarks sweep CONFIG --grid optim_wrapper.optimizer.lr=1e-3,3e-3 \
        model.backbone.drop_rate=0,0.1 --seeds 3
    python benchmarks sweep HYBRID PURE --grid train_cfg.max_epochs=2,4,8 --seeds 2 --jobs 2

Each run has a folder in the work directory. The same command continues those that are not finished.
The table of the scores is printed, and written to ``results.md``.
"""

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from vit_plugin.commands.entry import run_command
from vit_plugin.commands.flags import KeyValue, add_flags, at_least


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(parser, 'config', nargs='+', help='config files to compare')
    parser.add_argument(
        '--grid',
        nargs='+',
        action=KeyValue,
        default={},
        metavar='KEY=A,B,C',
        help='a setting and its values; several flags or pairs make all combinations',
    )
    parser.add_argument(
        '--seeds',
        type=at_least(1),
        default=3,
        metavar='NUMBER',
        help='seeds of each combination; default: 3',
    )
    add_flags(
        parser, '--work-dir', help='folder; default: work_dirs/sweep_CONFIG, of the first config'
    )
    parser.add_argument(
        '--metric', help='the metric to compare; default: the first that is recorded'
    )
    parser.add_argument(
        '--jobs', type=at_least(1), default=1, help='how many to train at the same time; default: 1'
    )
    add_flags(parser, '--cfg-options')


def main(args: Namespace) -> None:
    from anyfolder.complete import write_text
    from benchmarks import grid_of_trainings
    from vit_plugin.files.standard_streams import exit_interrupted

    grid = {key: value if isinstance(value, list) else [value] for key, value in args.grid.items()}
    folder = Path(args.work_dir or f'work_dirs/sweep_{Path(args.config[0]).stem}')
    runs = [*grid_of_trainings.runs_of(args.config, grid, args.seeds, folder)]
    options = args.cfg_options or {}
    grid_of_trainings.check(runs, options, folder)
    try:
        failed = grid_of_trainings.train(runs, options, args.jobs)
    except KeyboardInterrupt:
        raise exit_interrupted('Interrupted: the same command continues.') from None
    table = grid_of_trainings.table(runs, args.metric)
    write_text(folder / 'results.md', table)
    print(f'\n{table}\n{folder / "results.md"}')
    if failed:
        lines = [f'{len(failed)} of {len(runs)} runs failed; the same command tries them again:']
        lines += [f'  {path}: {why}' for path, why in failed.items()]
        raise SystemExit('\nError: ' + '\n'.join(lines))


if __name__ == '__main__':
    run_command(sys.modules[__name__])
