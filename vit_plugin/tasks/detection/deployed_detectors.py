"""Trained detectors as graphs for export, with their preprocessing: images in, boxes out."""

import math
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torchvision.ops import box_convert

from vit_plugin.deploy.deployed_module import INPUTS, Deployed, Outputs, largest


class DeployedBoxes(Deployed):
    """A detector -> boxes (B, N, 4), scores (B, N) and classes (B, N), best first.

    Boxes are left, top, right and bottom in pixels of the image. Boxes with a score of 0 are
    padding.
    """

    inputs = INPUTS
    outputs = ('boxes', 'scores', 'labels')

    @cached_property
    def map_strides(self) -> list[float]:
        """Pixels per element of each map that the head gets."""
        side = 16 * self.model.backbone.strides[-1]
        with torch.no_grad():
            maps = self.features(torch.zeros(1, self.model.backbone.in_channels, side, side))
        return [side / level.shape[-1] for level in maps]

    @property
    def min_units(self) -> int:
        """Enough for two rows of the coarsest map: torch.export treats a side of 1 as constant."""
        return max(2, math.ceil(2 * max(self.map_strides) / self.unit))

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """Distance of boxes to the nearest box of their class, in both directions.

        See :func:`nearest_distances`.
        """
        distances = []
        for image in zip(*found, *wanted, strict=True):
            actual, expected = image[:3], image[3:]  # boxes, scores and labels each
            distances += [
                nearest_distances(*actual, *expected),
                nearest_distances(*expected, *actual),
            ]
        return box_distance(torch.cat(distances))


class DeployedDETR(DeployedBoxes):
    """A detector with an ``LWDETRHead``, maybe also with mask logits (B, N, H/4, W/4)."""

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.model.bbox_head.outputs

    @property
    def min_units(self) -> int:
        """Enough for the maps to have an element for each query, too."""
        head, units = self.model.bbox_head, super().min_units
        queries = head.test_cfg.get('num_queries', head.num_queries)
        while self._elements(units * self.unit) < queries:
            units += 1
        return units

    def _elements(self, side: int) -> int:
        """Elements of all maps of a square image of this side."""
        return sum(math.ceil(side / stride) ** 2 for stride in self.map_strides)

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """The difference of boxes, or of mask logits if that is larger.

        That of masks is the largest of their pixels, without the worst twentieth of the masks.
        """
        difference = super().difference(found[:3], wanted[:3])
        for actual, expected in zip(found[3:], wanted[3:], strict=True):  # masks, if there are any
            distances = (actual - expected).abs().amax((2, 3)).flatten()
            distances = distances / expected.abs().max().clamp(min=1e-6)
            difference = largest([difference, box_distance(distances)])
        return difference

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        boxes, *others = self.model.bbox_head.best(
            self.features(images, sizes), (sizes, images.shape[-2:])
        )
        boxes = box_convert(boxes, 'cxcywh', 'xyxy') * ends_of(sizes)
        return clipped(boxes, sizes), *others[: len(self.outputs) - 1]


class DeployedTransformer(DeployedDETR):
    """A ``DetectionTransformer`` of MMDetection, whose images are not padded."""

    inputs = INPUTS[:1]  # type: ignore[assignment]
    min_units = Deployed.min_units  # without the coarser maps of DeployedBoxes

    def features(self, images: Tensor, sizes: Tensor | None = None) -> Any:
        """Images -> the input of the head."""
        shape = images.shape[-2:]
        sample = SimpleNamespace(batch_input_shape=shape, img_shape=shape)
        return self.model.forward_transformer(super().features(images), [sample])

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        return super().forward(images, torch.tensor([images.shape[-2:]]))


class DeployedQueries(Deployed):
    """EoMT for instances or panoptic masks -> class logits and mask logits.

    Their shapes are (B, Q, classes + 1) and (B, Q, H/4, W/4).

    MMDetection's fusion of masks to segments is not part of the graph.
    """

    outputs = ('classes', 'masks')

    def forward(self, images: Tensor, sizes: Tensor | None = None) -> tuple[Tensor, Tensor]:
        classes, masks = self.features(images, sizes)[-1]
        return classes.float(), masks.float()


def ends_of(sizes: Tensor) -> Tensor:
    """Heights and widths (B, 2) -> upper bounds of box coordinates (B, 1, 4)."""
    return sizes.flip(1).repeat(1, 2)[:, None]


def clipped(boxes: Tensor, sizes: Tensor) -> Tensor:
    """Clip boxes (B, N, 4) to images of these heights and widths (B, 2)."""
    return torch.minimum(boxes.clamp(min=0), ends_of(sizes).to(boxes))


def nearest_distances(
    boxes: Tensor,
    scores: Tensor,
    labels: Tensor,
    other_boxes: Tensor,
    other_scores: Tensor,
    other_labels: Tensor,
) -> Tensor:
    """The distance (N) of each box (N, 4) of an image to the nearest other box of its class.

    The distance is the largest difference of coordinates, relative to the largest coordinate of the
    other boxes, or of scores, relative to their largest. It is 1 if no other box has the class.
    """
    if not len(boxes) or not len(other_boxes):
        return boxes.new_ones(len(boxes))
    distances = (boxes[:, None] - other_boxes).abs().amax(-1)
    distances = distances / other_boxes.abs().max().clamp(min=1e-6)
    score_distances = (scores[:, None] - other_scores).abs() / other_scores.max().clamp(min=1e-6)
    distances = torch.maximum(distances, score_distances)
    return distances.masked_fill(labels[:, None] != other_labels, 1.0).amin(1)


def box_distance(distances: Tensor) -> float:
    """The largest distance of boxes, without the worst twentieth.

    If scores tie, rounding decides which of two boxes is kept.
    """
    return distances.quantile(0.95, interpolation='higher').item() if len(distances) else 0.0
