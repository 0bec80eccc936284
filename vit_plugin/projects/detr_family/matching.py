"""Bipartite matching of queries to objects in a training step, with one GPU sync.

All costs are copied to the CPU at once, where scipy solves one assignment for each layer, image and
group of queries.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor


class Pairs(NamedTuple):
    """The pairs of a layer, image by image.

    Attributes:
        queries: indices of matched queries, counted over the batch (M).
        objects: indices of their objects, counted over the batch (M).
        numbers: number of pairs of each image.
    """

    queries: Tensor
    objects: Tensor
    numbers: list[int]


def match(costs: Sequence[Sequence[Tensor]], groups: int) -> list[Pairs]:
    """The pairs of least cost for each layer. Every group of queries is matched on its own.

    A group has one pair for each object, or for each query if there are fewer queries.

    Args:
        costs: for each layer and image, the costs of each query for each object (groups * Q, N),
            without gradients.
        groups: number of groups.
    """
    numbers = [groups * min(len(cost) // groups, cost.shape[1]) for cost in costs[0]]
    pairs = torch.from_numpy(assign_queries(costs, groups)).to(costs[0][0].device)
    return [Pairs(queries, objects, numbers) for queries, objects in pairs.unbind(1)]


def assign_queries(costs: Sequence[Sequence[Tensor]], groups: int) -> np.ndarray:
    """The queries and objects (2, layers, M) of :func:`match`, on the CPU."""
    all_costs = [cost for layer in costs for cost in layer]
    copied = torch.cat([cost.flatten() for cost in all_costs]).cpu()  # the sync
    copies, pairs = iter(copied.split([cost.numel() for cost in all_costs])), []
    for layer in costs:
        first_query = first_object = 0
        for cost in layer:
            for group in next(copies).view(cost.shape).chunk(groups):
                queries, objects = linear_sum_assignment(group)
                pairs.append([queries + first_query, objects + first_object])
                first_query += len(group)
            first_object += cost.shape[1]
    return np.concatenate(pairs, 1).reshape(2, len(costs), -1)


def joint_pairs(pairs: np.ndarray) -> np.ndarray:
    """Merge the pairs of all layers (2, layers, M) into one pair per query (2, U).

    A query keeps the object that it is matched with in most layers (D-FINE, arXiv:2410.13842,
    Section 4.2), in a tie the one with the smallest index. Queries are in ascending order.
    """
    (queries, objects), counts = np.unique(pairs.reshape(2, -1), axis=1, return_counts=True)
    order = np.lexsort((objects, -counts, queries))
    first = np.unique(queries[order], return_index=True)[1]
    return np.stack((queries, objects))[:, order[first]]
