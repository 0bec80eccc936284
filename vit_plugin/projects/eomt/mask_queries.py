"""The queries of EoMT and PMT, and how they become classes and masks (arXiv:2503.19108).

Queries are tokens in front of those of the image, in the last blocks of a transformer. Classes are
predicted from a query, and masks from its product with the upscaled map of patches.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from timm.layers import LayerNorm2d
from torch import Tensor, nn

from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.encoder import Encoder

# Logits of the classes (B, Q, num_classes + 1) and of the masks (B, Q, H, W).
Prediction = tuple[Tensor, Tensor]


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

    In training, masks are predicted before each of these blocks, and within the block a query
    attends only to the patches of its own mask. A training anneals this masking away, so that a
    trained model needs no predictions before its last one. The names of the parameters are the
    authors'.

    Args:
        embed_dims: width of the tokens.
        num_queries: number of queries.
        num_classes: number of classes. An additional last logit stands for "no object".
        num_blocks: number of blocks with queries.
        stride: side of a patch in pixels. Masks have a stride of 4 to 7 pixels, or half of the
            stride if it is below 8.

    Attributes:
        attn_mask_probs: for each block, the probability that a query is masked. Otherwise it
            attends to all patches.
        masked_in_eval: whether queries are masked in eval mode, which is so if any probability is
            above 0.
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
        """Set the probabilities to 1: every query is masked in every block."""
        nn.init.ones_(self.attn_mask_probs)
        self.masked_in_eval = True

    def set_probs(self, probs: Sequence[float]) -> None:
        """Set the probability that a query is masked, for each block."""
        self.attn_mask_probs.copy_(torch.tensor(probs))
        self.masked_in_eval = any(probs)

    def forward(self, x: Tensor, grid: Grid) -> Prediction:
        """Normed tokens (B, Q + N, C), queries first -> a prediction.

        The last h*w tokens are the patches of ``grid``. H and W are h and w times the upscaling.
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

        Returns the predictions before each block, if queries are masked, and the final one.

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
            x = blocks.run_blocks(x, grid, i, i + 1, position_inputs=rotations, mask=mask)
        return *predictions, self(norm(x), grid)

    @torch.no_grad()
    def attention_mask(self, masks: Tensor, grid: Grid, num_tokens: int, prob: Tensor) -> Tensor:
        """The attention mask (B, 1, Q, Q + N) of the queries: True where they attend.

        A query attends to the patches of its mask and to all tokens that are not patches. With
        probability 1 - ``prob``, it attends to all patches. Other tokens are not masked.

        Args:
            masks: logits of the masks (B, Q, H, W).
            grid: rows and columns of patches (h, w).
            num_tokens: number of tokens, Q + N.
            prob: probability that a query is masked.
        """
        inside = F.interpolate(masks, grid, mode='bilinear').flatten(2) > 0  # (B, Q, h*w)
        unmasked = torch.rand(inside.shape[:2], device=inside.device) >= prob
        inside = inside | unmasked[..., None]
        return F.pad(inside, (num_tokens - inside.shape[2], 0), value=True)[:, None]


def doublings(stride: int) -> int:
    """The number of upscaling blocks for patches with this side in pixels, such as 2 for 16 to 31.

    With 2 or more, masks have a stride of 4 to 7 pixels.
    """
    return max(1, stride.bit_length() - 3)


def _read_probs(queries: MaskQueries, state: dict[str, Any], prefix: str, *_: Any) -> None:
    """``load_state_dict`` hook that sets ``masked_in_eval``.

    The forward reads this bool instead of the buffer, since an exported graph cannot branch on the
    value of a tensor.
    """
    probs = state.get(f'{prefix}attn_mask_probs')
    if probs is not None:
        queries.masked_in_eval = bool((probs > 0).any())
