r"""A training of 12 iterations that uses every source of randomness, for tests of resuming.

    python benchmarks tiny_run WORK_DIR [--loop iter] [--workers 2] [--resume] \
        [--cfg-options KEY=VALUE ...]

It has augmentation in the data workers, mixup, dropout and drop path; further EMA, gradient
clipping, a schedule, and validation with a best checkpoint. The data are 64 of scikit-learn's
digits in batches of 16. It takes 1 s in a process that has imported MMPretrain.
:func:`differences` compares the checkpoints of two runs bit for bit.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import torch
from mmengine.config import Config, DictAction
from mmengine.registry import RUNNERS
from mmengine.runner import Runner

from vit_plugin.engine.checkpoints.state import key_by_numbers
from vit_plugin.weights.reading.folders import read_folder

ITERATIONS, PER_EPOCH, BATCH = 12, 4, 16
# Parts of the names of recorded values that differ between any two runs.
CLOCKS = ('time', 'memory', 'eta', 'images/s', 'data_wait')

MODEL = dict(
    type='ImageClassifier',
    data_preprocessor=dict(num_classes=10, mean=[127.5], std=[127.5], to_rgb=False),
    backbone=dict(
        type='vit_plugin.VisionTransformer',
        arch=dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64, patch_size=2),
        img_size=8,
        patch_embed=dict(in_channels=1),
        drop_rate=0.1,
        drop_path_rate=0.2,
        out_type='avg_featmap',
        with_cls_token=False,
    ),
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=10,
        in_channels=32,
        loss=dict(type='CrossEntropyLoss'),
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.8)]),
)

EMA_HOOKS = [dict(type='EMAHook', momentum=0.3)]  # the hooks of a run without a report

# Settings of a wider model. Its matrix products, of 256 tokens of width 256 in an iteration, are
# computed by other kernels than those of small ones.
WIDE: dict[str, Any] = {
    'model.backbone.arch': dict(
        embed_dims=256, num_layers=1, num_heads=4, feedforward_channels=512, patch_size=2
    ),
    'model.head.in_channels': 256,
    'custom_hooks': [
        *EMA_HOOKS,
        dict(type='vit_plugin.ReportHook'),
        dict(type='vit_plugin.OptimizeHook'),
    ],
}

AUGMENTS = [
    dict(type='RandomCrop', crop_size=8, padding=1),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
]


def tiny_cfg(
    work_dir: str | Path, loop: Literal['epoch', 'iter'] = 'epoch', workers: int = 0, **options: Any
) -> Config:
    """The config of the run.

    Args:
        work_dir: the folder of the run.
        loop: ``'epoch'`` (3 epochs of 4 iterations) or ``'iter'`` (12 iterations).
        workers: number of processes that load data.
        **options: changes of the config by dotted names, such as
            ``**{'optim_wrapper.optimizer.lr': 1e-2}``.
    """
    by_epoch = loop == 'epoch'
    data = dict(type='vit_plugin.Digits', indices=PER_EPOCH * BATCH)
    cfg = Config(
        dict(
            default_scope='mmpretrain',
            runner_type='vit_plugin.Runner',
            work_dir=str(work_dir),
            experiment_name=f'tiny_{uuid4().hex[:8]}',  # two runs in one process share nothing
            launcher='none',
            log_level='WARNING',
            load_from=None,
            resume=False,
            randomness=dict(seed=7, diff_rank_seed=True),
            env_cfg=dict(
                mp_cfg=dict(mp_start_method='fork', opencv_num_threads=0),
                dist_cfg=dict(backend='gloo'),
            ),
            model=options.pop('model', MODEL),
            train_cfg=dict(by_epoch=True, max_epochs=ITERATIONS // PER_EPOCH, val_interval=1)
            if by_epoch
            else dict(by_epoch=False, max_iters=ITERATIONS, val_interval=PER_EPOCH),
            train_dataloader=dict(
                batch_size=BATCH,
                num_workers=workers,
                persistent_workers=workers > 0,
                collate_fn=dict(type='default_collate'),
                dataset=dict(data, split='train', pipeline=[*AUGMENTS, dict(type='PackInputs')]),
                sampler=dict(
                    type='DefaultSampler' if by_epoch else 'InfiniteSampler', shuffle=True
                ),
            ),
            val_dataloader=dict(
                batch_size=32,
                num_workers=0,
                collate_fn=dict(type='default_collate'),
                dataset=dict(data, split='val', pipeline=[dict(type='PackInputs')]),
                sampler=dict(type='DefaultSampler', shuffle=False),
            ),
            val_cfg=dict(),
            val_evaluator=dict(type='Accuracy', topk=(1,)),
            optim_wrapper=dict(
                type='vit_plugin.OptimWrapper',
                optimizer=dict(type='AdamW', lr=1e-2, weight_decay=0.05),
                clip_grad=dict(max_norm=1.0),
            ),
            param_scheduler=[
                dict(type='LinearLR', start_factor=0.1, by_epoch=False, begin=0, end=3),
                dict(
                    type='CosineAnnealingLR',
                    by_epoch=False,
                    begin=3,
                    end=ITERATIONS,
                    T_max=ITERATIONS - 3,
                ),
            ],
            default_hooks=dict(
                runtime_info=dict(type='vit_plugin.RuntimeInfoHook'),
                logger=dict(type='LoggerHook', interval=3),
                checkpoint=dict(
                    type='CheckpointHook',
                    interval=1 if by_epoch else PER_EPOCH,
                    by_epoch=by_epoch,
                    max_keep_ckpts=3,
                    save_best='auto',
                ),
            ),
            custom_hooks=[*EMA_HOOKS, dict(type='vit_plugin.ReportHook', pictures=False)],
        ),
        format_python_code=False,  # MMEngine formats it five times, in a fifth of the time of a run
    )
    cfg.merge_from_dict(options)
    return cfg


def build(cfg: Config) -> Runner:
    """The runner of such a config."""
    return RUNNERS.build(cfg)


def final_checkpoint(work_dir: str | Path) -> Path:
    """The checkpoint that a run ended with."""
    return Path(Path(work_dir, 'last_checkpoint').read_text())


def differences(first: str | Path, second: str | Path) -> list[str]:
    """The names of the values that differ between two checkpoints, files or folders.

    Weights, EMA weights, the optimizer, schedules, the scaler, all recorded scalars, the epoch and
    the iteration are compared. Times, memory and the names of the runs are not.
    """
    a, b = (dict(_leaves(_compared(path))) for path in (first, second))
    return sorted({*a} ^ {*b} | {name for name in {*a} & {*b} if not _equal(a[name], b[name])})


def _compared(path: str | Path) -> dict[str, Any]:
    """The values of a checkpoint that are compared."""
    if Path(path).is_dir():
        checkpoint = read_folder(path, parts=None)
        if 'optimizer' in checkpoint:
            names = checkpoint['meta']['run']['parameters']
            checkpoint['optimizer'] = key_by_numbers(checkpoint['optimizer'], names)
    else:
        checkpoint = torch.load(path, map_location='cpu', weights_only=False)
    scalars = {
        name: buffer.data
        for name, buffer in checkpoint.pop('message_hub')['log_scalars'].items()
        if not any(clock in name for clock in CLOCKS)
    }
    position = {name: checkpoint['meta'][name] for name in ('epoch', 'iter', 'seed')}
    rows = [dict(row, seconds=0) for row in checkpoint.pop('report', {}).get('rows', ())]
    return dict(checkpoint, meta=position, scalars=scalars, rows=rows)


def _leaves(value: Any, name: str = '') -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f'{name}.{key}')
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for i, item in enumerate(value):
            yield from _leaves(item, f'{name}.{i}')
    else:
        yield name, value


def _equal(a: Any, b: Any) -> bool:
    """True if two leaves are equal in type and value. A float NaN equals another."""
    if hasattr(a, 'shape') and hasattr(b, 'shape'):
        a, b = torch.as_tensor(a), torch.as_tensor(b)
        return a.dtype == b.dtype and torch.equal(a, b)
    return type(a) is type(b) and (a == b or (a != a and b != b))


def main() -> None:
    parser = argparse.ArgumentParser(description='Train the tiny run.')
    parser.add_argument('work_dir')
    parser.add_argument('--loop', choices=['epoch', 'iter'], default='epoch')
    parser.add_argument('--workers', type=int, default=0)
    parser.add_argument('--launcher', choices=['none', 'pytorch', 'slurm'], default='none')
    parser.add_argument('--resume', action='store_true')
    parser.add_argument('--cfg-options', nargs='+', action=DictAction, default={})
    args = parser.parse_args()
    from vit_plugin.commands.command_line import build_runner
    from vit_plugin.commands.one_sentence import one_sentence_errors
    from vit_plugin.importable import make_importable

    make_importable()
    cfg = tiny_cfg(
        args.work_dir,
        args.loop,
        args.workers,
        launcher=args.launcher,
        resume=args.resume,
        **args.cfg_options,
    )
    with one_sentence_errors():
        build_runner(cfg).train()


if __name__ == '__main__':
    main()
