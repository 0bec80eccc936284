r"""Pre-train a backbone on images without labels.

vit-plugin train --weights takes the result.

vit-plugin pretrain --data FOLDER --arch R26+S/32 \
        --teacher timm://vit_small_patch16_dinov3.lvd1689m
vit-plugin pretrain --data FOLDER --method mocov3
vit-plugin pretrain --data FOLDER --method dinov3 --weights hf://facebook/dinov3-vits16-pretrain-lvd1689m
"""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from vit_plugin.errors import MissingExtraError
from vit_plugin.from_folder.choices import CONTINUATIONS, METHOD_NAMES, PRETRAINING
from vit_plugin.suggestions import check_choice

from .early import check_data
from .flags import add_data_arguments, add_flags, add_run_arguments, collect_given


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(parser, '--data', required=True, help='images, in folders of any depth')
    parser.add_argument(
        '--method',
        help='distill (default with --teacher), mocov3 (default without), dino, dinov2, '
        'mae or simmim'
        + ''.join(
            f'; {name} continues the model of --weights, and writes the result in its format'
            for name in CONTINUATIONS
        ),
    )
    add_data_arguments(parser)
    add_run_arguments(parser)
    add_flags(parser, '--resume', '--resume-changed')


def check(args: Namespace) -> None:
    """Check the folder and the method, without importing torch."""
    check_data(args.data)
    check_choice('--method', args.method, METHOD_NAMES)


def main(args: Namespace) -> None:
    from mmengine.dist import is_main_process

    from vit_plugin.commands.command_line import apply_training_flags, load_config, training_runner
    from vit_plugin.engine.checkpoints.newest import newest_checkpoint
    from vit_plugin.from_folder.duration import DurationHook
    from vit_plugin.from_folder.feature_comparison import FeatureComparison
    from vit_plugin.from_folder.pretraining import Pretraining, write_original
    from vit_plugin.from_folder.request import Request
    from vit_plugin.from_folder.run_folder import release_if_failed
    from vit_plugin.from_folder.write import write_config

    # Write a config for the folder, then train with it as ``train CONFIG`` would.
    request = Request(
        args.data, PRETRAINING, work_dir=args.work_dir or '', **collect_given(args, 'method')
    )
    args.config = str(write_config(request, resume=bool(args.resume or args.resume_changed)))
    args.work_dir = None  # the config has it
    with release_if_failed(Path(args.config).parent):
        cfg = load_config(args)
        apply_training_flags(cfg, args)
        with training_runner(cfg, ['train_dataloader']) as runner:
            runner.register_hook(DurationHook())
            runner.train()
    checkpoint = newest_checkpoint(cfg.work_dir)
    if not checkpoint or not is_main_process():
        return
    recipe = Pretraining(request)
    if recipe.method.continues:  # also write the model in the format of --weights
        print(write_original(str(request.weights), checkpoint, Path(cfg.work_dir)))
    comparison = FeatureComparison(recipe, checkpoint)
    comparison.draw(Path(cfg.work_dir, 'features.png'))
    try:
        scores = comparison.nearest_neighbors()
    except MissingExtraError as error:  # the training itself has succeeded
        print(f'Its features are not probed: {error}')
    else:
        if scores:
            before, after = scores
            print(f'Nearest neighbors by its features: {before:.2f} % before, {after:.2f} % after.')
    print(f'Next: vit-plugin train --data FOLDER --weights {cfg.work_dir} --work-dir DIR')
