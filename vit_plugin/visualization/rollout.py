"""Attention rollout: how the attention of all blocks together reaches the image."""

import torch
from torch import Tensor, nn

from vit_plugin.models.loading import find_backbone

from .attention_maps import attention_weights


def attention_rollout(model: nn.Module, images: Tensor) -> Tensor:
    """Roll the attention out from the input to each block (arXiv:2005.00928, Section 3, "Attention rollout").

    The weights of a block are averaged over its heads. The residual connection adds the identity, and each row is
    normed to sum 1. The product of these matrices over the blocks is the rollout.

    Args:
        model, images: see :func:`~vit_plugin.visualization.attention_maps.attention_weights`.

    Returns:
        Maps (B, blocks, h, w): what of each patch has reached the class token after each block. Without a class token,
        it is what has reached the mean of the patches.

    Raises:
        ConfigError: see ``attention_weights``.
    """
    _, backbone = find_backbone(model)
    prefix, row = backbone.num_prefix_tokens, 'cls_token' in backbone.prefix_tokens
    rolled: Tensor | None = None

    def keep(weights: Tensor, grid: tuple[int, int]) -> Tensor:
        nonlocal rolled
        step = weights.mean(dim=1)
        step = step + torch.eye(step.shape[-1], dtype=step.dtype, device=step.device)
        step = step / step.sum(dim=-1, keepdim=True)  # (B, N, N)
        rolled = step if rolled is None else step @ rolled
        reached = rolled[:, 0] if row else rolled[:, prefix:].mean(dim=1)  # (B, N)
        return reached[:, prefix:].unflatten(-1, grid)

    return torch.stack(attention_weights(model, images, keep), dim=1)
