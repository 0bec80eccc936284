"""Merging alike tokens on the way through the encoder (ToMe, arXiv:2210.09461)."""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .block import TransformerBlock


class Merged(NamedTuple):
    """Tokens of which some stand for several.

    Attributes:
        tokens: (B, M, C).
        index: (B, N); which of the M each of the N original tokens has become a part of.
    """
    tokens: Tensor
    index: Tensor

    @classmethod
    def of(cls, tokens: Tensor) -> 'Merged':
        """None of the tokens (B, N, C) merged yet."""
        return cls(tokens, torch.arange(tokens.shape[1], device=tokens.device).expand(tokens.shape[0], -1))

    def sizes(self) -> Tensor:
        """How many original tokens each stands for: (B, M)."""
        ones = torch.ones_like(self.index, dtype=self.tokens.dtype)
        return self.tokens.new_zeros(self.tokens.shape[:2]).scatter_add(1, self.index, ones)

    def unmerged(self) -> Tensor:
        """(B, N, C), where original tokens that were merged are equal."""
        return self.tokens.gather(1, self.index[..., None].expand(-1, -1, self.tokens.shape[-1]))


def merge(merged: Merged, metric: Tensor, num_merged: int, prefix: int) -> Merged:
    """Merge the most alike pairs of patches by bipartite soft matching (Section 3).

    The patches are divided into two sets by turns. Each of the first set finds its most similar one of the second, and
    the ``num_merged`` most similar pairs become one token each, the mean over the original tokens.

    Args:
        merged: the tokens.
        metric: (B, M, d), by whose cosine tokens are compared.
        num_merged: how many tokens fewer there are to be; at most half of the patches go.
        prefix: tokens before the patches, which are left alone.
    """
    x, index = merged
    sizes = merged.sizes()[..., None]  # (B, M, 1)
    metric = F.normalize(metric[:, prefix:], dim=-1)
    similarity = metric[:, 1::2] @ metric[:, ::2].transpose(1, 2)  # (B, sources, targets)
    num_merged = min(num_merged, similarity.shape[1])
    best, target = similarity.max(dim=-1)
    order = best.argsort(dim=-1, descending=True)
    gone, kept = order[:, :num_merged], order[:, num_merged:].sort(dim=-1).values  # which of the sources
    target = target.gather(1, gone)

    def rows(values: Tensor, which: Tensor) -> Tensor:
        return values.gather(1, which[..., None].expand(-1, -1, values.shape[-1]))

    def fewer(values: Tensor) -> Tensor:
        """(B, M, c) -> (B, M - num_merged, c): prefix, second set with what came to it, what is left of the first."""
        sources, targets = values[:, prefix + 1::2], values[:, prefix::2]
        added = rows(sources, gone)
        targets = targets.scatter_add(1, target[..., None].expand_as(added), added)
        return torch.cat((values[:, :prefix], targets, rows(sources, kept)), dim=1)

    num_targets = similarity.shape[2]
    new = index.new_empty(x.shape[:2])  # where each of the M tokens is now
    new[:, :prefix] = torch.arange(prefix, device=index.device)
    new[:, prefix::2] = torch.arange(prefix, prefix + num_targets, device=index.device)
    of_sources = torch.empty_like(new[:, prefix + 1::2]).scatter(1, gone, prefix + target)
    places = torch.arange(kept.shape[1], device=index.device) + prefix + num_targets
    new[:, prefix + 1::2] = of_sources.scatter(1, kept, places.expand_as(kept))
    return Merged(fewer(x * sizes) / fewer(sizes), new.gather(1, index))


class MergingBlock(TransformerBlock):
    """A block that merges tokens between attention and MLP.

    Attention gives a token of several the weight of as many ("proportional attention", Equation 1).

    Args:
        num_merged: how many tokens fewer this block gives out.
        num_extra_tokens: tokens before the patches, which are left alone.
        The rest: see :class:`TransformerBlock`; without relative positions and windows.
    """

    def __init__(self, *args: Any, num_merged: int, num_extra_tokens: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.num_merged, self.num_extra_tokens = num_merged, num_extra_tokens

    def forward(self, merged: Merged, grid: tuple[int, int], num_outputs: int | None = None) -> Merged:
        x, index = merged
        q, k, v = self.attn.project(self.norm1(x))
        bias = merged.sizes().log()[:, None, None].to(q.dtype)  # (B, 1, 1, M)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=self.attn.current_drop_rate)
        x = x + self.drop_path(self.ls1(self.attn.output(attended)))
        x, index = merge(Merged(x, index), k.mean(dim=1), self.num_merged, self.num_extra_tokens)
        return Merged(x + self.drop_path(self.ls2(self.mlp(self.norm2(x)))), index)
