"""A trained detector with its preprocessing, as a graph: images in, boxes out."""

import math
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torchvision.ops import box_convert, nms

from vit_plugin.errors import ConfigError

from .deployed_module import INPUTS, Deployed, Outputs


class DeployedBoxes(Deployed):
    """A detector -> boxes (B, N, 4), scores (B, N) and classes (B, N), best first.

    Boxes are left, top, right and bottom in pixels of the image. A score of 0 is no box.
    """

    inputs = INPUTS
    outputs = ('boxes', 'scores', 'labels')

    @cached_property
    def least(self) -> int:
        """Enough for two rows of the coarsest map: torch.export takes a side of 1 as constant."""
        side = 16 * self.model.backbone.strides[-1]
        with torch.no_grad():
            maps = self.features(torch.zeros(1, self.model.backbone.in_channels, side, side))
        coarsest = side / min(level.shape[-1] for level in maps)
        return max(2, math.ceil(2 * coarsest / self.unit))

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """Distance of boxes to the nearest of their class, both ways, see :func:`nearest`."""
        images = list(zip(*found, *wanted, strict=True))
        return distance(
            torch.cat([nearest(*image[i:], *image[:i]) for image in images for i in (0, 3)])
        )


class DeployedDETR(DeployedBoxes):
    """A detector with an ``LWDETRHead``, which may have logits of masks (B, N, H/4, W/4), too."""

    @property
    def outputs(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.model.bbox_head.outputs

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """The same for masks, pixel by pixel, but for a twentieth of them."""
        masks = [
            (one - other).abs().amax((2, 3)).flatten() / other.abs().max().clamp(min=1e-6)
            for one, other in zip(found[3:], wanted[3:], strict=True)
        ]
        return max(super().difference(found[:3], wanted[:3]), *map(distance, masks), 0.0)

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        boxes, *more = self.model.bbox_head.best(
            self.features(images, sizes), (sizes, images.shape[-2:])
        )
        boxes = box_convert(boxes, 'cxcywh', 'xyxy') * _ends(sizes)
        return _clipped(boxes, sizes), *more[: len(self.outputs) - 1]


class DeployedTransformer(DeployedDETR):
    """A ``DetectionTransformer`` of MMDetection, whose images are not padded."""

    inputs = INPUTS[:1]  # type: ignore[assignment]
    least = Deployed.least  # as for any map

    def features(self, images: Tensor, sizes: Tensor | None = None) -> Any:
        """Images -> what the head gets."""
        shape = images.shape[-2:]
        sample = SimpleNamespace(batch_input_shape=shape, img_shape=shape)
        return self.model.forward_transformer(super().features(images), [sample])

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:  # type: ignore[override]
        return super().forward(images, torch.tensor([images.shape[-2:]]))


class DeployedRetinaNet(DeployedBoxes):
    """A detector with MMDetection's ``RetinaHead``, with torchvision's suppression of overlaps.

    An image with fewer boxes than ``max_per_img`` has others of score 0.

    Raises:
        ConfigError: if its scores or its suppression are of another kind.
    """

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(model, dtype)
        head, test_cfg = model.bbox_head, model.bbox_head.test_cfg
        nms_cfg = {'type': 'nms', **test_cfg['nms']}
        suppresses = {name: nms_cfg[name] for name in nms_cfg if name != 'iou_threshold'}
        for field, value, wanted in (
            ('bbox_head.loss_cls.use_sigmoid', head.use_sigmoid_cls, True),
            ('test_cfg.nms', suppresses, dict(type='nms')),
            ('test_cfg.min_bbox_size', max(test_cfg.get('min_bbox_size', 0), 0), 0),
        ):
            if value != wanted:
                raise ConfigError(
                    f'model.{field}: {value} cannot be exported; export with {wanted}, by '
                    '--cfg-options, and do the rest outside.'
                )

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        head, test_cfg = self.model.bbox_head, self.model.bbox_head.test_cfg
        logits, deltas = head(self.features(images, sizes))
        anchors = head.prior_generator.grid_priors(
            [level.shape[-2:] for level in logits], device=images.device
        )
        found = []
        for level, delta, anchor in zip(logits, deltas, anchors, strict=True):
            # (B, positions * anchors * classes).
            scores = level.float().permute(0, 2, 3, 1).flatten(1).sigmoid()
            scores, best = _highest(scores, test_cfg.get('nms_pre', -1))
            # Plain division: the graph of `//` asks for signs, by booleans that few runtimes take.
            rows = torch.div(best, head.num_classes, rounding_mode='trunc')
            # Channels alone are divided: sympy takes minutes to divide open numbers of positions.
            delta = delta.float().permute(0, 2, 3, 1).unflatten(3, (delta.shape[1] // 4, 4))
            delta = delta.flatten(1, 3)  # (B, positions * anchors, 4)
            delta = delta.gather(1, rows[..., None].expand(-1, -1, 4))
            boxes = head.bbox_coder.decode(
                anchor[rows].flatten(0, 1), delta.flatten(0, 1)
            ).unflatten(0, rows.shape)
            found.append((_clipped(boxes, sizes), scores, best - rows * head.num_classes))
        boxes, scores, labels = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
        sides = boxes[..., 2:] - boxes[..., :2]
        if test_cfg.get('min_bbox_size', -1) == 0:
            scores = scores * (sides.amin(-1) > 0)
        scores = scores * (scores > test_cfg.get('score_thr', 0))
        image = torch.arange(images.shape[0], device=images.device)[:, None].expand_as(labels)
        # Boxes of two classes do not overlap, nor do those of two images.
        apart = torch.stack((labels, image), dim=-1) * (1.0 + boxes.max())
        kept = nms(
            (boxes + apart.repeat(1, 1, 2)).flatten(0, 1),
            scores.flatten(),
            test_cfg['nms']['iou_threshold'],
        )
        there = (
            torch.zeros_like(scores).flatten().index_fill(0, kept, 1.0).unflatten(0, scores.shape)
        )
        scores, best = _highest(scores * there, test_cfg['max_per_img'])
        there = scores > 0
        boxes = boxes.gather(1, best[..., None].expand(-1, -1, 4)) * there[..., None]
        return boxes, scores, labels.gather(1, best) * there


def _highest(scores: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The highest scores (B, M) and their positions, at most so many if that is not negative.

    Where the size of images is open, there are always so many, and the last ones may be 0: with
    a number that depends on the size, torch.export takes minutes to simplify shapes.
    """
    count = scores.shape[1]
    if most < 0 or isinstance(count, int):
        return scores.topk(count if most < 0 else min(most, count))
    scores, best = nn.functional.pad(scores, (0, most)).topk(most)
    return scores, best.clamp(max=count - 1)


def _ends(sizes: Tensor) -> Tensor:
    """Heights and widths (B, 2) -> where boxes end at most (B, 1, 4)."""
    return sizes.flip(1).repeat(1, 2)[:, None]


def _clipped(boxes: Tensor, sizes: Tensor) -> Tensor:
    return torch.minimum(boxes.clamp(min=0), _ends(sizes).to(boxes))


def nearest(
    boxes: Tensor,
    scores: Tensor,
    labels: Tensor,
    other_boxes: Tensor,
    other_scores: Tensor,
    other_labels: Tensor,
) -> Tensor:
    """The distance (N) of each box (N, 4) of an image to the nearest of its class among others.

    It is the larger one of their sides and of their scores, relative to the largest of the others.
    Where there is none of the class, it is 1.
    """
    if not len(boxes) or not len(other_boxes):
        return boxes.new_ones(len(boxes))
    apart = (boxes[:, None] - other_boxes).abs().amax(-1) / other_boxes.abs().max().clamp(min=1e-6)
    apart = torch.maximum(
        apart, (scores[:, None] - other_scores).abs() / other_scores.max().clamp(min=1e-6)
    )
    return apart.masked_fill(labels[:, None] != other_labels, 1.0).amin(1)


def distance(distances: Tensor) -> float:
    """The largest of the distances of boxes, but for a twentieth of them.

    Where scores tie, rounding decides which of two boxes is there.
    """
    return distances.quantile(0.95, interpolation='higher').item() if len(distances) else 0.0
