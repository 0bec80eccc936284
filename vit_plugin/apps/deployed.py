"""A trained model with its preprocessing, as a graph: images in, and classes, maps or boxes out."""

import math
from copy import deepcopy
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torchvision.ops import box_convert, clip_boxes_to_image, nms

from vit_plugin.errors import ConfigError
from vit_plugin.models.protocol import Backbone

Outputs = Tensor | tuple[Tensor, ...]


class Deployed(nn.Module):
    """Preprocessing and network in one module, in this dtype.

    Attributes:
        outputs: the names of what :meth:`forward` returns.
        any_number: whether it takes several images at once.
        any_size: whether one graph may take images of all sizes.
        unit, least: sides of images are multiples of the first in such a graph, at least so many.
    """
    outputs: ClassVar[tuple[str, ...]]
    any_number: ClassVar[bool] = True
    any_size: ClassVar[bool] = True

    def __init__(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        preprocessor = model.data_preprocessor
        ones = torch.ones(1, 1, 1)
        # Not `mean` alone: onnxscript uses that name for a mean that it folds into a constant.
        self.register_buffer('image_mean', getattr(preprocessor, 'mean', 0 * ones).clone())
        self.register_buffer('image_std', getattr(preprocessor, 'std', ones).clone())
        self.model, self.dtype = model.to(dtype), dtype

    @property
    def unit(self) -> int:
        return self.model.backbone.strides[-1]

    @property
    def least(self) -> int:
        return 2

    def forward(self, images: Tensor) -> Outputs:
        """Images (B, C, H, W), float32 from 0 to 255, in the network's channel order (RGB) -> ``outputs``."""
        raise NotImplementedError

    def features(self, images: Tensor) -> Any:
        """Images, see :meth:`forward`, -> what the head gets."""
        return self.model.extract_feat(((images - self.image_mean) / self.image_std).to(self.dtype))

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """The largest difference of outputs, relative to the largest value of each."""
        return max(_relative(one, other) for one, other in zip(_tuple(found), _tuple(wanted), strict=True))


class DeployedClassifier(Deployed):
    """MMPretrain's classifier -> logits (B, classes)."""
    outputs = ('logits', )

    def forward(self, images: Tensor) -> Tensor:
        return self.model.head(self.features(images)).float()


class DeployedSegmentor(Deployed):
    """MMSegmentation's segmentor -> logits (B, classes, H, W), the largest of which is the class of a pixel."""
    outputs = ('logits', )

    def forward(self, images: Tensor) -> Tensor:
        size = tuple(images.shape[-2:])
        return self.model.decode_head.predict(
            self.features(images), [dict(img_shape=size, pad_shape=size)], self.model.test_cfg).float()


class DeployedQueries(Deployed):
    """EoMT for instances or panoptic masks -> class logits (B, Q, classes + 1) and mask logits (B, Q, H/4, W/4).

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
    outputs = ('boxes', 'scores', 'labels')
    any_size = False  # positions of proposals are constants of the graph

    @property
    def unit(self) -> int:
        """The framework pads each image to multiples of this."""
        return max(super().unit, getattr(self.model.data_preprocessor, 'pad_size_divisor', 1))

    def difference(self, found: Outputs, wanted: Outputs) -> float:
        """Distance of boxes to the nearest of their class, relative to the image and the best score.

        A twentieth of them does not count: where scores tie, rounding decides which of two boxes is there.
        """
        nearest = [_nearest(*image) for image in zip(*found, *wanted, strict=True)]
        return torch.cat(nearest).quantile(0.95, interpolation='higher').item()


class DeployedDETR(DeployedBoxes):
    """A detector with an ``LWDETRHead``."""

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        logits, boxes, *_ = self.model.bbox_head(self.features(images))
        scores, best = logits[-1].float().sigmoid().flatten(1).topk(self.model.bbox_head.test_cfg['max_per_img'])
        height, width = images.shape[-2:]
        classes = logits.shape[-1]
        boxes = box_convert(boxes[-1].float(), 'cxcywh', 'xyxy') * boxes.new_tensor([width, height, width, height])
        boxes = boxes.gather(1, (best // classes)[..., None].expand(-1, -1, 4))
        return clip_boxes_to_image(boxes, (height, width)), scores, best % classes


class DeployedRetinaNet(DeployedBoxes):
    """A detector with MMDetection's ``RetinaHead``, with torchvision's suppression of overlaps, for one image."""
    any_number, any_size = False, True

    @property
    def least(self) -> int:
        """So that the coarsest map has two rows: torch.export takes a side of one for a constant."""
        coarsest = max(max(stride) for stride in self.model.bbox_head.prior_generator.strides)
        return max(2, math.ceil(2 * coarsest / self.unit))

    def forward(self, images: Tensor) -> tuple[Tensor, ...]:
        head, test_cfg = self.model.bbox_head, self.model.bbox_head.test_cfg
        logits, deltas = head(self.features(images))
        anchors = head.prior_generator.grid_priors([level.shape[-2:] for level in logits], device=images.device)
        found = []
        for level, delta, anchor in zip(logits, deltas, anchors, strict=True):
            scores = level[0].float().permute(1, 2, 0).reshape(-1).sigmoid()
            most = test_cfg.get('nms_pre', -1)
            count = scores.shape[0]
            scores, best = scores.topk(count if most < 0 else torch.sym_min(most, count))
            rows = best // head.num_classes
            boxes = head.bbox_coder.decode(anchor[rows], delta[0].float().permute(1, 2, 0).reshape(-1, 4)[rows],
                                           max_shape=images.shape[-2:])
            found.append((boxes, scores, best % head.num_classes))
        boxes, scores, labels = (torch.cat(parts) for parts in zip(*found, strict=True))
        apart = labels[:, None] * (1. + boxes.max())  # boxes of two classes do not overlap
        kept = nms(boxes + apart, scores, test_cfg['nms']['iou_threshold'])[:test_cfg['max_per_img']]
        return boxes[kept][None], scores[kept][None], labels[kept][None]


def deploy(model: nn.Module, dtype: str = 'float32') -> Deployed:
    """A copy of a trained model to export, in eval mode.

    Raises:
        ConfigError: if the model has another backbone than ours, or steps that are no graph.
    """
    backbone = getattr(model, 'backbone', None)
    if not isinstance(backbone, Backbone):
        raise ConfigError(f'model.backbone: {type(backbone).__name__} is not one of vit_plugin, and only those can be '
                          'exported.')
    network = torch.bfloat16 if dtype == 'bfloat16' else torch.float32
    return _kind(model)(deepcopy(model), network).eval().requires_grad_(False)


def _kind(model: nn.Module) -> type[Deployed]:
    """Adapter of a model for export, by the names of its class and of its head's.

    Raises:
        ConfigError: see :func:`deploy`.
    """
    names = {name: {kind.__name__ for kind in type(getattr(model, name)).__mro__}
             for name in ('head', 'decode_head', 'bbox_head', 'panoptic_head') if hasattr(model, name)}
    if 'head' in names:
        return DeployedClassifier
    if 'decode_head' in names:
        if model.test_cfg.get('mode') == 'slide':
            raise ConfigError("model.test_cfg.mode='slide' cuts an image into windows, which is no part of a graph; "
                              "export with --cfg-options model.test_cfg.mode=whole and --size, and cut outside.")
        return DeployedSegmentor
    if 'LWDETRHead' in names.get('bbox_head', ()):
        return DeployedDETR
    if 'RetinaHead' in names.get('bbox_head', ()):
        return DeployedRetinaNet
    if 'EoMTHead' in names.get('panoptic_head', ()):
        return DeployedQueries
    raise ConfigError(f'model: {type(model).__name__} chooses boxes or masks in steps that are no graph; classifiers, '
                      'segmentors, EoMT, and detectors with an LWDETRHead or a RetinaHead can be exported.')


def _nearest(boxes: Tensor, scores: Tensor, labels: Tensor, other_boxes: Tensor, other_scores: Tensor,
             other_labels: Tensor) -> Tensor:
    """The distance of each box of an image to the nearest of the others, and the other way round."""
    if not len(boxes) or not len(other_boxes):
        return boxes.new_full((1, ), 0. if len(boxes) == len(other_boxes) else math.inf)
    apart = (boxes[:, None] - other_boxes).abs().amax(-1) / other_boxes.abs().max().clamp(min=1e-6)
    apart = torch.maximum(apart, (scores[:, None] - other_scores).abs() / other_scores.max().clamp(min=1e-6))
    apart = apart.masked_fill(labels[:, None] != other_labels, math.inf)
    return torch.cat((apart.amin(0), apart.amin(1)))


def _tuple(outputs: Outputs) -> tuple[Tensor, ...]:
    return (outputs, ) if isinstance(outputs, Tensor) else tuple(outputs)


def _relative(found: Tensor, wanted: Tensor) -> float:
    if found.shape != wanted.shape:
        return math.inf
    return ((found - wanted).abs().max() / wanted.abs().max().clamp(min=1e-6)).item() if wanted.numel() else 0.
