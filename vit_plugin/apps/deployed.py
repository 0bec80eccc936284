"""A trained model with its preprocessing, as a graph: images in, and classes, maps or boxes out."""

import math
from copy import deepcopy
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torchvision.ops import box_convert, nms

from vit_plugin.errors import ConfigError
from vit_plugin.models.classifier import Classifier
from vit_plugin.models.protocol import Backbone

Outputs = Tensor | tuple[Tensor, ...]


class Deployed(nn.Module):
    """Preprocessing and network in one module, in this dtype.

    Its forward gets images (B, C, H, W), float32 from 0 to 255, in the network's channel order
    (RGB). A detector's also gets their heights and widths (B, 2) in int64, beyond which they are
    padded.

    Attributes:
        inputs, outputs: the names of what the forward gets and returns.
        unit, least: sides of images are multiples of the first in such a graph, at least so many.
    """

    inputs: ClassVar[tuple[str, ...]] = ('images',)
    outputs: ClassVar[tuple[str, ...]]

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        mean, std = normalisation_of(model)
        # Not `mean` alone: onnxscript uses that name for a mean that it folds into a constant.
        self.register_buffer('image_mean', mean.clone())
        self.register_buffer('image_std', std.clone())
        self.model, self.dtype = model.to(dtype), dtype

    @property
    def unit(self) -> int:
        return max(self.model.backbone.strides[-1], padding_of(self.model))

    @property
    def least(self) -> int:
        return 2

    def normalised(self, images: Tensor) -> Tensor:
        """Images -> what the network gets."""
        return ((images - self.image_mean) / self.image_std).to(self.dtype)

    def features(self, images: Tensor) -> Any:
        """Images -> what the head gets."""
        return self.model.extract_feat(self.normalised(images))

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """The largest difference of outputs, relative to the largest value of each."""
        return max(
            _relative(one, other) for one, other in zip(_tuple(found), _tuple(wanted), strict=True)
        )


class DeployedClassifier(Deployed):
    """MMPretrain's classifier -> logits (B, classes)."""

    outputs = ('logits',)

    def forward(self, images: Tensor) -> Tensor:
        return self.model.head(self.features(images)).float()


class DeployedModule(Deployed):
    """A plain classifier of ``create_model`` -> logits (B, classes). It needs no framework."""

    outputs = ('logits',)

    def forward(self, images: Tensor) -> Tensor:
        return self.model(self.normalised(images)).float()


class DeployedFeatures(DeployedModule):
    """The same without a head -> features (B, C)."""

    outputs = ('features',)


class DeployedSegmentor(Deployed):
    """MMSegmentation's segmentor -> logits (B, classes, H, W). The largest is a pixel's class.

    Raises:
        ConfigError: if the model cuts an image into windows.
    """

    outputs = ('logits',)

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__(model, dtype)
        if model.test_cfg.get('mode') == 'slide':
            raise ConfigError(
                "model.test_cfg.mode='slide' cuts an image into windows, which is not part of a "
                'graph; export with --cfg-options model.test_cfg.mode=whole and --img-size, and '
                'cut outside.'
            )

    def forward(self, images: Tensor) -> Tensor:
        size = tuple(images.shape[-2:])
        return self.model.decode_head.predict(
            self.features(images), [dict(img_shape=size, pad_shape=size)], self.model.test_cfg
        ).float()


class DeployedQueries(Deployed):
    """EoMT for instances or panoptic masks -> class logits and mask logits.

    Their shapes are (B, Q, classes + 1) and (B, Q, H/4, W/4).

    How masks become segments is MMDetection's fusion, outside of the graph.
    """

    outputs = ('classes', 'masks')

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        classes, masks = self.features(images)[-1]
        return classes.float(), masks.float()


