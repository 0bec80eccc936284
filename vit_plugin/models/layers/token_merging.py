"""Merging of similar tokens in the encoder (ToMe, arXiv:2210.09461)."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .block import TransformerBlock


class TokenMerging(NamedTuple):
    """Which tokens have been merged so far.

    N is the original number of tokens, M the current number.

    Attributes:
        sizes: (B, M, 1), the number of original tokens in each current token.
        holder: (B, N), the current token that contains each original token.
        prefix: number of tokens before the patches. They are never merged.
    """
    sizes: Tensor
    holder: Tensor
    prefix: int

    @classmethod
    def of(cls, x: Tensor, prefix: int) -> 'TokenMerging':
        """The state for tokens (B, N, C) before any merging."""
        index = torch.arange(x.shape[1], device=x.device).expand(x.shape[0], -1)
        return cls(torch.ones_like(x[..., :1]), index, prefix)

    def through(self, block: TransformerBlock, x: Tensor, num_merged: int) -> tuple[Tensor, 'TokenMerging']:
        """Run a block on tokens (B, M, C), and merge ``num_merged`` of them between attention and MLP.

        In attention, a merged token has the weight of all its original tokens ("proportional attention", Section 3.1).
        The similarity of tokens is that of their keys, averaged over the heads.

        Returns:
            The tokens (B, M - num_merged, C) and the new state.
        """
        attn = block.attn
        q, k, v = attn.project(block.norm1(x))
        bias = self.sizes.log().transpose(1, 2)[:, None].to(q.dtype)  # (B, 1, 1, M)
        attended = F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=attn.current_drop_rate)
        x = x + block.drop_path(block.ls1(attn.output(attended)))
        x, merging = self.merge(x, k.mean(dim=1), num_merged)  # (B, M - num_merged, C)
        return x + block.drop_path(block.ls2(block.mlp(block.norm2(x)))), merging

    def merge(self, x: Tensor, metric: Tensor, num_merged: int) -> tuple[Tensor, 'TokenMerging']:
        """Merge the most similar pairs of patches by bipartite soft matching (Section 3.1 and Appendix D).

        Tokens of even index form the first set, tokens of odd index the second. Each token of the first set is paired
        with the most similar token of the second set. The ``num_merged`` most similar pairs are merged. A merged token
        is the mean of its original tokens.

        The result has the order of facebookresearch/ToMe `merge.py`: the rest of the first set, then the second set.
        The next merging depends on this order.

        Args:
            x: the tokens (B, M, C).
            metric: vectors (B, M, d). Their cosine is the similarity of two tokens.
            num_merged: number of tokens to remove, at most half of the patches.

        Returns:
            The tokens (B, M - num_merged, C) and the new state.
        """
        num_merged = min(num_merged, (x.shape[1] - self.prefix) // 2)
        if num_merged <= 0:
            return x, self
        first, second = -(-self.prefix // 2), self.prefix // 2  # prefix tokens in each set
        with torch.no_grad():
            metric = F.normalize(metric, dim=-1)
            similarity = metric[:, ::2] @ metric[:, 1::2].transpose(1, 2)  # (B, sources, targets)
            similarity[:, :first] = similarity[:, :, :second] = -torch.inf
            best, target = similarity.max(dim=-1)
            order = best.argsort(dim=-1, descending=True)
            merged, kept = order[:, :num_merged], order[:, num_merged:]
            if self.prefix:  # the reference sorts the rest only in this case
                kept = kept.sort(dim=-1).values
            kept, target = kept[:, first:], target.gather(1, merged)

        def fewer(values: Tensor) -> Tensor:
            """(B, M, c) -> (B, M - num_merged, c). Merged values are summed."""
            sources, targets = values[:, ::2], values[:, 1::2]
            targets = targets.scatter_add(1, _rows(target, values), sources.gather(1, _rows(merged, values)))
            return torch.cat((values[:, :self.prefix], sources.gather(1, _rows(kept, values)), targets[:, second:]), 1)

        sizes = fewer(self.sizes)
        place = self._places(merged, kept, target)
        return fewer(x * self.sizes) / sizes, self._replace(sizes=sizes, holder=place.gather(1, self.holder))

    def _places(self, merged: Tensor, kept: Tensor, target: Tensor) -> Tensor:
        """The new index (B, M) of each of the M tokens."""
        prefix, device = self.prefix, kept.device
        place = torch.empty(self.sizes.shape[:2], dtype=torch.long, device=device)
        of_targets = torch.arange(place[:, 1::2].shape[1], device=device) + prefix + kept.shape[1] - prefix // 2
        place[:, 1::2] = of_targets
        place[:, ::2] = place[:, ::2].scatter(1, kept, torch.arange(
            prefix, prefix + kept.shape[1], device=device).expand_as(kept)).scatter(1, merged, of_targets[target])
        place[:, :prefix] = torch.arange(prefix, device=device)
        return place

    def unmerge(self, x: Tensor) -> Tensor:
        """Tokens (B, M, C) -> (B, N, C). Original tokens that were merged get equal values."""
        return x.gather(1, _rows(self.holder, x))


def _rows(index: Tensor, values: Tensor) -> Tensor:
    """Expand an index (B, R) to (B, R, c), to gather whole rows of values (B, M, c)."""
    return index[..., None].expand(-1, -1, values.shape[-1])
