"""Which query becomes which object: the matching of a step, with one wait for the GPU."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor


class Pairs(NamedTuple):
    """The pairs of a layer, image by image.

    Attributes:
        queries: of the batch (M).
        objects: those of the batch (M) that they are to become.
        numbers: of the pairs of each image.
    """

    queries: Tensor
    objects: Tensor
    numbers: list[int]


def match(costs: Sequence[Sequence[Tensor]], groups: int) -> list[Pairs]:
    """The pairs of least cost for each layer. Every group of queries is matched alone.

    Args:
        costs: for each layer and image, those of each query for each object (groups * Q, N),
            without gradients.
        groups: see above.
    """
    every = [cost for layer in costs for cost in layer]
    copied = torch.cat([cost.flatten() for cost in every]).cpu()
    copies, found = iter(copied.split([cost.numel() for cost in every])), []
    for layer in costs:
        first_query = first_object = 0
        for cost in layer:
            for group in next(copies).view(cost.shape).chunk(groups):
                queries, objects = linear_sum_assignment(group)
                found.append([queries + first_query, objects + first_object])
                first_query += len(group)
            first_object += cost.shape[1]
    numbers = [groups * min(len(cost) // groups, cost.shape[1]) for cost in costs[0]]
    pairs = torch.from_numpy(np.concatenate(found, 1)).to(every[0].device)
    of_layers = pairs.view(2, len(costs), sum(numbers)).unbind(1)
    return [Pairs(queries, objects, numbers) for queries, objects in of_layers]
