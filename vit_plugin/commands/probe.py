r"""Measure how good a checkpoint's features are, without training it.

vit-plugin probe CHECKPOINT
vit-plugin probe --config configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py
"""

import statistics
from argparse import ArgumentParser, Namespace
from typing import Any

from vit_plugin.errors import ConfigError

from .flags import a_file, add_flags, at_least

PROBE_NAMES = ('knn', 'linear', 'fewshot')
# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller val_dataloader.batch_size'


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(
        parser,
        'checkpoint',
        nargs='*',
        help='a checkpoint, the folder of a run, or weights of any format with --config; without '
        "it, the init_cfg of the config's backbone",
    )
    add_flags(parser, '--checkpoint', '--config', '--work-dir', '--verbose', '--no-pin-memory')
    add_flags(parser, '--cfg-options')
    parser.set_defaults(launcher='none', local_rank=0)  # for load_config: one process
    parser.add_argument('--probes', nargs='+', choices=PROBE_NAMES, help='default: all')
    parser.add_argument(
        '--shots',
        nargs='+',
        type=at_least(1),
        default=[1, 5, 10],
        metavar='N',
        help='images per class for fewshot; default: 1 5 10',
    )
    parser.add_argument(
        '--seeds',
        type=at_least(1),
        default=3,
        metavar='NUMBER',
        help='number of fewshot draws; default: 3',
    )
    add_flags(
        parser, '--out', type=a_file('.json'), metavar='FILE', help='a .json file for the results'
    )


def check(args: Namespace) -> None:
    """Check that there is something to probe, without importing torch."""
    if len(args.checkpoint) > 1:
        raise ConfigError(
            'probe takes one checkpoint; python benchmarks dense_probe compares several on masks.'
        )
    if not args.checkpoint and not args.config:
        raise ConfigError('Give a checkpoint, or --config with a config.')


def main(args: Namespace) -> None:
    """Print the accuracies of one model on the images of its config, and write them."""
    import mmengine

    from anyfolder.complete import check_target, replacing

    if args.out:
        check_target(args.out, [path for path in (args.config, *args.checkpoint) if path])
    results = accuracies(args)
    for name, accuracy in results.items():
        if name != 'fewshot':
            print(f'{name}: {accuracy:.2f} %')
    for number, draws in results.get('fewshot', {}).items():
        print(
            f'fewshot, {number} of each class: {statistics.mean(draws):.2f} % '
            f'({min(draws):.2f} to {max(draws):.2f} in {len(draws)} draws)'
        )
    if args.out:
        with replacing(args.out) as path:
            mmengine.dump(results, path)


def accuracies(args: Namespace) -> dict[str, Any]:
    """The accuracy of each probe, in per cent. ``fewshot`` has one for each draw."""
    from vit_plugin.commands.command_line import build_runner, load_config
    from vit_plugin.inference.saved_model import open_model
    from vit_plugin.measure.probing import compute_features, prepare, probe
    from vit_plugin.models.loading import load_weights

    saved = (
        open_model(args.checkpoint[0], args.config, args.cfg_options, use='probe', which=args.which)
        if args.checkpoint
        else None
    )
    cfg = load_config(args, saved)
    prepare(cfg)
    runner = build_runner(cfg, ['train_dataloader', 'val_dataloader'])
    if saved:
        print(load_weights(runner.model, saved.checkpoint, skip=['head.{rest}']))
    else:
        runner.model.init_weights()
    train, val = (
        compute_features(runner.model, runner.build_dataloader(loader))
        for loader in (cfg.train_dataloader, cfg.val_dataloader)
    )
    return probe(train, val, args.probes or PROBE_NAMES, args.shots, args.seeds)
