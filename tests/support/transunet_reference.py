"""TransUNet by its equations, on weights with its authors' names, to compare ours with.

It was compared with the authors' code (Beckschen/TransUNet at 02ef001) in float64, on random
weights of R50-ViT-B_16 and ViT-B_16 with two blocks: at 224 and 320 px, with one and three skips.
"""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

State = Mapping[str, Tensor]
EMBEDDINGS = 'transformer.embeddings.'


def part(state: State, prefix: str) -> dict[str, Tensor]:
    """The entries below a prefix, without it."""
    return {
        key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)
    }


def transunet(state: State, images: Tensor, heads: int) -> Tensor:
    """Images (B, 3, H, W) -> logits (B, classes, H, W)."""
    x, skips = images, []
    if cnn := part(state, f'{EMBEDDINGS}hybrid_model.'):
        x, skips = resnet(cnn, images)
    kernel = state[f'{EMBEDDINGS}patch_embeddings.weight']
    x = F.conv2d(x, kernel, state[f'{EMBEDDINGS}patch_embeddings.bias'], stride=kernel.shape[-1])
    grid = x.shape[2:]
    x = encoder(state, x.flatten(2).mT + state[f'{EMBEDDINGS}position_embeddings'], heads)
    x = conv_bn_relu(part(state, 'decoder.conv_more.'), x.mT.unflatten(2, grid))
    for i in range(4):  # each doubles the resolution
        x = F.interpolate(x, scale_factor=2, mode='bilinear', align_corners=True)
        block = part(state, f'decoder.blocks.{i}.')
        if skips and x.shape[1] < block['conv1.0.weight'].shape[1]:
            x = torch.cat((x, skips.pop()), 1)
        for k in (1, 2):
            x = conv_bn_relu(part(block, f'conv{k}.'), x)
    return F.conv2d(
        x, state['segmentation_head.0.weight'], state['segmentation_head.0.bias'], padding=1
    )


def conv_bn_relu(state: State, x: Tensor) -> Tensor:
    x = F.conv2d(x, state['0.weight'], padding=1)
    return F.batch_norm(
        x, *(state[f'1.{name}'] for name in ('running_mean', 'running_var', 'weight', 'bias'))
    ).relu()


def encoder(state: State, x: Tensor, heads: int) -> Tensor:
    """The transformer: tokens (B, N, C) -> tokens (B, N, C)."""

    def layer(name: str, x: Tensor) -> Tensor:
        return F.linear(x, state[f'{name}.weight'], state[f'{name}.bias'])

    def norm(name: str, x: Tensor) -> Tensor:
        return F.layer_norm(x, x.shape[-1:], state[f'{name}.weight'], state[f'{name}.bias'], 1e-6)

    i = 0
    while f'transformer.encoder.layer.{i}.attention_norm.weight' in state:
        block = f'transformer.encoder.layer.{i}'
        y = norm(f'{block}.attention_norm', x)
        q, k, v = (
            layer(f'{block}.attn.{name}', y).unflatten(-1, (heads, -1)).transpose(1, 2)
            for name in ('query', 'key', 'value')
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        x = x + layer(f'{block}.attn.out', (weights @ v).transpose(1, 2).flatten(2))
        y = F.gelu(layer(f'{block}.ffn.fc1', norm(f'{block}.ffn_norm', x)))
        x = x + layer(f'{block}.ffn.fc2', y)
        i += 1
    return norm('transformer.encoder.encoder_norm', x)


def resnet(state: State, images: Tensor) -> tuple[Tensor, list[Tensor]]:
    """The last feature map, and those of strides 2, 4 and 8 for the skip connections.

    The pooling has no padding, so maps are too small for their strides. The skips of strides 4 and
    8 are padded with zeros; the last map is not.
    """

    def conv(name: str, x: Tensor, stride: int = 1) -> Tensor:
        w = state[f'{name}.weight']
        # Weight standardization.
        w = w - w.mean((1, 2, 3), keepdim=True)
        w = w / (w.square().mean((1, 2, 3), keepdim=True) + 1e-5).sqrt()
        return F.conv2d(x, w, stride=stride, padding=w.shape[-1] // 2)

    def norm(name: str, x: Tensor, groups: int = 32, eps: float = 1e-6) -> Tensor:
        return F.group_norm(x, groups, state[f'{name}.weight'], state[f'{name}.bias'], eps)

    x = norm('root.gn', conv('root.conv', images, 2)).relu()
    skips = [x]
    x = F.max_pool2d(x, 3, 2)  # no padding
    for i in (1, 2, 3):
        j = 1
        while f'{(unit := f"body.block{i}.unit{j}")}.conv1.weight' in state:
            stride, shortcut = 2 if i > 1 and j == 1 else 1, x
            if j == 1:  # each channel is a group, with torch's default eps
                shortcut = conv(f'{unit}.downsample', x, stride)
                shortcut = norm(f'{unit}.gn_proj', shortcut, shortcut.shape[1], 1e-5)
            y = norm(f'{unit}.gn1', conv(f'{unit}.conv1', x)).relu()
            y = norm(f'{unit}.gn2', conv(f'{unit}.conv2', y, stride)).relu()
            x = (shortcut + norm(f'{unit}.gn3', conv(f'{unit}.conv3', y))).relu()
            j += 1
        if i < 3:
            # Blocks 1 and 2 have the strides 4 and 8.
            rows, columns = (side // (4 * i) for side in images.shape[2:])
            skips.append(F.pad(x, (0, columns - x.shape[3], 0, rows - x.shape[2])))
    return x, skips
