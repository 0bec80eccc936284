"""ViT-Adapter by its equations, on weights with the authors' names, to compare ours with.

It follows czczup/ViT-Adapter `detection/mmdet_custom/models/backbones/vit_adapter.py` and
`adapter_modules.py`, and facebookresearch/dinov3
`dinov3/eval/segmentation/models/backbone/dinov3_adapter.py`. Values are
sampled by the definition of bilinear interpolation. All positions are in pixels. The authors use
fractions of the image, which is the same if its sides are multiples of 32.
"""

from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from bilinear import sample
from torch import Tensor

STRIDES = (8, 16, 32)  # of the pyramid
Weights = dict[str, Tensor]
Map = tuple[Tensor, int]  # a feature map (C, h, w), and its stride


def below(weights: Weights, prefix: str) -> Weights:
    """The weights below a prefix, without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in weights.items()
        if name.startswith(prefix)
    }


def linear(x: Tensor, weights: Weights, name: str) -> Tensor:
    return F.linear(x, weights[f'{name}.weight'], weights[f'{name}.bias'])


def layer_norm(x: Tensor, weights: Weights, name: str) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], weights[f'{name}.weight'], weights[f'{name}.bias'], 1e-6)


def batch_norm(x: Tensor, weights: Weights, name: str) -> Tensor:
    """Normalize a feature map (1, C, h, w) by the running statistics."""
    norm = below(weights, f'{name}.')
    return F.batch_norm(x, norm['running_mean'], norm['running_var'], norm['weight'], norm['bias'])


def centers(size: Sequence[int], stride: int) -> Tensor:
    """Centers of the cells of a grid, (h*w, 2), y before x, in pixels."""
    return torch.tensor(
        [((i + 0.5) * stride, (j + 0.5) * stride) for i in range(size[0]) for j in range(size[1])],
        dtype=torch.float64,
    )


def tokens(x: Tensor) -> Tensor:
    """(C, h, w) -> (h*w, C)."""
    return x.flatten(1).t()


def deformable_attention(
    weights: Weights, queries: Tensor, references: Tensor, maps: Sequence[Map], heads: int
) -> Tensor:
    """Deformable attention, arXiv 2010.04159, Eq. 2 and 3, one head and feature map at a time.

    Args:
        weights: the weights of the attention.
        queries: (queries, C).
        references: reference points (queries, 2), y before x, in pixels.
        maps: the feature maps to sample.
        heads: number of heads.

    Returns:
        (queries, C).
    """
    offsets = linear(queries, weights, 'sampling_offsets').unflatten(1, (heads, len(maps), -1, 2))
    shares = (
        linear(queries, weights, 'attention_weights')
        .unflatten(1, (heads, -1))
        .softmax(-1)
        .unflatten(2, (len(maps), -1))
    )
    out = []
    for head in range(heads):
        total = 0
        for k, (x, stride) in enumerate(maps):
            value = linear(tokens(x), weights, 'value_proj').chunk(heads, dim=1)[head]
            image = value.t().unflatten(1, x.shape[1:])
            # (queries, points, 2), y before x.
            points = references[:, None] / stride - 0.5 + offsets[:, head, k].flip(-1)
            values = sample(image, *points.unbind(-1))
            total = total + (values * shares[:, head, k, :, None]).sum(1)
        out.append(total)
    return linear(torch.cat(out, dim=1), weights, 'output_proj')


def inject(weights: Weights, patches: Map, pyramid: Sequence[Map], heads: int) -> Tensor:
    """The injector: the patches attend to the pyramid. Returns the patches (C, h, w)."""
    x, stride = patches
    queries = layer_norm(tokens(x), weights, 'query_norm')
    normed = [(layer_norm(tokens(y), weights, 'feat_norm').t().view_as(y), s) for y, s in pyramid]
    attended = deformable_attention(
        below(weights, 'attn.'), queries, centers(x.shape[1:], stride), normed, heads
    )
    return (tokens(x) + weights['gamma'] * attended).t().view_as(x)


def extract(weights: Weights, pyramid: Sequence[Map], patches: Map, heads: int) -> list[Map]:
    """The extractor: the pyramid attends to the patches; then the CFFN, if there is one."""
    x, stride = patches
    normed = layer_norm(tokens(x), weights, 'feat_norm').t().view_as(x)
    out = []
    for y, s in pyramid:
        queries = layer_norm(tokens(y), weights, 'query_norm')
        z = tokens(y) + deformable_attention(
            below(weights, 'attn.'), queries, centers(y.shape[1:], s), [(normed, stride)], heads
        )
        if 'ffn.fc1.weight' in weights:
            hidden = (
                linear(layer_norm(z, weights, 'ffn_norm'), weights, 'ffn.fc1')
                .t()
                .unflatten(1, y.shape[1:])
            )
            kernel = weights['ffn.dwconv.dwconv.weight']
            hidden = F.conv2d(
                hidden[None],
                kernel,
                weights['ffn.dwconv.dwconv.bias'],
                padding=1,
                groups=len(kernel),
            )
            z = z + linear(F.gelu(tokens(hidden[0])), weights, 'ffn.fc2')
        out.append((z.t().view_as(y), s))
    return out


def spatial_prior(weights: Weights, image: Tensor) -> list[Tensor]:
    """The spatial prior module: image (1, 3, H, W) -> feature maps (C, h, w), strides 4 to 32."""
    x, maps = image, []
    for conv, norm, stride in (
        ('stem.0', 'stem.1', 2),
        ('stem.3', 'stem.4', 1),
        ('stem.6', 'stem.7', 1),
    ):
        x = batch_norm(
            F.conv2d(x, weights[f'{conv}.weight'], stride=stride, padding=1), weights, norm
        ).relu()
    x = F.max_pool2d(x, 3, 2, 1)
    for k in (1, 2, 3, 4):
        if k > 1:
            x = F.conv2d(x, weights[f'conv{k}.0.weight'], stride=2, padding=1)
            x = batch_norm(x, weights, f'conv{k}.1').relu()
        maps.append(F.conv2d(x, weights[f'fc{k}.weight'], weights[f'fc{k}.bias'])[0])
    return maps


def resample(x: Tensor, stride: int, new_stride: int, size: Sequence[int]) -> Tensor:
    """Resample a feature map (C, h, w) at the centers of a grid of this size and stride.

    Beyond its border it has the values at the border.
    """
    y, z = (
        ((torch.arange(side, dtype=x.dtype) + 0.5) * new_stride / stride - 0.5).clamp(0, last - 1)
        for side, last in zip(size, x.shape[1:], strict=True)
    )
    return sample(x, y[:, None].expand(*size), z.expand(*size)).permute(2, 0, 1)


def adapter(
    weights: Weights,
    image: Tensor,
    x: Tensor,
    grid: Sequence[int],
    stride: int,
    groups: Sequence[Callable[[Tensor], Tensor]],
    heads: int,
    norm: Callable[[Tensor], Tensor] = lambda x: x,
    each: bool = False,
) -> list[Tensor]:
    """The four output feature maps (C, h, w) of a ViT-Adapter.

    Args:
        weights: the weights by the authors' names.
        image: (1, 3, H, W).
        x: tokens (prefix + h*w, C) with positions.
        grid: (h, w).
        stride: stride of the patches in pixels.
        groups: groups of the transformer's blocks, each tokens -> tokens.
        heads: number of heads of the deformable attention.
        norm: normalizes the tokens after each group.
        each: whether the tokens after group k are added to output k; otherwise, the last to all.
    """
    c1, *others = spatial_prior(below(weights, 'spm.'), image)
    pyramid = [
        (y + embed[:, None, None], s)
        for y, embed, s in zip(others, weights['level_embed'], STRIDES, strict=True)
    ]
    num_patches, outs = grid[0] * grid[1], []
    for i, group in enumerate(groups):
        interaction = below(weights, f'interactions.{i}.')
        if 'injector.gamma' in interaction:
            patches = inject(
                below(interaction, 'injector.'),
                (x[-num_patches:].t().unflatten(1, grid), stride),
                pyramid,
                heads,
            )
            x = torch.cat((x[:-num_patches], tokens(patches)))
        x = group(x)
        outs.append(norm(x)[-num_patches:].t().unflatten(1, grid))
        for name in ('extractor.', 'extra_extractors.0.', 'extra_extractors.1.'):
            if below(interaction, name):
                pyramid = extract(below(interaction, name), pyramid, (outs[-1], stride), heads)
    c2, c3, c4 = (y for y, _ in pyramid)
    c1 = (
        c1
        + F.conv_transpose2d(c2[None], weights['up.weight'], weights['up.bias'], stride=2)[
            0, :, : c1.shape[1], : c1.shape[2]
        ]
    )
    maps = []
    for k, (y, s) in enumerate(zip((c1, c2, c3, c4), (4, *STRIDES), strict=True)):
        y = y + resample(outs[k if each else -1], stride, s, y.shape[1:])
        maps.append(batch_norm(y[None], weights, f'norm{k + 1}')[0])
    return maps
