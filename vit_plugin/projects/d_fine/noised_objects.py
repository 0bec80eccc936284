"""Denoising: queries made from objects with noise, to be restored (DINO, arXiv:2203.03605)."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torchvision.ops import box_convert


class NoisedObjects(NamedTuple):
    """The queries of noised objects: groups of first positive, then negative ones.

    Attributes:
        labels: their classes (B, D); ``num_classes`` pads images with fewer objects.
        boxes: their boxes (B, D, 4) as (x, y, w, h), fractions of the image.
        queries: the positive ones in the batch of B * D (M), image by image, group by group.
        objects: their target objects in the batch (M).
        groups: number of groups.
    """

    labels: Tensor
    boxes: Tensor
    queries: Tensor
    objects: Tensor
    groups: int

    def hidden(self, num_queries: int) -> Tensor:
        """The attention mask (D + Q, D + Q), True for other groups and, outside of them, noise."""
        number = self.labels.shape[1]
        every = torch.arange(number + num_queries, device=self.labels.device)
        group = (every * self.groups // number).clamp(max=self.groups)
        apart = group[:, None] != group
        apart[:number, number:] = False  # noised objects see the queries
        return apart


def noised_objects(
    labels: Sequence[Tensor],
    boxes: Sequence[Tensor],
    num_classes: int,
    number: int,
    label_noise: float = 0.5,
    box_noise: float = 1.0,
) -> NoisedObjects | None:
    """Queries of noised objects; None without objects.

    Args:
        labels: the classes (N) of each image's objects.
        boxes: their boxes (N, 4) as (x, y, w, h), fractions of the image.
        num_classes: number of classes.
        number: least number of query pairs in all groups.
        label_noise: twice the fraction of classes to replace by random ones.
        box_noise: largest shift of a side of a positive box, relative to half the side of the box;
            sides of negative boxes move one to two times as far.
    """
    counts = [len(label) for label in labels]
    if not (most := max(counts)) or not number:
        return None
    groups = max(number // most, 1)
    padded = torch.full((len(counts), most), num_classes).to(labels[0])
    placed = boxes[0].new_zeros(len(counts), most, 4)
    for i, count in enumerate(counts):
        padded[i, :count], placed[i, :count] = labels[i], boxes[i]
    there = padded != num_classes
    padded, there = padded.tile(2 * groups), there.tile(2 * groups)
    placed = placed.tile(1, 2 * groups, 1)
    replaced = (torch.rand(padded.shape, device=padded.device) < label_noise / 2) & there
    random = torch.randint(num_classes, padded.shape, device=padded.device)
    negative = (torch.arange(padded.shape[1], device=padded.device) // most % 2)[:, None]
    reach = torch.rand_like(placed) + negative
    sign = 2.0 * torch.randint(2, placed.shape, device=placed.device) - 1.0
    moves = reach * sign * box_noise * 0.5 * placed[..., 2:].tile(2)
    corners = (box_convert(placed, 'cxcywh', 'xyxy') + moves).clamp(0, 1)
    queries, objects = _positive(counts, most, groups)
    return NoisedObjects(
        torch.where(replaced, random.to(padded), padded),
        box_convert(corners, 'xyxy', 'cxcywh'),
        queries.to(padded.device, non_blocking=True),
        objects.to(padded.device, non_blocking=True),
        groups,
    )


def _positive(counts: Sequence[int], most: int, groups: int) -> tuple[Tensor, Tensor]:
    """The positive queries of the batch, and their target objects."""
    queries, objects, first = [], [], 0
    for image, count in enumerate(counts):
        start = 2 * most * (image * groups + torch.arange(groups))[:, None]
        queries.append((start + torch.arange(count)).flatten())
        objects.append((first + torch.arange(count)).repeat(groups))
        first += count
    return torch.cat(queries), torch.cat(objects)
