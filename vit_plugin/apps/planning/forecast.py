"""The cost of a training step at any batch, and the largest batch that fits."""

import math
from typing import Any

import torch
from mmengine.config import Config

from .building import build_classifier
from .step import ENDS, Cost, Setting, Step
from .tracing import KINDS

DEPTHS = (2 * ENDS, 2 * ENDS + 1)
MOST_IMAGES = 1 << 20  # of one rank


class Forecast:
    """The cost of a step by its batch, for one setting.

    If all blocks are equal, two short models are traced, and the cost is continued to the depth of the config.

    Args:
        cfg: the config of a classifier.
        setting: how the run is laid out. Its ranks must be pretended.
        in_full: whether to trace all blocks in any case.
    """

    def __init__(self, cfg: Config, setting: Setting, in_full: bool = False) -> None:
        with torch.device('meta'):
            model = build_classifier(cfg, setting.recompute, None)
        self.num_layers = len(model.backbone.blocks)
        self.num_parameters = sum(parameter.numel() for parameter in model.parameters())
        self.img_size = model.backbone.img_size
        self.depths = DEPTHS if not in_full and has_equal_blocks(cfg, self.num_layers) else (None, )
        self.steps = [Step(cfg, setting, depth) for depth in self.depths]
        self._costs: dict[int, Cost] = {}

    def at(self, batch: int) -> Cost:
        """The cost of a step with this number of images on the rank, see :meth:`Step.cost`."""
        if batch not in self._costs:
            costs = [step.cost(batch) for step in self.steps]
            self._costs[batch] = costs[0] if len(costs) == 1 else continued(costs[0], costs[1], self.num_layers)
        return self._costs[batch]

    def largest_batch(self, limit: int, near: int = 1) -> int:
        """The largest number of images whose peak is within this number of bytes, or 0. Its cost has been traced.

        The peak of each segment is nearly a straight line over the batch. The lines through the last two traced batches
        give the next one, beginning with one image and a batch that is ``near``.
        """
        known = [1, max(near, 2)]
        while (guess := self._reaching(limit, *known[-2:])) not in known:
            known.append(guess)
        return max((batch for batch in known if self.peak(batch) <= limit), default=0)

    def peak(self, batch: int) -> float:
        """Bytes at the peak of a step."""
        return sum(self.memory(batch).values())

    def memory(self, batch: int) -> dict[str, float]:
        """Bytes by kind at the peak of a step."""
        held = max(by_segment(self.at(batch)).values(), key=lambda held: sum(held.values()))
        return {kind: held.get(kind, 0) for kind in KINDS}

    def _reaching(self, limit: int, first: int, second: int) -> int:
        """The batch at which the first segment's peak is at the limit, on its line through two traced batches."""
        guess = MOST_IMAGES
        one, other = (by_segment(self.at(batch)) for batch in (first, second))
        for segment in one.keys() & other.keys():
            start, end = (sum(held[segment].values()) for held in (one, other))
            if (rise := (end - start) / (second - first)) > 0:
                guess = min(guess, first + math.floor((limit - start) / rise))
        return max(guess, 1)


def has_equal_blocks(cfg: Config, num_layers: int) -> bool:
    """Whether the model is the same at another depth but for the number of its blocks."""
    backbone = cfg.model.backbone
    encoder = backbone.get('encoder') or {}
    return (num_layers > DEPTHS[-1] and backbone.get('out_indices', -1) == -1 and backbone.get('frozen_stages', -1) < 0
            and not encoder.get('window')
            and not any(isinstance(value, (list, tuple)) for value in encoder.values()))


def continued(short: Cost, long: Cost, num_layers: int) -> Cost:
    """The cost at a depth on the line through those of both ``DEPTHS``, segment by segment."""
    at, rise = num_layers - DEPTHS[0], DEPTHS[1] - DEPTHS[0]
    return {key: short.get(key, 0) + (long.get(key, 0) - short.get(key, 0)) * at / rise
            for key in {**short, **long} if key[0] != 'memory' or 'middle' not in key[1]}


def by_segment(cost: Cost) -> dict[Any, dict[str, float]]:
    """What memory is held for at the peak of each segment of a step."""
    segments: dict[Any, dict[str, float]] = {}
    for key, value in cost.items():
        if key[0] == 'memory':
            segments.setdefault(key[1], {})[key[2]] = value
    return segments

