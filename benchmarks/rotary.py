r"""Measure the cost of rotary positions, in this package's ViT and in timm's.

    python benchmarks rotary [--img-size 224 1024] [--rounds 15] [--batch-size 1] \
        [--device cpu] [--dtype float32] [--optimize]

Five models of B/16 run interleaved, in eval mode and without gradients, so that tables of angles
are cached: this package's ViT without positions, with DINOv3's rotary positions (a plane of
rotation is a channel of each half) and with EVA-02's (a plane is two neighboring channels), and
timm's ``Eva`` with the weights of the latter two. The cost is the ratio of the median time to that
of the first. With ``--optimize`` this package's models have the passes of ``vit-plugin infer``. The
status is 1 if rotary positions cost more than 3 %, or if this package's ViT is slower than timm's.
"""

import argparse
import sys
from statistics import median

import torch
from timm.models.eva import Eva
from torch import Tensor, nn

from benchmarks.measuring.calls import interleaved
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.passes import optimize

LIMIT = 1.03  # allowed time, relative to the forward without positions
# Arguments of this package's and of timm's rotary positions, by their planes of rotation.
FORMS = {
    'halves': dict(form='centred', planes='halves'),
    'neighbours': dict(form='index', planes='neighbours'),
}
TIMM = {
    'halves': dict(rope_type='dinov3', rope_rotate_half=True, rope_temperature=100.0),
    'neighbours': dict(),
}


def models(size: int, arch: str | dict = 'B/16') -> dict[str, nn.Module]:
    """The models by name. This package's and timm's have the same weights."""
    common = dict(
        arch=arch, img_size=size, numerics='timm', out_type='raw', encoder=dict(qkv_bias=False)
    )
    made = {'no positions': VisionTransformer(**common, pos_embed='none').eval()}
    sizes = made['no positions']
    for planes, rotary in FORMS.items():
        ours = VisionTransformer(**common, pos_embed=dict(type='none', rotary=rotary)).eval()
        theirs = Eva(
            size,
            sizes.patch_embed.patch_size,
            num_classes=0,
            global_pool='',
            embed_dim=sizes.embed_dims,
            depth=sizes.num_layers,
            num_heads=sizes.num_heads,
            mlp_ratio=4,
            qkv_bias=False,
            use_abs_pos_emb=False,
            use_rot_pos_emb=True,
            **TIMM[planes],
        ).eval()
        load_weights(ours, theirs.state_dict())
        made |= {f'ours, {planes}': ours, f"timm's Eva, {planes}": theirs}
    return made


def run(
    size: int,
    rounds: int,
    batch: int = 1,
    device: str = 'cpu',
    dtype: torch.dtype = torch.float32,
    arch: str | dict = 'B/16',
    passes: bool = False,
) -> dict[str, float]:
    """Median seconds of each model's forward.

    Raises:
        AssertionError: if ours and timm's do not compute the same.
    """
    torch.manual_seed(0)
    made = {name: model.to(device, dtype) for name, model in models(size, arch).items()}
    for name, model in made.items():
        if passes and 'timm' not in name:
            optimize(model)
    images = torch.randn(batch, 3, size, size, device=device, dtype=dtype)

    def tokens(name: str) -> Tensor:
        return made[name](images)[0] if 'timm' not in name else made[name].forward_features(images)

    with torch.no_grad():
        for planes in FORMS:
            ours, theirs = tokens(f'ours, {planes}'), tokens(f"timm's Eva, {planes}")
            assert (ours - theirs).abs().max() <= 100 * torch.finfo(
                dtype
            ).eps * theirs.abs().max(), planes
        calls = {name: lambda name=name: tokens(name) for name in made}
        interleaved(calls, 1)  # warm-up
        times = interleaved(calls, rounds, repeats=10 if device == 'cuda' else 1)
    return {name: median(taken) for name, taken in times.items()}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--img-size', type=int, nargs='+', default=[224, 1024])
    parser.add_argument('--rounds', type=int, default=15)
    parser.add_argument('--batch-size', type=int, default=1)
    parser.add_argument('--device', default='cpu')
    parser.add_argument('--dtype', choices=('float32', 'bfloat16'), default='float32')
    parser.add_argument(
        '--optimize', action='store_true', help='apply the passes of our tools to ours'
    )
    args = parser.parse_args()
    failed = False
    for size in args.img_size:
        taken = run(
            size,
            args.rounds,
            args.batch_size,
            args.device,
            getattr(torch, args.dtype),
            passes=args.optimize,
        )
        base = taken['no positions']
        print(
            f'{size} px: '
            + '; '.join(
                f'{name} {1000 * value:.1f} ms ({100 * (value / base - 1):+.1f} %)'
                for name, value in taken.items()
            ),
            flush=True,
        )
        failed |= any(
            taken[f'ours, {planes}'] > min(LIMIT * base, taken[f"timm's Eva, {planes}"])
            for planes in FORMS
        )
    return int(failed)


if __name__ == '__main__':
    sys.exit(main())
