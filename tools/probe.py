"""Say how good a checkpoint's features are, without training it.

    python tools/probe.py configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py CHECKPOINT
"""

import argparse
import statistics

import mmengine

from vit_plugin.apps.command_line import add_common_arguments, at_least, build_runner, load_config, run_tool
from vit_plugin.apps.probing import PROBES, features_of, prepare, probe
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import check_target, replacing
from vit_plugin.models.loading import load_weights


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Say how good a checkpoint's features are, without training it.")
    add_common_arguments(parser)
    parser.add_argument('checkpoint', nargs='?',
                        help="a checkpoint of any format, timm:// or hf://; without it, the backbone's own init_cfg")
    parser.add_argument('--probes', nargs='+', choices=PROBES, default=list(PROBES), help='default: all')
    parser.add_argument('--shots', nargs='+', type=at_least(1), default=[1, 5, 10], metavar='N',
                        help='images of each class that fewshot gets; default: 1 5 10')
    parser.add_argument('--seeds', type=at_least(1), default=3, help='how often fewshot draws them; default: 3')
    parser.add_argument('--out', help='a .json file for the accuracies')
    return parser


def main(args: argparse.Namespace) -> None:
    if args.out:
        if not args.out.endswith('.json'):
            raise ConfigError(f'--out {args.out!r}: the accuracies are written as .json.')
        check_target(args.out, [args.config])
    cfg = load_config(args)
    prepare(cfg)
    runner = build_runner(cfg, ['train_dataloader', 'val_dataloader'])
    if args.checkpoint:
        print(load_weights(runner.model, args.checkpoint, skip=['head.{rest}']))
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
