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
    numbers = [groups * min(len(cost) // groups, cost.shape[1]) for cost in costs[0]]
    pairs = torch.from_numpy(assigned(costs, groups)).to(costs[0][0].device)
    return [Pairs(queries, objects, numbers) for queries, objects in pairs.unbind(1)]


def assigned(costs: Sequence[Sequence[Tensor]], groups: int) -> np.ndarray:
    """The queries and objects (2, layers, M) of :func:`match`, in the memory of the processor."""
    every = [cost for layer in costs for cost in layer]
    copied = torch.cat([cost.flatten() for cost in every]).cpu()
    copies, pairs = iter(copied.split([cost.numel() for cost in every])), []
    for layer in costs:
        first_query = first_object = 0
        for cost in layer:
            for group in next(copies).view(cost.shape).chunk(groups):
                queries, objects = linear_sum_assignment(group)
                pairs.append([queries + first_query, objects + first_object])
                first_query += len(group)
            first_object += cost.shape[1]
    return np.concatenate(pairs, 1).reshape(2, len(costs), -1)


def union(pairs: np.ndarray) -> np.ndarray:
    """The pairs of all layers (2, layers, M), each query once (2, U), in ascending order.

    A query has the object that most layers give it (D-FINE, arXiv:2410.13842, Section 4.2). Of
    several, it has the first.
    """
    (queries, objects), counts = np.unique(pairs.reshape(2, -1), axis=1, return_counts=True)
    order = np.lexsort((objects, -counts, queries))
    first = np.unique(queries[order], return_index=True)[1]
    return np.stack((queries, objects))[:, order[first]]
