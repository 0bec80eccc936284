"""Say how good a checkpoint's features are, without training it.

    python tools/probe.py CHECKPOINT
    python tools/probe.py --config configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py
"""

import argparse
import statistics

from vit_plugin.apps.flags import add_config_argument, add_run_arguments, at_least, run_tool
from vit_plugin.errors import ConfigError

PROBES = ('knn', 'linear', 'fewshot')


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Say how good a checkpoint's features are, without training it.")
    parser.add_argument('checkpoint', nargs='?',
                        help="a checkpoint, the folder of a run, or weights of any format with --config; without it, "
                             "the init_cfg of the config's backbone")
    add_config_argument(parser)
    add_run_arguments(parser)
    parser.add_argument('--probes', nargs='+', choices=PROBES, default=list(PROBES), help='default: all')
    parser.add_argument('--shots', nargs='+', type=at_least(1), default=[1, 5, 10], metavar='N',
                        help='images of each class that fewshot gets; default: 1 5 10')
    parser.add_argument('--seeds', type=at_least(1), default=3, help='how often fewshot draws them; default: 3')
    parser.add_argument('--out', help='a .json file for the accuracies')
    return parser


def main(args: argparse.Namespace) -> None:
    import mmengine

    from vit_plugin.apps.checkpoint import open_checkpoint
    from vit_plugin.apps.command_line import build_runner, load_config
    from vit_plugin.apps.probing import features_of, prepare, probe
    from vit_plugin.files.complete import check_target, replacing
    from vit_plugin.models.loading import load_weights
    from vit_plugin.weights.files import find_weights
    if args.out:
        if not args.out.endswith('.json'):
            raise ConfigError(f'--out {args.out!r}: the accuracies are written as .json.')
        check_target(args.out, [path for path in (args.config, args.checkpoint) if path])
    if not args.checkpoint and not args.config:
        raise ConfigError('Give a checkpoint, or --config with a config.')
    checkpoint = open_checkpoint(args.checkpoint, args.config, args.cfg_options) if args.checkpoint else None
    cfg = load_config(args, checkpoint)
    prepare(cfg)
    runner = build_runner(cfg, ['train_dataloader', 'val_dataloader'])
    if checkpoint:
        print(load_weights(runner.model, find_weights(checkpoint.content), skip=['head.{rest}']))
    else:
        runner.model.init_weights()
    samples = [features_of(runner.model, runner.build_dataloader(loader))
               for loader in (cfg.train_dataloader, cfg.val_dataloader)]
    found = probe(*samples, args.probes, args.shots, args.seeds)
    for name, accuracy in found.items():
        if name != 'fewshot':
            print(f'{name}: {accuracy:.2f} %')
    for number, accuracies in found.get('fewshot', {}).items():
        print(f'fewshot, {number} of each class: {statistics.mean(accuracies):.2f} % '
              f'({min(accuracies):.2f} to {max(accuracies):.2f} in {len(accuracies)} draws)')
    if args.out:
        with replacing(args.out) as path:
            mmengine.dump(found, path)


if __name__ == '__main__':
    run_tool(make_parser(), main)
