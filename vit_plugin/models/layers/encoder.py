"""The transformer encoder (arXiv:2010.11929, Equations 2 and 3)."""

from collections.abc import Sequence

from torch import Tensor, nn

from .block import TransformerBlock
from .block_cfg import Grid
from .recompute import Recompute, recomputed


class Encoder(nn.ModuleList):
    """A list of blocks, applied in order.

    Args:
        blocks: all blocks up to the last output.
        out_indices: the blocks whose output is returned, in ascending order.
        with_cp: activation checkpointing of each block, see
            :func:`~vit_plugin.models.layers.recompute.recomputed`.
    """

    def __init__(
        self,
        blocks: Sequence[TransformerBlock],
        out_indices: Sequence[int],
        with_cp: Recompute = False,
    ) -> None:
        super().__init__(blocks)
        self.out_indices, self.with_cp = tuple(out_indices), with_cp

    def forward(
        self,
        x: Tensor,
        grid: Grid,
        num_outputs: int | None = None,
        position_inputs: Sequence[Tensor | None] | None = None,
    ) -> list[Tensor]:
        """Tokens (B, N, C) -> list of tokens (B, num_outputs or N, C), one per ``out_indices``.

        Args:
            x: the tokens. The last h*w of them are the patches of ``grid``.
            grid: rows and columns of patches (h, w).
            num_outputs: number of leading tokens to return; None for all. The last block does not
                compute the others.
            position_inputs: a rotation, a shared bias or None for each block, see
                :meth:`~vit_plugin.models.layers.attention.Attention.forward`.
        """
        outs, first = [], 0
        for last in self.out_indices:
            kept = num_outputs if last == self.out_indices[-1] else None
            x = self.run_blocks(x, grid, first, last + 1, kept, position_inputs)
            outs.append(x[:, :num_outputs])
            first = last + 1
        return outs

    def run_blocks(
        self,
        x: Tensor,
        grid: Grid,
        start: int,
        stop: int,
        num_outputs: int | None = None,
        position_inputs: Sequence[Tensor | None] | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Run blocks ``start`` to ``stop - 1``: tokens (B, N, C) -> (B, num_outputs or N, C).

        Only the last of these blocks drops tokens. See :meth:`forward`, and for the mask of these
        blocks :meth:`~vit_plugin.models.layers.attention.Attention.forward`.
        """
        for i in range(start, stop):
            position_input = position_inputs[i] if position_inputs else None
            kept = num_outputs if i == stop - 1 else None
            x = recomputed(self.with_cp, self[i], x, grid, kept, position_input, mask)
        return x

    def __getitem__(self, index: int | slice) -> nn.Module:
        # torch would make a slice an Encoder, whose constructor needs further arguments.
        return (
            nn.ModuleList(list(self)[index])
            if isinstance(index, slice)
            else super().__getitem__(index)
        )
