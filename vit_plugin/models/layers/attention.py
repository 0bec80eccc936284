"""Multi-head self-attention over all tokens."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .block_cfg import BlockCfg, Grid
from .numerics import build_norm
from .qkv import build_qkv


class Attention(nn.Module):
    """Multi-head self-attention through torch's fused kernel (arXiv:2010.11929, Appendix A).

    Args:
        cfg: width, heads, norms and dropout.

    Shape: tokens (B, N, embed_dims) -> tokens of the same shape. The last h*w tokens are the
    patches of ``grid``.
    """

    def __init__(self, cfg: BlockCfg) -> None:
        super().__init__()
        width, norm_cfg = cfg.embed_dims, cfg.numerics.norm_cfg
        self.num_heads = cfg.num_heads
        self.head_dims = width // cfg.num_heads
        self.attn_drop_rate = cfg.attn_drop_rate
        self.qkv = build_qkv(cfg)
        self.q_norm = build_norm(norm_cfg, self.head_dims) if cfg.qk_norm else nn.Identity()
        self.k_norm = build_norm(norm_cfg, self.head_dims) if cfg.qk_norm else nn.Identity()
        self.norm = build_norm(norm_cfg, width) if cfg.attn_norm else nn.Identity()
        self.proj = nn.Linear(width, width, bias=cfg.proj_bias)
        self.drop = nn.Dropout(cfg.drop_rate)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize as the authors do, who have separate layers for query, key and value."""
        width = self.proj.in_features
        kv_width = (len(self.qkv.weight) - width) // 2
        for weight in (*self.qkv.weight.split((width, kv_width, kv_width)), self.proj.weight):
            nn.init.xavier_uniform_(weight)
        for bias in (self.qkv.bias, self.proj.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def forward(
        self,
        x: Tensor,
        grid: Grid,
        num_queries: int | None = None,
        position_input: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Tokens (B, N, embed_dims) -> the same, or only the first ``num_queries`` of them.

        Args:
            x: the tokens.
            grid: rows and columns (h, w) of the patches.
            num_queries: number of leading tokens to compute. None means all.
            position_input: what the backbone computes from the grid for this block: a rotation for
                :class:`~vit_plugin.models.layers.rotary_attention.RotaryAttention`, a shared bias
                for :class:`~vit_plugin.models.layers.position_bias.BiasAttention`, else None.
            mask: (B, 1, M, N), True where one of the first M tokens attends to one of the N tokens.
                All other tokens attend to every token.
        """
        q, k, v = self.project(x, position_input)  # (B, heads, N, head_dims) each
        return self.output(
            self.attend(
                q[:, :, :num_queries], k, v, grid, self.current_drop_rate, mask, position_input
            )
        )

    def weights(self, x: Tensor, grid: Grid, position_input: Tensor | None = None) -> Tensor:
        """Attention weights (B, heads, N, N), queries in rows, keys in columns, without dropout.

        Args:
            x: the input of :meth:`forward`. In a block this is ``block.norm1`` of the tokens.
            grid: see :class:`Attention`.
            position_input: see :meth:`forward`.
        """
        q, k, _ = self.project(x, position_input)
        # With unit vectors as values, the output of attention is its weights.
        unit = torch.eye(x.shape[1], dtype=q.dtype, device=q.device)  # (N, N)
        unit = unit.expand(*q.shape[:2], -1, -1)
        return self.attend(q, k, unit, grid, drop_rate=0.0, position_input=position_input)

    @property
    def current_drop_rate(self) -> float:
        """Dropout of the attention weights in the current mode, training or eval."""
        return self.attn_drop_rate if self.training else 0.0

    def project(
        self, x: Tensor, position_input: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, N, embed_dims) -> queries, keys and values, each (B, heads, N, head_dims)."""
        # Explicit, since a -1 is slow to trace with a dynamic N.
        heads = (3, self.num_heads, self.head_dims)
        q, k, v = self.qkv(x).unflatten(-1, heads).permute(2, 0, 3, 1, 4)
        return self.q_norm(q), self.k_norm(k), v

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        grid: Grid,
        drop_rate: float,
        mask: Tensor | None = None,
        position_input: Tensor | None = None,
    ) -> Tensor:
        """Queries (B, heads, M, d), keys and values (B, heads, N, d) -> values (B, heads, M, d)."""
        if mask is None:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=drop_rate)
        rows = mask.shape[2]  # only these have a mask, since masks make torch's kernels slower
        masked = F.scaled_dot_product_attention(
            q[:, :, :rows], k, v, attn_mask=mask, dropout_p=drop_rate
        )
        unmasked = F.scaled_dot_product_attention(q[:, :, rows:], k, v, dropout_p=drop_rate)
        return torch.cat((masked, unmasked), dim=2)

    def output(self, x: Tensor) -> Tensor:
        """Outputs of the heads (B, heads, N, head_dims) -> tokens (B, N, embed_dims)."""
        return self.drop(self.proj(self.norm(x.transpose(1, 2).flatten(2))))
