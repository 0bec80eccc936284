"""Test a checkpoint.

vit-plugin test CHECKPOINT
vit-plugin test work_dirs/RUN
vit-plugin test configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py CHECKPOINT
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from contextlib import nullcontext
from copy import deepcopy
from os.path import abspath
from typing import Any

from vit_plugin.errors import ConfigError
from vit_plugin.files.shipped import config_path

from .flags import add_flags, add_run_arguments, at_least

# By framework (`default_scope`): the model that merges the predictions for several views of an
# image, and the hook that shows predictions.
TTA_MODELS = {
    'mmpretrain': dict(type='AverageClsScoreTTA'),
    'mmdet': dict(
        type='DetTTAModel', tta_cfg=dict(nms=dict(type='nms', iou_threshold=0.5), max_per_img=100)
    ),
    'mmseg': dict(type='SegTTAModel'),
}
SHOW_HOOKS = {
    'mmpretrain': lambda folder: dict(type='VisualizationHook', enable=True, out_dir=folder),
    'mmdet': lambda folder: dict(
        type='DetVisualizationHook', draw=True, test_out_dir=folder and abspath(folder)
    ),
    # Pictures go into the folder of the visualizer.
    'mmseg': lambda folder: dict(type='SegVisualizationHook', draw=True),
}

# The visualizer that each hook draws with, for a config without one. MMEngine's own draws nothing.
VISUALIZERS = {
    'mmpretrain': dict(type='UniversalVisualizer'),
    'mmdet': dict(type='DetLocalVisualizer'),
    'mmseg': dict(type='SegLocalVisualizer'),
}

# Frameworks whose hooks show every image of a test, whatever their interval.
SHOWING_EVERY_IMAGE = ('mmdet', 'mmseg')

# The suffixes of --out, by --out-item.
OUT_SUFFIXES = {'metrics': ('.json', '.yml', '.yaml', '.pkl'), 'pred': ('.pkl', '.pickle')}
# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'give a smaller test_dataloader.batch_size, or --amp'


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(
        parser,
        'checkpoint',
        nargs='+',
        metavar='[CONFIG] CHECKPOINT',
        help='checkpoint, or folder of a run; its config may come before it, as for the frameworks',
    )
    add_flags(parser, '--checkpoint', '--config')
    add_run_arguments(parser)
    add_flags(
        parser,
        '--out',
        metavar='FILE',
        help='file for the results: .pkl, and .json or .yml for metrics',
    )
    parser.add_argument(
        '--out-item',
        choices=['metrics', 'pred'],
        default='pred',
        help='what to write; default: pred',
    )
    parser.add_argument(
        '--tta',
        action='store_true',
        help="test-time augmentation: the config's tta_model and tta_pipeline, else a flip",
    )
    parser.add_argument('--show-dir', help='folder for pictures of the predictions')
    parser.add_argument('--show', action='store_true', help='show the predictions in a window')
    parser.add_argument(
        '--interval', type=at_least(1), default=1, help='of a classifier: show every N-th sample'
    )
    parser.add_argument(
        '--wait-time',
        type=at_least(0, float),
        default=2,
        help='seconds for which a window stays open',
    )


def check(args: Namespace) -> None:
    """Check what is tested and written, and whether there is a display, without importing torch."""
    # The positional arguments are [CONFIG] CHECKPOINT.
    if len(args.checkpoint) > (1 if args.config else 2):
        raise ConfigError('Give one checkpoint, and at most one config.')
    if len(args.checkpoint) == 2:
        config_path(args.checkpoint[0])  # raises if the config does not exist
    if args.out and args.out.suffix not in OUT_SUFFIXES[args.out_item]:
        raise ConfigError(
            f'--out {str(args.out)!r}: --out-item {args.out_item} is written as '
            f'{" or ".join(OUT_SUFFIXES[args.out_item])}; change one of them.'
        )
    if (
        args.show
        and sys.platform.startswith('linux')
        and not (os.environ.get('DISPLAY') or os.environ.get('WAYLAND_DISPLAY'))
    ):
        raise ConfigError(
            '--show needs a display, and this process has none; give --show-dir FOLDER for '
            'pictures.'
        )


def apply_test_flags(cfg, args: Namespace) -> None:
    """Apply the flags of this command to a config.

    Raises:
        ConfigError: if the config cannot be tested, or not in this way.
    """
    from anyfolder.complete import check_target
    from anyfolder.pictures.palette import color_of
    from vit_plugin.config import entry_for_framework

    source = f'config {args.config!r}' if args.config else 'config of the checkpoint'
    if not cfg.get('test_dataloader'):
        raise ConfigError(f'The {source} has no test_dataloader; add one to test it.')
    if cfg.get('test_cfg') is None:
        raise ConfigError(f'The {source} has no test_cfg; add test_cfg=dict() to test it.')
    if args.out:
        check_target(args.out, [path for path in (args.config, args.checkpoint) if path])
    if args.amp:
        cfg.test_cfg.fp16 = True
    if args.show or args.show_dir:
        if args.interval > 1 and cfg.get('default_scope') in SHOWING_EVERY_IMAGE:
            raise ConfigError(
                f'--interval {args.interval}: {cfg.default_scope} shows every image of a test; '
                'leave it out.'
            )
        show_hook = dict(
            entry_for_framework(SHOW_HOOKS, cfg)(args.show_dir),
            show=args.show,
            wait_time=args.wait_time,
            interval=args.interval,
        )
        # The config in a checkpoint lists no hooks, and writes no logs.
        cfg.default_hooks = {**(cfg.get('default_hooks') or {}), 'visualization': show_hook}
        meta = cfg.test_dataloader.dataset.get('metainfo') or {}
        if 'classes' in meta:
            meta['palette'] = [color_of(label) for label in range(len(meta['classes']))]
        if not cfg.get('visualizer'):
            cfg.visualizer = entry_for_framework(VISUALIZERS, cfg)
        if cfg.default_scope == 'mmseg':
            backends = [dict(type='LocalVisBackend')]
            cfg.visualizer.update(save_dir=args.show_dir, vis_backends=backends)
    if args.tta:
        if cfg.test_cfg.get('side'):  # only a SlicedTestLoop has it
            raise ConfigError(
                '--tta: the model is tested by slices, of which none is flipped; leave it out.'
            )
        apply_tta(cfg)


def apply_tta(cfg) -> None:
    """Set up test-time augmentation: wrap the model, and flip before the pipeline's last step.

    A ``tta_model`` and a ``tta_pipeline`` in the config take precedence.

    The first view is not flipped, since the merged predictions are compared with its annotations.

    Raises:
        ConfigError: if the config lacks one of the two and its framework is unknown, or if the
            pipeline to flip in has no steps.
    """
    from mmengine.config import ConfigDict

    from vit_plugin.config import entry_for_framework, with_pipeline

    tta_model = cfg.get('tta_model') or entry_for_framework(TTA_MODELS, cfg)
    dataset = with_pipeline(cfg.test_dataloader.dataset)
    pipeline = cfg.get('tta_pipeline')
    if not pipeline:
        *steps, last = deepcopy(dataset.pipeline) or [None]
        if last is None:
            raise ConfigError(
                '--tta: the pipeline of the test_dataloader has no steps to flip between; give '
                'them there, or a tta_pipeline in the config.'
            )
        flips = [[dict(type='RandomFlip', prob=prob) for prob in (0.0, 1.0)], [last]]
        if 'meta_keys' in last:
            last.meta_keys = (*last.meta_keys, 'flip', 'flip_direction')
        pipeline = [*steps, dict(type='TestTimeAug', transforms=flips)]
    dataset.pipeline = pipeline
    cfg.model = ConfigDict(**tta_model, module=cfg.model)


def innermost_model(model: Any) -> Any:
    """The model inside its wrappers for several processes and several views."""
    while hasattr(model, 'module'):
        model = model.module
    return model


def check_all_read(runner: Any) -> None:
    """Raise a ``ConfigError`` if the metrics lack images that could not be read.

    Only our runner leaves images out. Others have no list of them, and raise the first error.
    """
    unreadable = getattr(runner, 'unreadable', None)
    if unreadable and (number := len(unreadable.left_out)):
        size = len(runner.test_dataloader.dataset)
        raise ConfigError(
            f'{number} of {size} images could not be read; the metrics are those of the others, '
            'and the reasons are above.'
        )


def main(args: Namespace) -> None:
    import mmengine
    from mmengine.dist import is_main_process
    from mmengine.evaluator import DumpResults

    from anyfolder.complete import replacing
    from vit_plugin.commands.command_line import build_runner, load_config
    from vit_plugin.engine.validation_record import to_per_cent
    from vit_plugin.inference.saved_model import open_model
    from vit_plugin.models.loading import load_trained

    if len(args.checkpoint) == 2:  # [CONFIG] CHECKPOINT
        args.config = args.checkpoint[0]
    args.checkpoint = args.checkpoint[-1]
    saved = open_model(args.checkpoint, args.config, args.cfg_options, use='test', which=args.which)
    cfg = load_config(args, saved)
    cfg.load_from = saved.checkpoint.source
    apply_test_flags(cfg, args)
    runner = build_runner(cfg, ['test_dataloader'])
    # MMEngine's own loading silently skips what does not fit.
    load_trained(innermost_model(runner.model), saved.checkpoint)
    writes = args.out and is_main_process()  # every process takes part in the test, one writes
    with (
        replacing(args.out, [args.config or '', args.checkpoint]) if writes else nullcontext()
    ) as path:
        if args.out and args.out_item == 'pred':
            runner.test_evaluator.metrics.append(DumpResults(out_file_path=str(path or args.out)))
        metrics = runner.test()
        if writes and args.out_item == 'metrics':
            mmengine.dump({**metrics, **to_per_cent(metrics)}, path)
    check_all_read(runner)
