"""The cost of a training step at any batch, and the largest batch that fits."""

import math
from collections import Counter

from mmengine.config import Config

from vit_plugin.models.layers.recompute import Recompute

from .traced_step import Cost, Layout, TracedStep
from .tracing import END_BLOCKS

TRACED_DEPTHS = (2 * END_BLOCKS, 2 * END_BLOCKS + 1)
MAX_RANK_BATCH = 1 << 20  # images per rank


class Forecast:
    """The cost of a step as a function of its batch, for one layout.

    If all blocks are equal, two short models are traced, and the cost is extrapolated to the depth
    of the config.

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

    def at(self, batch: int) -> Cost:
        """The cost of a step with this many images on the rank, see :meth:`TracedStep.cost`."""
        if batch not in self._costs:
            cost, *deeper = (step.cost(batch) for step in self.steps)
            self._costs[batch] = (
                extrapolated(cost, deeper[0], self.num_layers) if self.num_layers else cost
            )
        return self._costs[batch]

    def memory(self, batch: int) -> Counter[str]:
        """Bytes by kind at the peak of a step."""
        return max(segments(self.at(batch)).values(), key=Counter.total)

    def largest_batch(self, limit: int, near: int = 1) -> int:
        """The largest number of images whose peak fits in these bytes, or 0. Its cost is traced.

        The peak of each segment is nearly a straight line over the batch. The lines through the
        last two traced batches give the next one, beginning with one image and a batch that is
        ``near``.
        """
        known = [1, max(near, 2)]
        while (guess := self._reaching(limit, *known[-2:])) not in known:
            known.append(guess)
        return max((batch for batch in known if self.memory(batch).total() <= limit), default=0)

    def _reaching(self, limit: int, first: int, second: int) -> int:
        """The batch at which a segment first reaches the limit, on lines through two batches."""
        guess = MAX_RANK_BATCH
        one, other = (segments(self.at(batch)) for batch in (first, second))
        for segment in one.keys() & other.keys():
            start = one[segment].total()
            if (rise := (other[segment].total() - start) / (second - first)) > 0:
                guess = min(guess, first + math.floor((limit - start) / rise))
        return max(guess, 1)


def equal_blocks(cfg: Config, num_layers: int) -> int | None:
    """The number of blocks if only the depth would change with it, otherwise None."""
    backbone = cfg.model.backbone
    encoder = backbone.get('encoder') or {}
    listed = any(isinstance(value, (list, tuple)) for value in encoder.values())
    equal = (
        num_layers > TRACED_DEPTHS[-1]
        and backbone.get('out_indices', -1) == -1
        and backbone.get('frozen_stages', -1) < 0
        and not encoder.get('window')
        and not listed
    )
    return num_layers if equal else None


def extrapolated(short: Cost, long: Cost, num_layers: int) -> Cost:
    """The cost at a depth on the line through both ``TRACED_DEPTHS``, segment by segment."""
    position = (num_layers - TRACED_DEPTHS[0]) / (TRACED_DEPTHS[1] - TRACED_DEPTHS[0])
    return {
        segment: Counter(
            {kind: size + (long[segment][kind] - size) * position for kind, size in held.items()}
        )
        for segment, held in short.items()
        if 'middle' not in segment
    }


def segments(cost: Cost) -> Cost:
    """The peaks of a cost, without its work."""
    return {segment: held for segment, held in cost.items() if segment != ('work',)}
