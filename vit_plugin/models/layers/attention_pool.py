"""Attention pooling of tokens to one vector, for the neck's mode ``'map'``."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .mlp import Mlp
from .numerics import build_norm, get_numerics


class AttentionPool(nn.Module):
    """One learned query attends to all tokens, and an MLP follows.

    This is big_vision's `MAPHead` (arXiv:2106.04560, Section 3.4). AIMv2's head (arXiv:2411.14402)
    has neither a projection of the query nor an MLP.

    Args:
        embed_dims: width of the tokens.
        num_heads: number of heads; must divide the width.
        feedforward_channels: width of the MLP. 0 for no MLP. Default: four times the width of the
            tokens.
        numerics: see :func:`~vit_plugin.models.layers.numerics.get_numerics`.
        query_proj: whether to project the learned query.
        qkv_bias: whether queries, keys and values have a bias.

    Shape: (B, N, embed_dims) -> (B, embed_dims).
    """

    def __init__(
        self,
        embed_dims: int,
        num_heads: int,
        feedforward_channels: int | None = None,
        numerics: str | dict = 'authors',
        query_proj: bool = True,
        qkv_bias: bool = True,
    ) -> None:
        super().__init__()
        if embed_dims % num_heads:
            raise ConfigError(
                f'in_channels={embed_dims} is not divisible by num_heads={num_heads}; change one '
                'of them.'
            )
        numerics = get_numerics(numerics)
        self.num_heads = num_heads
        self.latent = nn.Parameter(torch.empty(1, 1, embed_dims))  # the learned query
        self.q = nn.Linear(embed_dims, embed_dims, qkv_bias) if query_proj else nn.Identity()
        self.kv = nn.Linear(embed_dims, 2 * embed_dims, qkv_bias)
        self.proj = nn.Linear(embed_dims, embed_dims)
        hidden = 4 * embed_dims if feedforward_channels is None else feedforward_channels
        self.norm = build_norm(numerics.norm_cfg, embed_dims) if hidden else nn.Identity()
        self.mlp = Mlp(embed_dims, hidden, numerics.act_cfg) if hidden else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize as the authors do (`big_vision/models/vit.py`, `MAPHead`)."""
        nn.init.xavier_uniform_(self.latent[0])
        for layer in (self.q, self.kv, self.proj):
            if isinstance(layer, nn.Linear):
                for weight in layer.weight.split(layer.in_features):
                    nn.init.xavier_uniform_(weight)
                if layer.bias is not None:
                    nn.init.zeros_(layer.bias)

    def forward(self, x: Tensor) -> Tensor:
        heads = (self.num_heads, x.shape[-1] // self.num_heads)
        # (B, heads, 1, d).
        q = self.q(self.latent).expand(x.shape[0], -1, -1).unflatten(-1, heads).transpose(1, 2)
        # 2 times (B, heads, N, d).
        k, v = self.kv(x).unflatten(-1, (2, *heads)).permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)  # (B, 1, embed_dims)
        x = self.proj(x)
        return (x if self.mlp is None else x + self.mlp(self.norm(x)))[:, 0]  # (B, embed_dims)
