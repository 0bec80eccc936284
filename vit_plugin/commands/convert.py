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
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyfolder.complete import check_target, replacing
from vit_plugin.errors import ConfigError, naming

from .flags import add_flags, add_target, at_least

if TYPE_CHECKING:
    from vit_plugin.weights.opening import Checkpoint
    from vit_plugin.weights.provenance import Provenance

WEIGHT_SUFFIXES = ('.npz', '.safetensors', '.pth', '.bin')
# Keys of a checkpoint's metadata that converted weights keep.
KEPT_METADATA = ('cfg', 'dataset_meta', 'epoch', 'iter')
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


def write_tensors(weights: dict[str, Any], path: Path, suffix: str, record: 'Provenance') -> None:
    """Write tensors, with their provenance record, in the file format that the suffix names.

    ``path`` is a temporary file, whose own suffix does not count.
    """
    import numpy as np
    import torch
    from safetensors.torch import save_file

    from vit_plugin.weights.carried_records import append_record
    from vit_plugin.weights.provenance import PROVENANCE_KEY

    if suffix == '.safetensors':
        save_file(weights, path, {PROVENANCE_KEY: record.text()})
    elif suffix == '.npz':
        np.savez(path, **{key: value.numpy() for key, value in weights.items()})
    else:
        torch.save(weights, path)
    append_record(path, record)  # does nothing unless the file is an archive: .pth or .bin


def prepare_tensor(name: str, value, args: Namespace):
    """Copy a tensor, in the dtype of ``--dtype`` or another that the file can hold.

    safetensors rejects tensors that share memory, hence the copy.

    Raises:
        ConfigError: if a value is not finite, in the checkpoint or in the new dtype.
    """
    import torch

    from vit_plugin.models.loading.loadable import check_finite, overflow_remedy

    check_finite([(name, value)], args.checkpoint)
    if value.is_floating_point() and args.dtype:
        value = value.to(getattr(torch, args.dtype))
    if args.out.suffix == '.npz' and value.dtype == torch.bfloat16:  # numpy has no bfloat16
        value = value.float()
    check_finite([(name, value)], args.checkpoint, overflow_remedy(args.dtype))
    return value.contiguous().clone()


def find_heads(args: Namespace, checkpoint: 'Checkpoint', state: Mapping) -> int:
    """The number of attention heads, which only ``--to jax`` needs. Other formats get 1.

    It is taken from ``--num-heads``, the checkpoint's kernels or its config, in this order. Only
    flax kernels, (..., width, heads, head width), show it. Otherwise the usual number for the width
    is taken, and printed.

    Raises:
        ConfigError: if ``--to`` needs an encoder and there is none, or if the number is unknown or
            does not divide the width.
    """
    from vit_plugin.arch import num_heads_of_width, parse_arch
    from vit_plugin.weights.saved_settings import saved_backbone

    # A detector may have another encoder, such as a CNN, and formats of its own.
    is_detector = any(key.startswith('bbox_head.') for key in state)
    if 'blocks.0.norm1.weight' not in state and (args.to == 'jax' or not is_detector):
        raise ConfigError(
            f'{args.checkpoint!r} has no block of an encoder, and --to {args.to} names whole '
            'models; leave --to out to write the tensors as they are.'
        )
    if args.to != 'jax':
        return 1
    width = state['blocks.0.norm1.weight'].shape[0]
    weights = checkpoint.weights
    kernel = next((weights[key] for key in weights if key.endswith('query/kernel')), None)
    if args.num_heads:
        heads = args.num_heads
    elif kernel is not None:
        heads = kernel.shape[-2]
    elif arch := saved_backbone(checkpoint).get('arch'):
        heads = parse_arch(arch).num_heads
    elif heads := num_heads_of_width(width):
        print(f'{heads} attention heads, as usual for the width {width}; --num-heads gives others')
    if not heads:
        raise ConfigError(
            f'{args.checkpoint!r} does not state its attention heads, and the width {width} is '
            'not a usual one; give --num-heads, the number of the model.'
        )
    if width % heads:
        raise ConfigError(
            f'{heads} attention heads do not divide the width {width}; give --num-heads, the '
            'number of the model.'
        )
    return heads


