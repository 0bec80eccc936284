"""Trained detectors with their preprocessing, as graphs: images in, boxes or masks out."""

import math
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor
from torchvision.ops import box_convert

from vit_plugin.deploy.deployed_module import INPUTS, Deployed, Outputs


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
    def least(self) -> int:
        """Enough for two rows of the coarsest map: torch.export treats a side of 1 as constant."""
        return max(2, math.ceil(2 * max(self.map_strides) / self.unit))

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """Distance of boxes to the nearest of their class, both ways, see :func:`nearest`."""
        images = list(zip(*found, *wanted, strict=True))
        return box_distance(
            torch.cat([nearest(*image[i:], *image[:i]) for image in images for i in (0, 3)])
        )


class DeployedDETR(DeployedBoxes):
    """A detector with an ``LWDETRHead``, maybe also with mask logits (B, N, H/4, W/4)."""

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.model.bbox_head.outputs

    @property
    def least(self) -> int:
        """Also enough for one element of the maps per query."""
        head, least = self.model.bbox_head, super().least
        queries = head.test_cfg.get('num_queries', head.num_queries)
        while self._elements(least * self.unit) < queries:
            least += 1
        return least

    def _elements(self, side: int) -> int:
        """Elements of all maps of a square image of this side."""
        return sum(math.ceil(side / stride) ** 2 for stride in self.map_strides)

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """The difference, for masks too: per pixel, without the worst twentieth of the masks."""
        masks = [
            (one - other).abs().amax((2, 3)).flatten() / other.abs().max().clamp(min=1e-6)
            for one, other in zip(found[3:], wanted[3:], strict=True)
        ]
        return max(super().difference(found[:3], wanted[:3]), *map(box_distance, masks), 0.0)

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        boxes, *more = self.model.bbox_head.best(
            self.features(images, sizes), (sizes, images.shape[-2:])
        )
        boxes = box_convert(boxes, 'cxcywh', 'xyxy') * ends_of(sizes)
        return clipped(boxes, sizes), *more[: len(self.outputs) - 1]


class DeployedTransformer(DeployedDETR):
    """A ``DetectionTransformer`` of MMDetection, whose images are not padded."""

    inputs = INPUTS[:1]  # type: ignore[assignment]
    least = Deployed.least  # without the coarser maps of DeployedBoxes

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


def nearest(
    boxes: Tensor,
    scores: Tensor,
    labels: Tensor,
    other_boxes: Tensor,
    other_scores: Tensor,
    other_labels: Tensor,
) -> Tensor:
    """The distance (N) of each box (N, 4) of an image to the nearest of its class among others.

    The distance is the maximum over coordinates and scores, relative to the largest of the others.
    Without any of the class, it is 1.
    """
    if not len(boxes) or not len(other_boxes):
        return boxes.new_ones(len(boxes))
    apart = (boxes[:, None] - other_boxes).abs().amax(-1) / other_boxes.abs().max().clamp(min=1e-6)
    apart = torch.maximum(
        apart, (scores[:, None] - other_scores).abs() / other_scores.max().clamp(min=1e-6)
    )
    return apart.masked_fill(labels[:, None] != other_labels, 1.0).amin(1)


def box_distance(distances: Tensor) -> float:
    """The largest distance of boxes, without the worst twentieth.

    If scores tie, rounding decides which of two boxes is kept.
    """
    return distances.quantile(0.95, interpolation='higher').item() if len(distances) else 0.0
