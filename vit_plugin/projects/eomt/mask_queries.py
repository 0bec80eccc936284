"""Queries among the tokens of an encoder, and their masks and classes (arXiv:2503.19108)."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from timm.layers import LayerNorm2d
from torch import Tensor, nn

from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.encoder import Encoder

Prediction = tuple[Tensor, Tensor]  # logits of the classes and of the masks


class UpscaleBlock(nn.Sequential):
    """Doubles the resolution of a map: (B, C, h, w) -> (B, C, 2h, 2w)."""

    def __init__(self, embed_dims: int) -> None:
        super().__init__()
        self.conv1 = nn.ConvTranspose2d(embed_dims, embed_dims, 2, 2)
        self.act = nn.GELU()
        self.conv2 = nn.Conv2d(embed_dims, embed_dims, 3, padding=1, groups=embed_dims, bias=False)
        self.norm = LayerNorm2d(embed_dims)


class MaskQueries(nn.Module):
    """Queries that pass through blocks with image tokens (arXiv:2503.19108, Section 3.2).

    In training, a prediction precedes each of these blocks, and a query attends only to the patches
    of its own mask. ``attn_mask_probs`` are the probabilities of this masking, one per block. Below
    1, some queries attend to all patches. In eval mode, masks apply only if a probability is above
    0. The names of the parameters are the authors'.

    Args:
        embed_dims: width of the tokens.
        num_queries: number of queries.
        num_classes: number of classes. An additional last logit stands for "no object".
        num_blocks: number of blocks with queries.
        stride: pixels of a patch. Masks have a stride of 4 to 7 pixels, or half of the stride if
            it is below 8.
    """

    def __init__(
        self, embed_dims: int, num_queries: int, num_classes: int, num_blocks: int, stride: int
    ) -> None:
        super().__init__()
        self.q = nn.Embedding(num_queries, embed_dims)
        self.class_head = nn.Linear(embed_dims, num_classes + 1)
        self.mask_head = nn.Sequential(
            nn.Linear(embed_dims, embed_dims),
            nn.GELU(),
            nn.Linear(embed_dims, embed_dims),
            nn.GELU(),
            nn.Linear(embed_dims, embed_dims),
        )
        blocks = (UpscaleBlock(embed_dims) for _ in range(doublings(stride)))
        self.upscale = nn.Sequential(*blocks)
        self.register_buffer('attn_mask_probs', torch.empty(num_blocks))
        self.register_load_state_dict_pre_hook(_read_probs)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Mask every query in every block."""
        nn.init.ones_(self.attn_mask_probs)
        self.masked_in_eval = True

    def set_probs(self, probs: Sequence[float]) -> None:
        """Set the probability that a query is masked, for each block."""
        self.attn_mask_probs.copy_(torch.tensor(probs))
        self.masked_in_eval = any(probs)

    def forward(self, x: Tensor, grid: Grid) -> Prediction:
        """Normed tokens (B, Q + N, C) -> classes (B, Q, num_classes + 1), masks (B, Q, H, W).

        Both are logits.
        """
        queries = x[:, : self.q.num_embeddings]
        patches = x[:, -grid[0] * grid[1] :].mT.unflatten(2, grid)  # (B, C, h, w)
        masks = torch.einsum('bqc,bchw->bqhw', self.mask_head(queries), self.upscale(patches))
        return self.class_head(queries), masks

    def decode(
        self,
        blocks: Encoder,
        x: Tensor,
        grid: Grid,
        start: int,
        norm: Callable[[Tensor], Tensor],
        rotations: Sequence[Tensor | None],
    ) -> tuple[Prediction, ...]:
        """Run the blocks from ``start`` on, with the queries in front of the tokens.

        Returns all predictions in order; the last is the final one.

        Args:
            blocks: the encoder.
            x: tokens (B, N, C). The last h*w of them are the patches of ``grid``.
            grid: rows and columns of patches (h, w).
            start: the first block with queries.
            norm: the norm of tokens before a prediction.
            rotations: see :meth:`Encoder.forward`. Queries are not rotated.
        """
        x = torch.cat((self.q.weight[None].expand(x.shape[0], -1, -1), x), dim=1)  # (B, Q + N, C)
        predictions = []
        for i in range(start, len(blocks)):
            mask = None
            if self.training or self.masked_in_eval:
                predictions.append(self(norm(x), grid))
                _, masks = predictions[-1]
                mask = self.attention_mask(masks, grid, x.shape[1], self.attn_mask_probs[i - start])
            x = blocks.run_blocks(x, grid, i, i + 1, rotations=rotations, mask=mask)
        return *predictions, self(norm(x), grid)

    @torch.no_grad()
    def attention_mask(self, masks: Tensor, grid: Grid, num_tokens: int, prob: Tensor) -> Tensor:
        """The attention mask (B, 1, Q, Q + N) of the queries.

        A query attends to the patches of its mask and to all tokens that are not patches. With
        probability 1 - ``prob``, it attends to all patches.
        """
        inside = F.interpolate(masks, grid, mode='bilinear').flatten(2) > 0  # (B, Q, h*w)
        unmasked = torch.rand(inside.shape[:2], device=inside.device) >= prob
        inside = inside | unmasked[..., None]
        return F.pad(inside, (num_tokens - inside.shape[2], 0), value=True)[:, None]


def doublings(stride: int) -> int:
    """The number of upscaling blocks for patches of this many pixels: 2 for 16 to 31 pixels."""
    return max(1, stride.bit_length() - 3)


def _read_probs(queries: MaskQueries, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """``load_state_dict`` hook: read the buffer once, since a graph must not depend on it."""
    probs = state.get(f'{prefix}attn_mask_probs')
    if probs is not None:
        queries.masked_in_eval = bool((probs > 0).any())
