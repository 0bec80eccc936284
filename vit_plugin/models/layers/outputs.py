"""From the last tokens to what the backbone returns (arXiv:2010.11929, Equation 4)."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from vit_plugin.arguments.encoder import FinalNorm

from .block_cfg import Grid
from .numerics import build_norm


def to_map(x: Tensor, prefix: int, grid: Grid) -> Tensor:
    """Tokens (B, prefix + h*w, C) -> the map (B, C, h, w) of the patches."""
    return x[:, prefix:].transpose(1, 2).unflatten(2, grid).contiguous()


OutType = Literal['raw', 'cls_token', 'avg_featmap', 'featmap', 'pyramid']
# How an output is made from the normed tokens x (B, prefix + h*w, C). All but the pyramid are as in MMPretrain.
OUT_TYPES: dict[str, Callable[[Tensor, int, Grid], Tensor]] = {
    'raw': lambda x, prefix, grid: x,
    'cls_token': lambda x, prefix, grid: x[:, 0],  # (B, C)
    'avg_featmap': lambda x, prefix, grid: x[:, prefix:].mean(dim=1),  # (B, C)
    'featmap': to_map,
    'pyramid': to_map,
}
# Number of leading tokens that an output needs, if it does not need all of them.
NUM_TOKENS = {'cls_token': 1}
# The outputs that are maps.
MAPS = tuple(name for name, make in OUT_TYPES.items() if make is to_map)


class NormsApart(nn.Module):
    """The patches have a norm, and the tokens before them have another one.

    DINOv3's code has this as ``untie_cls_and_patch_norms`` (facebookresearch/dinov3 `vision_transformer.py`). Its
    published models have one norm for all tokens. The ``local_cls_norm`` of the 7B model is only used in pre-training.

    Args:
        norm_cfg: both norms.
        embed_dims: width of the tokens.
        num_prefix_tokens: number of tokens before the patches.

    Shape: (B, N, embed_dims) -> the same.
    """

    def __init__(self, norm_cfg: Mapping[str, Any], embed_dims: int, num_prefix_tokens: int) -> None:
        super().__init__()
        self.num_prefix_tokens = num_prefix_tokens
        self.prefix, self.patches = (build_norm(norm_cfg, embed_dims) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        prefix, patches = x[:, :self.num_prefix_tokens], x[:, self.num_prefix_tokens:]
        return torch.cat((self.prefix(prefix), self.patches(patches)), dim=1)


def build_output_norm(kind: FinalNorm, norm_cfg: Mapping[str, Any], embed_dims: int,
                      num_prefix_tokens: int) -> nn.Module:
    """Build the norm of the outputs.

    Args:
        kind: whether there is a norm. ``'apart'`` means :class:`NormsApart`.
        norm_cfg, embed_dims, num_prefix_tokens: see :class:`NormsApart`.
    """
    if kind == 'apart':
        return NormsApart(norm_cfg, embed_dims, num_prefix_tokens)
    return build_norm(norm_cfg, embed_dims) if kind else nn.Identity()
