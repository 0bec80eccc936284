"""Train configs over a grid of settings with several seeds, and compare.

    python tools/sweep.py CONFIG --grid optim_wrapper.optimizer.lr=1e-3,3e-3 model.backbone.drop_rate=0,0.1 --seeds 3
    python tools/sweep.py HYBRID PURE --grid train_cfg.max_epochs=2,4,8 --seeds 2 --jobs 2

The same command continues what is not finished.
"""

import argparse
from pathlib import Path

from vit_plugin.apps.flags import KeyValue, add_cfg_options, at_least, run_tool


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description='Train configs over a grid of settings with several seeds, and compare.')
    parser.add_argument('config', nargs='+', help='config files to compare')
    parser.add_argument('--grid', nargs='+', action=KeyValue, default={}, metavar='KEY=A,B,C',
                        help='a setting and its values; several flags or pairs make all combinations')
    parser.add_argument('--seeds', type=at_least(1), default=3, help='seeds of each combination; default: 3')
    parser.add_argument('--work-dir', type=Path, help='folder; default: work_dirs/sweep_CONFIG, of the first config')
    parser.add_argument('--metric', help='the metric to compare; default: the first that is recorded')
    parser.add_argument('--best', action='store_true', help='compare the largest value over all validations, and not '
                                                            'the last')
    parser.add_argument('--jobs', type=at_least(1), default=1,
                        help='how many to train at the same time on this machine; default: 1')
    parser.add_argument('--slurm', metavar='PARTITION', help='train as Slurm jobs (needs submitit)')
    parser.add_argument('--slurm-options', nargs='+', action=KeyValue, metavar='KEY=VALUE',
                        help="submitit's settings, such as timeout_min=600 gpus_per_node=1 slurm_array_parallelism=8")
    add_cfg_options(parser)
    return parser


def main(args: argparse.Namespace) -> None:
    from vit_plugin.apps.sweep.grid import Sweep
    from vit_plugin.apps.sweep.jobs import run_here, run_on_slurm
    from vit_plugin.apps.sweep.results import as_markdown, collect, write_results
    grid = {key: value if isinstance(value, list) else [value] for key, value in args.grid.items()}
    folder = args.work_dir or Path('work_dirs', f'sweep_{Path(args.config[0]).stem}')
    sweep = Sweep(tuple(args.config), grid, args.seeds, folder, args.cfg_options or {},
                  Path(__file__).with_name('train.py'))
    sweep.check()
    sweep.claim()
    try:
        failed = run_here(sweep.runs, args.jobs) if not args.slurm else run_on_slurm(
            sweep.runs, args.slurm, folder / 'slurm', args.slurm_options or {})
    except KeyboardInterrupt:
        raise SystemExit('Interrupted: the same command continues.') from None
    metric, rows, without = collect(sweep, args.metric, args.best)
    failed.update(without)
    paths = write_results(sweep, metric, rows, failed)
    print(f'\n{as_markdown(metric, rows)}\n{", ".join(map(str, paths))}')
    if failed:
        raise SystemExit('\n'.join([
            f'\nError: {len(failed)} of {len(sweep.runs)} runs have no result; the same command tries those that '
            'failed again:', *(f'  {path}: {words}' for path, words in failed.items())]))


if __name__ == '__main__':
    run_tool(make_parser(), main)
