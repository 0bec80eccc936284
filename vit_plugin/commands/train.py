"""Train a model.

vit-plugin train --data FOLDER
vit-plugin train --data FOLDER --task detection --epochs 20
vit-plugin train --data FOLDER --weights timm://vit_small_patch16_224.augreg_in21k_ft_in1k
vit-plugin train configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py
"""

from argparse import ArgumentParser, Namespace, _ActionsContainer
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vit_plugin.errors import ConfigError
from vit_plugin.from_folder.choices import AUGMENTS, TASK_OPTIONS, TASKS, check_model, models_of
from vit_plugin.suggestions import check_choice

from .early import check_data
from .flags import add_data_arguments, add_flags, add_run_arguments, at_least, collect_given

# Flags of `--data` beyond those that pre-training also has.
FLAGS_OF_DATA = (
    'task',
    'model',
    'tiles',
    'balance',
    'augment',
    'patience',
    'layout',
    'skip_invalid',
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.usage = (
        '%(prog)s --data FOLDER [--task TASK] [options]\n' + 7 * ' ' + '%(prog)s CONFIG [options]'
    )
    data = parser.add_argument_group('your data', 'A config is written into the work directory.')
    add_flags(
        data,
        '--data',
        help='folders of classes, a table of labels, COCO, YOLO, Pascal VOC, LabelMe, CreateML, '
        "masks or maps of depth; 'digits' for scikit-learn's",
    )
    data.add_argument(
        '--task',
        help=f'{", ".join(TASKS[:-1])}; default: the first',
    )
    data.add_argument(
        '--model',
        metavar='NAME',
        help='; '.join(
            f'of {task}: {", ".join(names)}' for task in TASKS if (names := models_of(task))
        )
        + '; default: the first',
    )
    add_data_arguments(data)
    add_folder_flags(data)
    config = parser.add_argument_group('a config in place of --data')
    add_flags(config, 'config', nargs='?')
    config.add_argument(
        '--auto-scale-lr',
        action='store_true',
        help='scale the learning rate by the batch size over auto_scale_lr.base_batch_size',
    )
    run = parser.add_argument_group('the run')
    add_flags(run, '--resume', '--resume-changed')
    run.add_argument('--no-validate', action='store_true', help='do not validate during training')
    add_run_arguments(run)
    run.add_argument(
        '--no-persistent-workers',
        action='store_true',
        help='start the data workers anew each epoch',
    )
    parser._action_groups.append(parser._action_groups.pop(1))  # moves --help to the end


def add_folder_flags(data: _ActionsContainer) -> None:
    """Add the flags of ``--data`` that only this command has."""
    switch: dict[str, Any] = dict(action='store_true', default=None)  # None: not given
    data.add_argument('--balance', **switch, help='take images of rare classes more often')
    data.add_argument(
        '--augment',
        choices=AUGMENTS,
        help='for boxes: mix several images in half of the samples, except in the last tenth of '
        "the epochs: mosaic, or DEIM's dense one-to-one matching (mosaic, mixup and copy-blend)",
    )
    data.add_argument(
        '--skip-invalid',
        **switch,
        help='leave out boxes, masks and images that are invalid, instead of stopping',
    )
    data.add_argument(
        '--layout',
        metavar='FILE',
        help='YAML that describes the folder (docs/data.md); default: anyfolder.yaml in it',
    )
    for name, option in TASK_OPTIONS.items():
        data.add_argument(
            f'--{name.replace("_", "-")}',
            type=at_least(option.minimum, option.kind),
            metavar=option.metavar,
            help=option.help,
        )
    data.add_argument(
        '--tiles',
        type=at_least(16),
        metavar='PIXELS',
        help='for boxes: train on overlapping squares of this side, for small objects in large '
        'images; test and infer then also slice images',
    )
    data.add_argument(
        '--check',
        **switch,
        help='read and decode all of the data, write the config and pictures of it, begin the '
        'training, and stop before its first step',
    )
    data.add_argument(
        '--patience',
        type=at_least(1),
        metavar='N',
        help='end when N validations in a row have not improved',
    )


def apply_train_flags(cfg, args: Namespace) -> None:
    """Apply the flags that only this command has to a config."""
    if args.no_validate:
        cfg.val_cfg = cfg.val_dataloader = cfg.val_evaluator = None
    if args.auto_scale_lr:
        settings = cfg.get('auto_scale_lr')
        if not (isinstance(settings, Mapping) and 'base_batch_size' in settings):
            raise ConfigError(
                '--auto-scale-lr needs auto_scale_lr=dict(base_batch_size=...) in the config.'
            )
        cfg.auto_scale_lr.enable = True
    if args.no_persistent_workers:
        from vit_plugin.config import LOADER_SECTIONS

        for name in LOADER_SECTIONS:
            if isinstance(cfg.get(name), Mapping):  # check_config rejects other values
                cfg[name].persistent_workers = False


def check(args: Namespace) -> None:
    """Check what is trained: the folder, the task and the model, without importing torch."""
    if not (args.data or args.config):
        raise ConfigError('Give a config, or --data with a folder of images.')
    if args.data:
        check_data(args.data)
        check_choice('--task', args.task, TASKS)
        check_model(args.task or TASKS[0], args.model)


def resolve_config(args: Namespace) -> None:
    """Write the config of ``--data``, and use it as ``args.config``."""
    from vit_plugin.from_folder.request import Request
    from vit_plugin.from_folder.write import write_config

    options = {name: value for name in TASK_OPTIONS if (value := getattr(args, name)) is not None}
    flags = collect_given(args, *FLAGS_OF_DATA)
    request = Request(args.data, work_dir=args.work_dir or '', options=options, **flags)
    resumes = bool(args.resume or args.resume_changed)
    args.config = str(write_config(request, resume=resumes, check=bool(args.check)))
    args.work_dir = None  # the config has it


def main(args: Namespace) -> None:
    if args.data:
        from vit_plugin.from_folder.run_folder import release_if_failed

        resolve_config(args)
        with release_if_failed(Path(args.config).parent, at_end=bool(args.check)):
            run(args)
    else:
        run(args)


def run(args: Namespace) -> None:
    """Train, or check, with the config that was given or written."""
    from vit_plugin.commands.allocator import keep_memory
    from vit_plugin.commands.command_line import apply_training_flags, load_config, training_runner

    cfg = load_config(args)
    apply_train_flags(cfg, args)
    apply_training_flags(cfg, args)
    keep_memory()
    with training_runner(cfg) as runner:
        if args.data:
            from vit_plugin.from_folder.duration import DurationHook

            runner.register_hook(DurationHook())
        if args.check:
            from vit_plugin.from_folder.checked_run import check_run

            check_run(runner)
        else:
            runner.train()
