"""Attention weights of a model's blocks, computed by the model's own layers, and their rollout.

The layers themselves use fused attention, which does not return the weights.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.attention import Attention
from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.window import InWindows, to_windows
from vit_plugin.models.loading import find_backbone
from vit_plugin.models.protocol import Backbone

MAX_ATTENTION_WEIGHTS = 1 << 30  # attention weights of a block: 4 GiB in float32


def attention_weights(
    model: nn.Module,
    images: Tensor,
    keep: Callable[[Tensor, Grid], Any] = lambda weights, grid: weights,
) -> list[Any]:
    """Attention weights of every block, with all tokens as queries, by the layers' ``weights``.

    They include the norms of queries and keys, and relative and rotary positions.

    Args:
        model: a :class:`~vit_plugin.models.VisionTransformer`, or a model that contains one.
        images: normalized images (B, C, H, W).
        keep: a function of a block's weights (B, heads, N, N) and its grid (h, w) that returns what
            to keep, so that the weights of only one block are in memory. It is called once for each
            block, in order. Rows are queries and columns are keys. The last h*w tokens are the
            patches. Default: the weights.

    Returns:
        The result of ``keep`` for each block. Patches in different windows have the weight 0, and
        the weight of a window's padding is left out.

    Raises:
        ConfigError: if the model has no such backbone, or if a block has more than
            :data:`MAX_ATTENTION_WEIGHTS`.
    """
    _, backbone = find_backbone(model)
    results: list[Any] = []
    tokens = (
        math.prod(backbone.patch_embed.grid(tuple(images.shape[-2:]))) + backbone.num_prefix_tokens
    )
    if (count := len(images) * backbone.num_heads * tokens**2) > MAX_ATTENTION_WEIGHTS:
        raise ConfigError(
            f'The attention of {tokens:,} tokens has {count:,} weights, too many for the memory; '
            'give a smaller image, or draw the features.'
        )

    def record(attn: Attention, args: tuple) -> None:
        x, grid, _, rotation, _ = args  # the arguments of Attention.forward
        weights = attn.weights(x, grid, rotation)
        if isinstance(attn, InWindows):
            weights = without_windows(weights, grid, attn.window.within(grid))
        results.append(keep(weights, grid))

    with eval_mode(model), ExitStack() as hooks:
        for block in backbone.blocks:
            hooks.enter_context(block.attn.register_forward_pre_hook(record))
        outer: Any = next(module for module in model.modules() if isinstance(module, Backbone))
        # Call `features`, since the forward of a backbone for pre-training masks patches. A model
        # around the backbone, such as an adapter, is called itself.
        (backbone.features if outer is backbone else outer)(images)
    return results


@contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Within this context, a model is in eval mode and computes no gradients."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)


def without_windows(weights: Tensor, grid: Grid, window: Grid) -> Tensor:
    """Weights (B * windows, heads, n, n) of windows -> full weights (B, heads, N, N).

    A window has n tokens: possibly prefix tokens, then its patches. In the full weights the prefix
    tokens of all windows come first, then the h*w patches.
    """
    indices = torch.arange(1, math.prod(grid) + 1, dtype=torch.float64)[None, :, None]
    # (windows, rows*columns). Padding has index 0: a row and column that are dropped at the end.
    windows = to_windows(indices, grid, window)[..., 0].long()
    prefix = torch.arange(1, len(windows) * (weights.shape[-1] - math.prod(window)) + 1)
    tokens = torch.cat(
        (prefix.unflatten(0, (len(windows), -1)), windows + len(prefix) * (windows > 0)), dim=1
    ).to(weights.device)  # (windows, n)
    by_window = weights.unflatten(0, (-1, len(windows)))  # (B, windows, heads, n, n)
    count = len(prefix) + math.prod(grid) + 1
    full = weights.new_zeros(by_window.shape[0], by_window.shape[2], count, count)
    for i, window_tokens in enumerate(tokens):
        full[:, :, window_tokens[:, None], window_tokens] = by_window[:, i]
    return full[:, :, 1:, 1:]


def _class_token_attention(weights: Tensor, grid: Grid, backbone: Any) -> Tensor:
    """Attention weights (..., N, N) -> those of the class token over the patches (..., h, w).

    If each window has a class token, their rows are averaged; without class tokens, the rows of all
    patches.
    """
    num_prefix = weights.shape[-1] - math.prod(grid)
    if 'cls_token' not in backbone.prefix_tokens:
        rows = weights[..., num_prefix:, :]
    elif backbone.tokens_in_windows:
        rows = weights[..., :num_prefix, :]
    else:
        rows = weights[..., :1, :]
    return rows.mean(dim=-2)[..., num_prefix:].unflatten(-1, grid)


def class_attention(model: nn.Module, images: Tensor) -> Tensor:
    """The attention of the class token to the patches, in every head of every block.

    Returns:
        Maps (B, blocks, heads, h, w). Each shows the weights of the class token, or without one,
        the mean weights of all patches. They sum to 1 less the weight of the tokens before the
        patches.

    Raises:
        ConfigError: see :func:`attention_weights`.
    """
    _, backbone = find_backbone(model)

    def class_token_maps(weights: Tensor, grid: Grid) -> Tensor:
        return _class_token_attention(weights, grid, backbone)  # (B, heads, h, w)

    return torch.stack(attention_weights(model, images, class_token_maps), dim=1)


def attention_rollout(model: nn.Module, images: Tensor) -> Tensor:
    """Attention rollout from the input to each block (arXiv:2005.00928, Section 3).

    The weights of a block are averaged over its heads. The residual connection adds the identity,
    and each row is normed to sum 1. The product of these matrices over the blocks is the rollout.

    Args:
        model, images: see :func:`attention_weights`.

    Returns:
        Maps (B, blocks, h, w): how much of each patch has reached the class token after each block,
        or without one, the mean of the patches.

    Raises:
        ConfigError: see ``attention_weights``.
    """
    _, backbone = find_backbone(model)
    rolled: Tensor | None = None

    def roll(weights: Tensor, grid: Grid) -> Tensor:
        """Multiply by one more block, and return the rollout up to it."""
        nonlocal rolled
        matrix = weights.mean(dim=1)
        matrix = matrix + torch.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)
        matrix = matrix / matrix.sum(dim=-1, keepdim=True)  # (B, N, N)
        rolled = matrix if rolled is None else matrix @ rolled
        return _class_token_attention(rolled, grid, backbone)  # (B, h, w)

    return torch.stack(attention_weights(model, images, roll), dim=1)
