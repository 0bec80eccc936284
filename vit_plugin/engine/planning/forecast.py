"""The cost of a training step at any batch, and the largest batch that fits."""

import math
from typing import Any

import torch
from mmengine.config import Config
from torch import nn
from torch.distributed.tensor import DTensor, Shard

from .allocations import KINDS
from .building import build_classifier
from .step import ENDS, Cost, Setting, Step

DEPTHS = (2 * ENDS, 2 * ENDS + 1)
FAR, MOST_IMAGES = 16, 1 << 20  # of one rank


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

    def largest_batch(self, limit: int) -> int:
        """The largest number of images whose peak is within this number of bytes, or 0. Its cost has been traced."""
        traced = sorted(self._costs) or [1]
        fits = max((batch for batch in traced if self.peak(batch) <= limit), default=0)
        too_many = min((batch for batch in traced if self.peak(batch) > limit), default=MOST_IMAGES + 1)
        useless = 0  # guesses in a row that have not halved the range; halving it ends the search in any case
        while too_many - fits > 1:
            guess = (fits + too_many) // 2 if useless > 2 else self._reaching(limit, fits, too_many)
            guess, width = min(max(guess, fits + 1), too_many - 1), too_many - fits
            if self.peak(guess) <= limit:
                fits = guess
            else:
                too_many = guess
            useless = useless + 1 if too_many - fits > width // 2 and too_many <= MOST_IMAGES else 0
        return fits

    def peak(self, batch: int) -> float:
        """Bytes at the peak of a step."""
        return max(sum(held.values()) for held in by_segment(self.at(batch)).values())

    def memory(self, batch: int) -> dict[str, float]:
        """The most bytes that are held for each of ``KINDS``. Not all are held at once: the peak is below the sum."""
        segments = by_segment(self.at(batch)).values()
        return {kind: max(held.get(kind, 0) for held in segments) for kind in KINDS}

    def _reaching(self, limit: int, fits: int, too_many: int) -> int:
        """The batch at which the first segment's peak is at the limit, on its line through two traced batches.

        These are the largest that fits and the least that does not. Without the latter, they are the two largest.
        """
        known = sorted(self._costs)[-2:] if too_many > MOST_IMAGES else [batch for batch in (fits, too_many) if batch]
        if len(known) < 2:
            return FAR * known[0] if too_many > MOST_IMAGES else known[0] // 2
        guess = FAR * known[1]
        few, many = (by_segment(self.at(batch)) for batch in known)
        for segment in few.keys() & many.keys():
            start, rise = sum(few[segment].values()), sum(many[segment].values()) - sum(few[segment].values())
            if rise > 0:
                guess = min(guess, known[0] + math.floor((limit - start) * (known[1] - known[0]) / rise))
        return guess


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


def wasteful(model: nn.Module, times: float = 2., least: int = 1 << 20) -> dict[str, float]:
    """Sharded parameters that cost a rank more than their share, because torch pads the dimension that it divides.

    Args:
        model: the sharded model.
        times: how often its share a parameter may cost.
        least: bytes of padding, of the gathered parameter, that do not matter.

    Returns:
        how often its share each of them costs, by name.
    """
    found = {}
    for name, parameter in model.named_parameters():
        placement = parameter.placements[-1] if isinstance(parameter, DTensor) else None
        if isinstance(placement, Shard):
            ranks, size = parameter.device_mesh.size(-1), parameter.shape[placement.dim]
            cost = -(-size // ranks) * ranks / size
            if cost > times and (cost - 1) * parameter.numel() * parameter.itemsize > least:
                found[name] = cost
    return found
