"""Write a checkpoint in another format, or a run as a model of Hugging Face's hub.

    vit-plugin convert B_16.npz --to timm --out vit-base-p16.safetensors
    vit-plugin convert work_dirs/run/epoch_100 --out model.pth
    vit-plugin convert work_dirs/run --out hf://USER/NAME --license apache-2.0
    vit-plugin convert work_dirs/run --to hf --out folder_for_transformers
    vit-plugin convert work_dirs/run --into rf-detr-nano.pth --out continued.pth

Without ``--to``, the whole model is written under its own names, for the other commands and
``load_from``. LoRA adapters are merged. ``--dtype float16`` halves the file, for a release.
``--out`` without a suffix is a folder with everything that would be uploaded to ``hf://USER/NAME``.
``--into`` rewrites the checkpoint that a run started from, with the trained backbone.
"""

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from anyfolder.complete import check_target
from vit_plugin.errors import ConfigError

from .flags import add_flags, add_target, at_least

WEIGHT_SUFFIXES = ('.npz', '.safetensors', '.pth', '.bin')
# Advice if memory runs out, see commands/__init__.py.
LESS_MEMORY = 'free some memory: the whole model is loaded at once'


def add_arguments(parser: ArgumentParser) -> None:
    add_flags(
        parser,
        'checkpoint',
        help='path of a file or checkpoint folder, folder of a run, http(s)://, timm://MODEL or '
        'hf://ORG/MODEL',
    )
    add_flags(parser, '--checkpoint')
    add_target(
        parser,
        f'file to write ({", ".join(WEIGHT_SUFFIXES)}), folder for a hub, or hf://USER/NAME',
        type=os.path.expanduser,  # a Path would merge the slashes of hf://
        metavar='TARGET',
    )
    parser.add_argument(
        '--to',
        metavar='FORMAT',
        help='naming format, such as timm, jax, mmpretrain, or hf (the matching format of '
        'transformers); default: the whole model as it is. For a hub: timm, hf or vit_plugin; '
        'default: the first that has the model',
    )
    parser.add_argument(
        '--into',
        metavar='ORIGINAL',
        help='the file, folder or name that the run started from: it is rewritten with the '
        'backbone of the run, all else unchanged',
    )
    parser.add_argument(
        '--num-heads',
        type=at_least(1),
        help='attention heads, for --to jax; default: those of the checkpoint, or the usual ones '
        'for its width',
    )
    add_flags(parser, '--dtype', help='dtype of the weights; default: that of the checkpoint')
    parser.add_argument(
        '--license',
        '--licence',
        help="of the weights, by the hub's name, such as apache-2.0; default: the checkpoint's",
    )
    parser.add_argument('--private', action='store_true', help='upload to a private repository')


def write_in_source_layout(args: Namespace) -> None:
    """Rewrite the checkpoint that a run started from, with the run's backbone."""
    from vit_plugin.inference.saved_model import find_checkpoint
    from vit_plugin.weights import open_checkpoint
    from vit_plugin.weights.source_layout import export_to_source_layout

    original = open_checkpoint(find_checkpoint(args.into, None))
    trained = open_checkpoint(find_checkpoint(args.checkpoint, args.which))
    print(export_to_source_layout(original, trained, Path(args.out)))


def write_weights(args: Namespace) -> None:
    """Write a weight file, renamed if ``--to`` is given."""
    from vit_plugin.deploy.weight_file import WeightFile
    from vit_plugin.inference.saved_model import find_checkpoint
    from vit_plugin.weights import FORMATS
    from vit_plugin.weights.hub_files import weights_in

    args.out = Path(args.out)
    if args.out.suffix not in WEIGHT_SUFFIXES:
        raise ConfigError(
            f'--out {str(args.out)!r} must end in one of {", ".join(WEIGHT_SUFFIXES)}, or have '
            'no suffix and be a folder.'
        )
    if args.to and args.to not in FORMATS:
        raise ConfigError(f'--to: there is no {args.to!r}; give one of {", ".join(FORMATS)}.')
    if args.which or not weights_in(args.checkpoint):
        args.checkpoint = find_checkpoint(args.checkpoint, args.which)
    check_target(args.out, [args.checkpoint])
    file = WeightFile(args.out, args.checkpoint, args.dtype, args.license)
    print(file.write_renamed(args.to, args.num_heads) if args.to else file.write_model())


def write_hub_folder(args: Namespace) -> None:
    """Write a folder of a hub, or upload it."""
    from vit_plugin.deploy.hub.publishing import publish

    summary = publish(
        args.checkpoint,
        args.out,
        hub_format=args.to,
        dtype=args.dtype,
        license=args.license,
        private=args.private,
        which=args.which,
    )
    print(summary)


def main(args: Namespace) -> None:
    if args.into:
        write_in_source_layout(args)
    elif args.out.startswith('hf://') or not Path(args.out).suffix:
        write_hub_folder(args)
    else:
        write_weights(args)
