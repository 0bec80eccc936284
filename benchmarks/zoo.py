"""Compare this package's ViT with every Vision Transformer of timm, by its name.

    python benchmarks zoo [--names 'eva02*'] [--dtype float32] [--blocks 0] [--out zoo.md]

For each name and image size, timm's model and ``VisionTransformer(arch='timm://<name>')`` get the
same random weights, through a plain ``load_state_dict`` of timm's names. The tokens before the head
must be equal, in float64 or float32. Both models are built at full width on the meta device. To
save time and memory, only some of their blocks are kept: the first, the middle and the last one, or
fewer if they are very wide (``--blocks 0`` keeps all).

It prints a row for each name: equal (to the last bit), the largest difference relative to the
largest value, UNEQUAL, or rejected with the reason. The status is 1 if anything is unequal. Most
names take seconds, the widest ones minutes. On one core of an EPYC all took 26 minutes in float32,
and 19 in float64 with ``--blocks 1``.
"""

import argparse
import fnmatch
import sys
import time
from collections import Counter
from pathlib import Path

import timm
import torch
from timm.layers.pos_embed_sincos import RotaryEmbeddingMixed
from torch import nn

from benchmarks.measuring.differences import relative_difference
from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import BiasAttention
from vit_plugin.models.layers.rotary import MixedRotary
from vit_plugin.zoo import names

SIZES = ('native', 'square', 'other')
# Allowed difference, relative to the largest value.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-4}


def kept_blocks(depth: int, width: int, count: int | None = None) -> list[int]:
    """Indices of the blocks to keep, evenly spread.

    ``count`` is their number. None: as many as fit into memory at this width; 0: all.
    """
    count = (3 if width <= 1024 else 2 if width <= 1536 else 1) if count is None else count or depth
    spread = [round(i * (depth - 1) / max(count - 1, 1)) for i in range(count)]
    return sorted(set(spread))


def randomize(model: nn.Module) -> None:
    """Fill a model that came from the meta device. Zeros and ones would hide mistakes."""
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.02) if parameter.ndim > 1 else nn.init.uniform_(
            parameter, 0.5, 1.5
        )
    if isinstance(getattr(model, 'rope', None), RotaryEmbeddingMixed):
        nn.init.normal_(model.rope.freqs)
    for name, buffer in model.named_buffers():
        if name.endswith('running_mean'):
            nn.init.normal_(buffer)
        elif name.endswith('running_var'):
            nn.init.uniform_(buffer, 0.5, 1.5)
        elif name.endswith('num_batches_tracked'):
            nn.init.zeros_(buffer)
    for module in model.modules():
        if hasattr(module, 'init_non_persistent_buffers'):
            module.init_non_persistent_buffers()


def build_timm(name: str, blocks: list[int], dtype: torch.dtype, any_size: bool) -> nn.Module:
    """timm's model with random weights and only these blocks.

    ``any_size``: whether it takes images of other sizes than its own.
    """
    with torch.device('meta'):
        sizes = dict(dynamic_img_size=True) if any_size else {}  # an argument that BEiT lacks
        model = timm.create_model(name, num_classes=0, **sizes)
    model.blocks = (
        type(model.blocks)(*(model.blocks[i] for i in blocks))
        if isinstance(model.blocks, nn.Sequential)
        else nn.ModuleList(model.blocks[i] for i in blocks)
    )
    for part in ('attn_pool', 'fc_norm'):
        setattr(model, part, None)
    rope = getattr(model, 'rope', None)
    if getattr(model, 'rope_mixed', False):
        rope.freqs = nn.Parameter(rope.freqs[:, blocks])
    model = model.to_empty(device='cpu').eval()
    randomize(model)
    model.to(dtype)
    if rope is not None and not getattr(model, 'rope_mixed', False):
        # timm computes the angles in the dtype of the model. Published models are in float32, so
        # their angles are too.
        rope.float()
        randomize(rope)
    return model


