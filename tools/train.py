"""Train a model.

    python tools/train.py configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py
"""

import argparse

from vit_plugin.engine.launch import (
    LOADERS,
    add_common_arguments,
    build_runner,
    load_config,
    run_tool,
    told_when_interrupted,
)
from vit_plugin.errors import ConfigError


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description='Train a model.')
    add_common_arguments(parser)
    parser.add_argument('--resume', nargs='?', const='auto', metavar='CHECKPOINT',
                        help='go on from the checkpoint; without a value, from the last one in the work directory')
    parser.add_argument('--no-validate', action='store_true', help='do not validate during training')
    parser.add_argument('--auto-scale-lr', action='store_true',
                        help='scale the learning rate by the batch size over auto_scale_lr.base_batch_size')
    parser.add_argument('--no-persistent-workers', action='store_true', help='start the data workers anew each epoch')
    return parser


def apply_train_flags(cfg, args: argparse.Namespace) -> None:
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.amp:
        cfg.optim_wrapper.type = 'vit_plugin.AmpOptimWrapper'
    if args.resume:
        cfg.resume = True
        if args.resume == 'auto':  # with both, MMEngine would resume from `load_from`
            cfg.begin_from, args.resume = cfg.get('load_from') or cfg.get('begin_from'), None
        cfg.load_from = args.resume
    if args.auto_scale_lr:
        check_auto_scale_lr(cfg)
        cfg.auto_scale_lr.enable = True
    if args.no_persistent_workers:
        for name in LOADERS:
            if cfg.get(name):
                cfg[name].persistent_workers = False


def check_auto_scale_lr(cfg) -> None:
    schedulers = cfg.get('param_scheduler') or []
    if not cfg.get('auto_scale_lr'):
        raise ConfigError('--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config.')
    if any('OneCycle' in scheduler['type'] for scheduler in ([schedulers] if 'type' in schedulers else schedulers)):
        raise ConfigError('--auto-scale-lr does not reach OneCycleLR, which sets the rate by itself: give '
                          '--cfg-options param_scheduler.eta_max=RATE.')


def main(args: argparse.Namespace) -> None:
    cfg = load_config(args)
    apply_train_flags(cfg, args)
    runner = build_runner(cfg)
    with told_when_interrupted(runner):
        runner.train()


if __name__ == '__main__':
    run_tool(make_parser(), main)
