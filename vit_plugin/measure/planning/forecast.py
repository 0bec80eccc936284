"""The cost of a training step at any batch, and the largest batch that fits."""

import math
from collections import Counter

from mmengine.config import Config

from vit_plugin.models.layers.recompute import Recompute

from .traced_step import Cost, Layout, TracedStep
from .tracing import END_BLOCKS

# Numbers of blocks of the traced models: the blocks at both ends alone, and one more in the middle.
TRACED_DEPTHS = (2 * END_BLOCKS, 2 * END_BLOCKS + 1)
MAX_RANK_BATCH = 1 << 20  # images per rank


class Forecast:
    """The cost of a step as a function of its batch, for one layout.

    If all blocks are equal, two short models are traced, of ``TRACED_DEPTHS``, and the cost is
    extrapolated to the depth of the config.

    Args:
        cfg, layout: see :class:`TracedStep`.
        num_layers: number of blocks of the config, if they are equal; None traces all blocks.
    """

    def __init__(self, cfg: Config, layout: Layout, num_layers: int | None) -> None:
        self.num_layers = num_layers
        self.steps = [
            TracedStep(cfg, layout, depth) for depth in (TRACED_DEPTHS if num_layers else (None,))
        ]
        self._costs: dict[int, Cost] = {}

    def recompute(self, recompute: Recompute) -> None:
        """Set the activation checkpointing of the forecast steps, see :class:`Layout`."""
        for step in self.steps:
            step.recompute(recompute)
        self._costs = {}

    def cost(self, batch: int) -> Cost:
        """The cost of a step with this many images on the rank, see :meth:`TracedStep.cost`."""
        if batch not in self._costs:
            costs = [step.cost(batch) for step in self.steps]
            if self.num_layers:
                short, long = costs
                self._costs[batch] = extrapolate(short, long, self.num_layers)
            else:
                (self._costs[batch],) = costs
        return self._costs[batch]

    def memory(self, batch: int) -> Counter[str]:
        """Bytes by kind at the peak of a step, as in ``MEMORY_KINDS``."""
        return max(peaks_by_segment(self.cost(batch)).values(), key=Counter.total)

    def largest_batch(self, limit: int, near: int = 1) -> int:
        """The largest traced number of images whose peak fits in ``limit`` bytes, or 0.

        The peak of each segment is nearly a straight line over the batch. The lines through the
        last two traced batches give the next batch to trace. The first two are one image and
        ``near``, a batch that is expected to be about as large. It ends when a batch comes again.
        """
        traced = [1, max(near, 2)]
        while (guess := self._batch_reaching(limit, *traced[-2:])) not in traced:
            traced.append(guess)
        return max((batch for batch in traced if self.memory(batch).total() <= limit), default=0)

    def _batch_reaching(self, limit: int, first: int, second: int) -> int:
        """The batch at which a segment first reaches the limit, on lines through two batches."""
        guess = MAX_RANK_BATCH
        first_peaks, second_peaks = (
            peaks_by_segment(self.cost(batch)) for batch in (first, second)
        )
        for segment in first_peaks.keys() & second_peaks.keys():
            start = first_peaks[segment].total()
            rise = (second_peaks[segment].total() - start) / (second - first)
            if rise > 0:
                guess = min(guess, first + math.floor((limit - start) / rise))
        return max(guess, 1)


def equal_blocks(cfg: Config, num_layers: int) -> int | None:
    """``num_layers`` if all blocks are equal and enough to extrapolate their costs, else None."""
    backbone = cfg.model.backbone
    encoder = backbone.get('encoder') or {}
    has_values_by_block = any(isinstance(value, (list, tuple)) for value in encoder.values())
    are_equal = (
        num_layers > TRACED_DEPTHS[-1]
        and backbone.get('out_indices', -1) == -1  # intermediate outputs are kept in memory
        and backbone.get('frozen_stages', -1) == -1  # else a number or 'all'
        and not encoder.get('window')
        and not has_values_by_block
    )
    return num_layers if are_equal else None


def extrapolate(short: Cost, long: Cost, num_layers: int) -> Cost:
    """The cost at a depth on the line through both ``TRACED_DEPTHS``, segment by segment.

    Segments of the middle blocks, which only the longer model has, are left out.
    """
    position = (num_layers - TRACED_DEPTHS[0]) / (TRACED_DEPTHS[1] - TRACED_DEPTHS[0])
    return {
        segment: Counter(
            {kind: size + (long[segment][kind] - size) * position for kind, size in sizes.items()}
        )
        for segment, sizes in short.items()
    }


def peaks_by_segment(cost: Cost) -> Cost:
    """The peaks of a cost by segment: a ``Cost`` without the entry for operations and traffic."""
    return {segment: sizes for segment, sizes in cost.items() if segment != ('work',)}