def build_own(name: str, blocks: list[int], dtype: torch.dtype) -> VisionTransformer:
    """This package's backbone with only these blocks, still without weights."""
    with torch.device('meta'):
        model = VisionTransformer(f'timm://{name}', out_type='raw')
    kept = [model.blocks[i] for i in blocks]
    model.blocks.__init__(kept, (len(kept) - 1,))
    model.num_layers = model.rope.num_layers = len(kept)
    if isinstance(model.rope, MixedRotary):
        model.rope.freqs = nn.Parameter(model.rope.freqs[:, blocks])
    return model.to_empty(device='cpu').to(dtype).eval()


def sizes(model: VisionTransformer) -> dict[str, tuple[int, int]]:
    """The native size, a square and another shape of whole patches. BEiT in timm has one size."""
    if any(isinstance(block.attn, BiasAttention) for block in model.blocks):
        return {'native': model.img_size}
    stride = model.patch_embed.stride
    square = 224 if 224 % stride == 0 else 14 * stride
    shapes = (model.img_size, (square, square), (6 * stride, 9 * stride))
    return dict(zip(SIZES, shapes, strict=True))


@torch.no_grad()
def compare(
    name: str, dtype: torch.dtype = torch.float64, count: int | None = None
) -> dict[str, float]:
    """The largest difference of the tokens at each size, relative to the largest value.

    Raises:
        ConfigError: if this package's backbone rejects the name.
    """
    torch.manual_seed(0)
    with torch.device('meta'):
        whole = VisionTransformer(f'timm://{name}')
    blocks = kept_blocks(whole.num_layers, whole.embed_dims, count)
    model, differences, reference = build_own(name, blocks, dtype), {}, None
    for label, size in sizes(model).items():
        any_size = size != model.img_size
        # timm's model is built once for its own size, and once for all others, with equal weights.
        if reference is None or any_size != reference[0]:
            state = reference and reference[1].state_dict()
            reference = any_size, build_timm(name, blocks, dtype, any_size)
            reference[1].load_state_dict(state) if state else model.load_state_dict(
                reference[1].state_dict()
            )
        images = torch.randn(1, model.patch_embed.in_channels, *size, dtype=dtype)
        expected = reference[1].forward_features(images)
        differences[label] = relative_difference(model(images)[0], expected)
    return differences


def outcome(value: float, dtype: torch.dtype) -> str:
    """The cell of the table for a difference."""
    if value == 0:
        return 'equal'
    return f'{value:.1e}' if value <= TOLERANCE[dtype] else f'UNEQUAL {value:.1e}'


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('--names', default='*', help='pattern of the names')
    parser.add_argument('--dtype', default='float64', choices=['float64', 'float32'])
    parser.add_argument('--blocks', type=int, help='number of blocks to keep, 0 for all')
    parser.add_argument('--out', type=Path, help='file for the table')
    args = parser.parse_args()
    chosen = fnmatch.filter(names(), args.names)
    if not chosen:
        parser.error(f'--names {args.names}: no name of timm matches it')
    dtype, counts, worst, start = getattr(torch, args.dtype), Counter(), 0.0, time.time()
    rows = [f'| name | {" | ".join(SIZES)} |', '|---|---|---|---|']
    print(*rows, sep='\n')
    for name in chosen:
        try:
            differences = compare(name, dtype, args.blocks)
            cells = [
                outcome(differences[size], dtype) if size in differences else '' for size in SIZES
            ]
            row = f'| `{name}` | {" | ".join(cells)} |'
            largest = max(differences.values())
            worst = max(worst, largest)
            if largest > TOLERANCE[dtype]:
                counts['unequal'] += 1
            elif largest:
                counts['equal up to rounding'] += 1
            else:
                counts['equal to the last bit'] += 1
        except ConfigError as error:
            row = f'| `{name}` | rejected: {error} | | |'
            counts['rejected'] += 1
        rows.append(row)
        print(row, flush=True)
        if args.out:
            args.out.write_text('\n'.join(rows) + '\n')
    print(
        f'{sum(counts.values())} names in {args.dtype}: '
        + ', '.join(f'{count} {kind}' for kind, count in sorted(counts.items()))
        + f'; largest difference {worst:.1e}; '
        f'{time.time() - start:.0f} s'
    )
    return int(counts['unequal'] > 0)


if __name__ == '__main__':
    sys.exit(main())
