"""Contrastive denoising (DINO, arXiv:2203.03605): queries made of objects with noise.

In training, the decoder gets these queries besides its own. It restores the object of a positive
query, which has little noise, and predicts no object for a negative query, which has more.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torchvision.ops import box_convert


class NoisedObjects(NamedTuple):
    """The queries of noised objects. Each group has first its positive, then its negative queries.

    Attributes:
        labels: their classes (B, D); ``num_classes`` pads images with fewer objects.
        boxes: their boxes (B, D, 4) as (x, y, w, h), fractions of the image.
        queries: indices of the positive queries among the B * D of the batch (M), image by image,
            group by group.
        objects: indices of their target objects in the batch (M).
        groups: number of groups.
    """

    labels: Tensor
    boxes: Tensor
    queries: Tensor
    objects: Tensor
    groups: int

    def attention_mask(self, num_queries: int) -> Tensor:
        """The attention mask (D + Q, D + Q), True where a query must not see another.

        Noised queries see their own group and the Q other queries, which see no noised ones.
        """
        num_noised = self.labels.shape[1]
        index = torch.arange(num_noised + num_queries, device=self.labels.device)
        # The Q other queries are the last group.
        group = (index * self.groups // num_noised).clamp(max=self.groups)
        mask = group[:, None] != group
        mask[:num_noised, num_noised:] = False  # noised objects see the other queries
        return mask


def make_noised_objects(
    labels: Sequence[Tensor],
    boxes: Sequence[Tensor],
    num_classes: int,
    max_pairs: int,
    label_noise: float = 0.5,
    box_noise: float = 1.0,
) -> NoisedObjects | None:
    """Queries of noised objects. None if there are no objects, or with ``max_pairs=0``.

    Args:
        labels: the classes (N) of each image's objects.
        boxes: their boxes (N, 4) as (x, y, w, h), fractions of the image.
        num_classes: number of classes.
        max_pairs: maximum number of query pairs (a positive and a negative one) per image in all
            groups together. There is at least one group, even if an image has more objects.
        label_noise: twice the fraction of classes to replace by random ones, as in DINO.
        box_noise: largest shift of a side of a positive box, relative to half the side of the box;
            sides of negative boxes move by one to two times this shift.
    """
    counts = [len(label) for label in labels]
    if not (max_objects := max(counts)) or not max_pairs:
        return None
    groups = max(max_pairs // max_objects, 1)
    padded_labels = torch.full((len(counts), max_objects), num_classes).to(labels[0])
    padded_boxes = boxes[0].new_zeros(len(counts), max_objects, 4)
    for i, count in enumerate(counts):
        padded_labels[i, :count], padded_boxes[i, :count] = labels[i], boxes[i]
    is_object = padded_labels != num_classes
    padded_labels, is_object = padded_labels.tile(2 * groups), is_object.tile(2 * groups)
    padded_boxes = padded_boxes.tile(1, 2 * groups, 1)
    shape, device = padded_labels.shape, padded_labels.device
    replaced = (torch.rand(shape, device=device) < label_noise / 2) & is_object
    random_labels = torch.randint(num_classes, shape, device=device)
    negative = (torch.arange(shape[1], device=device) // max_objects % 2)[:, None]
    reach = torch.rand_like(padded_boxes) + negative
    sign = 2.0 * torch.randint(2, padded_boxes.shape, device=device) - 1.0
    shifts = reach * sign * box_noise * 0.5 * padded_boxes[..., 2:].tile(2)
    corners = (box_convert(padded_boxes, 'cxcywh', 'xyxy') + shifts).clamp(0, 1)
    queries, objects = _positive(counts, max_objects, groups)
    return NoisedObjects(
        torch.where(replaced, random_labels.to(padded_labels), padded_labels),
        box_convert(corners, 'xyxy', 'cxcywh'),
        queries.to(device, non_blocking=True),
        objects.to(device, non_blocking=True),
        groups,
    )


def _positive(counts: Sequence[int], max_objects: int, groups: int) -> tuple[Tensor, Tensor]:
    """``queries`` and ``objects`` of :class:`NoisedObjects`."""
    queries, objects, first_object = [], [], 0
    for image, count in enumerate(counts):
        start = 2 * max_objects * (image * groups + torch.arange(groups))[:, None]
        queries.append((start + torch.arange(count)).flatten())
        objects.append((first_object + torch.arange(count)).repeat(groups))
        first_object += count
    return torch.cat(queries), torch.cat(objects)