def build_record(args: Namespace, checkpoint: 'Checkpoint') -> 'Provenance':
    """The provenance record of the file to write, which states where its weights come from."""
    from vit_plugin.weights.carried_records import checkpoint_record
    from vit_plugin.weights.provenance import converted_record

    return converted_record(checkpoint_record(checkpoint), str(args.out), args.license or '')


def write_model(args: Namespace) -> None:
    """Write a run's weights under their own names. A ``.pth`` or ``.bin`` also has its metadata."""
    import torch

    from vit_plugin.weights import open_checkpoint
    from vit_plugin.weights.hub import weights_in
    from vit_plugin.weights.provenance import PROVENANCE_KEY
    from vit_plugin.weights.published_run import as_run

    checkpoint = as_run(open_checkpoint(args.checkpoint))
    is_hub_folder = args.checkpoint.startswith('hf://') or weights_in(args.checkpoint)
    has_framework_names = any('backbone.' in name for name in checkpoint.weights)
    if is_hub_folder and checkpoint.meta and not has_framework_names:
        raise ConfigError(
            f'{args.checkpoint!r} has the names of another library; the commands read it as it is, '
            'and --to vit_plugin writes only its weights.'
        )
    weights = {
        name: prepare_tensor(name, value, args) for name, value in checkpoint.weights.items()
    }
    meta = {name: value for name, value in checkpoint.meta.items() if name in KEPT_METADATA}
    record = build_record(args, checkpoint)
    meta[PROVENANCE_KEY] = record.plain()
    with replacing(args.out, [args.checkpoint]) as path:
        if args.out.suffix in ('.pth', '.bin'):
            torch.save(dict(meta=meta, state_dict=weights), path)
        else:
            write_tensors(weights, path, args.out.suffix, record)
    print(f'{len(weights)} tensors as they are: {args.out}')


def write_in_source_layout(args: Namespace) -> None:
    """Rewrite the checkpoint that a run started from, with the run's backbone."""
    from vit_plugin.inference.saved_model import find_checkpoint
    from vit_plugin.weights import open_checkpoint
    from vit_plugin.weights.source_layout import export_to_source_layout

    original = open_checkpoint(find_checkpoint(args.into, None))
    trained = open_checkpoint(find_checkpoint(args.checkpoint, args.which))
    print(export_to_source_layout(original, trained, Path(args.out)))


def write_renamed(args: Namespace) -> None:
    """Write the weights under the names of the format ``--to``, without what it has no name for.

    Raises:
        ConfigError: if that is more than a head or neck.
    """
    from vit_plugin.weights import export, open_checkpoint, recognize

    checkpoint = open_checkpoint(args.checkpoint)
    with naming(args.checkpoint):
        recognized = recognize(checkpoint.weights)
        state = dict(recognized)
    exported, unnamed, target_format = export(state, args.to, find_heads(args, checkpoint, state))
    essential = [key for key in unnamed if not key.startswith(('head.', 'neck.'))]
    if essential:
        raise ConfigError(
            f'The format {target_format.name} has no name for {", ".join(essential)}, and the '
            'model would compute something else without them; choose another format.'
        )
    exported = {key: prepare_tensor(key, value, args) for key, value in exported.items()}
    with replacing(args.out, [args.checkpoint]) as path:
        write_tensors(exported, path, args.out.suffix, build_record(args, checkpoint))
    formats = f'{recognized.format.name} to {target_format.name}'
    print(f'{len(exported)} tensors from the format {formats}: {args.out}')
    if unnamed:
        print(f'{target_format.name} has no name for {", ".join(unnamed)}, which were left out')


def write_weights(args: Namespace) -> None:
    """Write a weight file, renamed if ``--to`` is given."""
    from vit_plugin.inference.saved_model import find_checkpoint
    from vit_plugin.weights import FORMATS
    from vit_plugin.weights.hub import weights_in

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
    if args.to:
        write_renamed(args)
    else:
        write_model(args)


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