class DeployedBoxes(Deployed):
    """A detector -> boxes (B, N, 4), scores (B, N) and classes (B, N), best first.

    Boxes are left, top, right and bottom in pixels of the image. No score is too low to be there.
    """

    inputs = ('images', 'sizes')
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
    """A detector with an ``LWDETRHead``."""

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        logits, boxes, *_ = self.model.bbox_head(self.features(images), (sizes, images.shape[-2:]))
        scores, best = (
            logits[-1]
            .float()
            .sigmoid()
            .flatten(1)
            .topk(self.model.bbox_head.test_cfg['max_per_img'])
        )
        classes = logits.shape[-1]
        boxes = box_convert(boxes[-1].float(), 'cxcywh', 'xyxy') * _ends(sizes)
        boxes = boxes.gather(1, (best // classes)[..., None].expand(-1, -1, 4))
        return _clipped(boxes, sizes), scores, best % classes


class DeployedRetinaNet(DeployedBoxes):
    """A detector with MMDetection's ``RetinaHead``, with torchvision's suppression of overlaps.

    An image with fewer boxes than ``max_per_img`` has others of score 0.
    """

    def forward(self, images: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        head, test_cfg = self.model.bbox_head, self.model.bbox_head.test_cfg
        logits, deltas = head(self.features(images))
        anchors = head.prior_generator.grid_priors(
            [level.shape[-2:] for level in logits], device=images.device
        )
        found = []
        for level, delta, anchor in zip(logits, deltas, anchors, strict=True):
            # (B, positions * anchors * classes).
            scores = level.float().permute(0, 2, 3, 1).flatten(1).sigmoid()
            most = test_cfg.get('nms_pre', -1)
            count = scores.shape[1]
            scores, best = scores.topk(count if most < 0 else torch.sym_min(most, count))
            rows = best // head.num_classes
            delta = delta.float().permute(0, 2, 3, 1).reshape(images.shape[0], -1, 4)
            delta = delta.gather(1, rows[..., None].expand(-1, -1, 4))
            boxes = head.bbox_coder.decode(
                anchor[rows].flatten(0, 1), delta.flatten(0, 1)
            ).unflatten(0, rows.shape)
            found.append((_clipped(boxes, sizes), scores, best % head.num_classes))
        boxes, scores, labels = (torch.cat(parts, dim=1) for parts in zip(*found, strict=True))
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
        scores, best = (scores * there).topk(
            torch.sym_min(test_cfg['max_per_img'], scores.shape[1])
        )
        there = scores > 0
        boxes = boxes.gather(1, best[..., None].expand(-1, -1, 4)) * there[..., None]
        return boxes, scores, labels.gather(1, best) * there


def _ends(sizes: Tensor) -> Tensor:
    """Heights and widths (B, 2) -> where boxes end at most (B, 1, 4)."""
    return sizes.flip(1).repeat(1, 2)[:, None]


def _clipped(boxes: Tensor, sizes: Tensor) -> Tensor:
    return torch.minimum(boxes.clamp(min=0), _ends(sizes).to(boxes))


def normalisation_of(model: nn.Module) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation (C, 1, 1) of pixels from 0 to 255, of the network's channels."""
    preprocessor = getattr(model, 'data_preprocessor', None)
    if preprocessor is None:
        pixels = model.data_config
        mean, std = (255 * torch.tensor(pixels[key])[:, None, None] for key in ('mean', 'std'))
        return mean, std
    ones = torch.ones(1, 1, 1)
    return getattr(preprocessor, 'mean', 0 * ones), getattr(preprocessor, 'std', ones)


def padding_of(model: nn.Module) -> int:
    """The divisor of the sides to which a model's preprocessor pads the images of a test."""
    preprocessor: Any = getattr(model, 'data_preprocessor', None)
    if hasattr(preprocessor, 'test_cfg'):  # MMSegmentation's
        return (preprocessor.test_cfg or {}).get('size_divisor', 1)
    return getattr(preprocessor, 'pad_size_divisor', 1)


def deploy(model: nn.Module, dtype: str = 'float32') -> Deployed:
    """A copy of a trained model to export, in eval mode.

    Raises:
        ConfigError: if the model has another backbone than ours, or steps that are not a graph.
    """
    backbone = getattr(model, 'backbone', None)
    if not isinstance(backbone, Backbone):
        raise ConfigError(
            f'model.backbone: {type(backbone).__name__} is not one of vit_plugin, and only those '
            'can be exported.'
        )
    network = torch.bfloat16 if dtype == 'bfloat16' else torch.float32
    return _kind(model)(deepcopy(model), network).eval().requires_grad_(False)


# Adapters by the model's part and, where that part decides, the name of its class.
KINDS = {
    ('head', None): DeployedClassifier,
    ('decode_head', None): DeployedSegmentor,
    ('bbox_head', 'LWDETRHead'): DeployedDETR,
    ('bbox_head', 'RetinaHead'): DeployedRetinaNet,
    ('panoptic_head', 'EoMTHead'): DeployedQueries,
}


def _kind(model: nn.Module) -> type[Deployed]:
    """The adapter of a model.

    Raises:
        ConfigError: see :func:`deploy`.
    """
    if isinstance(model, Classifier):
        return DeployedModule if model.num_classes else DeployedFeatures
    for (part, name), adapter in KINDS.items():
        classes = type(getattr(model, part, None)).__mro__
        if hasattr(model, part) and (not name or name in (one.__name__ for one in classes)):
            return adapter
    raise ConfigError(
        f'model: {type(model).__name__} chooses boxes or masks in steps that are not a graph; '
        'classifiers, segmentors, EoMT, and detectors with an LWDETRHead or a RetinaHead can be '
        'exported.'
    )


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
    """
    if not len(boxes) or not len(other_boxes):
        return boxes.new_full((len(boxes),), math.inf)
    apart = (boxes[:, None] - other_boxes).abs().amax(-1) / other_boxes.abs().max().clamp(min=1e-6)
    apart = torch.maximum(
        apart, (scores[:, None] - other_scores).abs() / other_scores.max().clamp(min=1e-6)
    )
    return apart.masked_fill(labels[:, None] != other_labels, math.inf).amin(1)


def distance(distances: Tensor) -> float:
    """The largest of the distances of boxes, but for a twentieth of them.

    Where scores tie, rounding decides which of two boxes is there.
    """
    return distances.quantile(0.95, interpolation='higher').item() if len(distances) else 0.0


def _tuple(outputs: Outputs) -> tuple[Tensor, ...]:
    return (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)


def _relative(found: Tensor, wanted: Tensor) -> float:
    if found.shape != wanted.shape:
        return math.inf
    return (
        ((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6)).item()
        if wanted.numel()
        else 0.0
    )
