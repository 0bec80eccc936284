"""Transforms that mix several images, for MMDetection's ``MultiImageMixDataset``."""

from collections.abc import Sequence
from typing import Annotated, Any

import cv2
import numpy as np
import torch
from pydantic import Field

from vit_plugin.arguments.fields import ASCENDING, Fraction, PositiveInt, Typed
from vit_plugin.errors import ConfigError
from vit_plugin.files.resizing import resize_image
from vit_plugin.registry import TRANSFORMS, needed_class

BaseTransform: Any = needed_class('CopyBlend', 'mmcv.transforms:BaseTransform')
Compose: Any = needed_class('RandomMix', 'mmcv.transforms:Compose')
Range = Annotated[Sequence[Fraction], Field(min_length=2, max_length=2), ASCENDING]


@TRANSFORMS.register_module()
class RandomMix(BaseTransform):
    """Applies transforms, the first of which mixes images, to some samples.

    MMDetection's ``MixUp`` has no probability, and ``Mosaic`` reads other images even for samples
    that it does not change.

    Args:
        transforms: configs of transforms. The first one mixes: MMDetection's ``Mosaic`` or
            ``MixUp``, or :class:`CopyBlend`.
        prob: probability of applying them.

    Raises:
        ConfigError: if the first transform does not mix images; when called, if samples have masks,
            which MMDetection's transforms cannot mix.
    """

    def __init__(self, transforms: Sequence[Typed], prob: Fraction = 0.5) -> None:
        self.steps, self.prob = Compose(list(transforms)).transforms, prob
        if not self.steps or not hasattr(self.steps[0], 'get_indexes'):
            first = type(self.steps[0]).__name__ if self.steps else 'nothing'
            raise ConfigError(
                f'RandomMix: transforms begins with {first}, which mixes no images; begin with '
                'mmdet.Mosaic, mmdet.MixUp or vit_plugin.CopyBlend.'
            )

    def get_indexes(self, dataset: Any) -> Any:
        """The indices of the other images; empty if nothing is mixed."""
        return self.steps[0].get_indexes(dataset) if np.random.random() < self.prob else []

    def transform(self, results: dict) -> dict:
        if not results.get('mix_results'):
            return results
        if 'gt_masks' in results:
            raise ConfigError(
                'RandomMix: the samples have masks, which are not mixed; leave out RandomMix, or '
                'with_mask=True of LoadAnnotations.'
            )
        for step in self.steps:
            results = step(results)
        return results


@TRANSFORMS.register_module()
class CopyBlend(BaseTransform):
    """Blends objects of another image into an image, as DEIMv2 does (arXiv:2509.20787).

    Each object is placed at random with a margin around it, and pixels of both images are averaged,
    so that nothing is hidden. The other image is resized to fit into this one.

    Args:
        num_objects: the maximum number of objects.
        min_area: the minimum area of an object in pixels.
        margins: range of the margin on each side, as a share of the object's width or height.
        weights: range of the weight of the original pixels.

    Raises:
        ConfigError: when called, if samples have masks, which are not blended.
    """

    def __init__(
        self,
        num_objects: PositiveInt = 3,
        min_area: PositiveInt = 100,
        margins: Range = (0.1, 0.25),
        weights: Range = (0.45, 0.55),
    ) -> None:
        self.num_objects, self.min_area = num_objects, min_area
        self.margins, self.weights = margins, weights

    def get_indexes(self, dataset: Any) -> list[int]:
        """The index of another image."""
        return [int(np.random.randint(len(dataset)))]

    def transform(self, results: dict) -> dict:
        if 'gt_masks' in results:
            raise ConfigError(
                'CopyBlend: the samples have masks, which are not blended; leave out CopyBlend, or '
                'with_mask=True of LoadAnnotations.'
            )
        (other,) = results['mix_results']
        image, own_boxes = results['img'].copy(), results['gt_bboxes']
        factor = min(np.divide(image.shape[:2], other['img'].shape[:2]))
        boxes = other['gt_bboxes'].tensor.numpy() * factor
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        chosen = np.flatnonzero((areas >= self.min_area) & ~other['gt_ignore_flags'])
        chosen = np.random.permutation(chosen)[: self.num_objects]
        if not len(chosen):
            return results
        size = [max(round(side * factor), 1) for side in other['img'].shape[1::-1]]
        source = resize_image(other['img'], size, 'bilinear')
        blended = np.stack([self._blend(image, source, box) for box in boxes[chosen]])
        new_boxes = type(own_boxes)(torch.from_numpy(blended).to(own_boxes.dtype))
        return dict(
            results,
            img=image,
            gt_bboxes=own_boxes.cat([own_boxes, new_boxes]),
            **{
                name: np.concatenate((results[name], other[name][chosen]))
                for name in ('gt_bboxes_labels', 'gt_ignore_flags')
            },
        )

    def _blend(self, image: np.ndarray, source: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Blend a box of the source into the image at a random position.

        Returns the box (4) in the image.
        """
        # All of these are (x, y).
        image_size, source_size = np.array(image.shape[1::-1]), np.array(source.shape[1::-1])
        first = np.floor(box[:2]).astype(int).clip(0, source_size - 1)
        last = np.ceil(box[2:]).astype(int).clip(first + 1, source_size)
        box_size = last - first
        position = np.random.randint(0, image_size - box_size + 1)
        # The margin ends at the borders of both images.
        margin = (_draw_between(self.margins) * box_size).astype(int)
        before = np.minimum.reduce([margin, first, position])
        after = np.minimum.reduce([margin, source_size - last, image_size - position - box_size])
        (left, top), (right, bottom) = first - before, last + after
        patch = source[top:bottom, left:right]
        (left, top), (right, bottom) = position - before, position + box_size + after
        region = image[top:bottom, left:right]
        weight = _draw_between(self.weights)
        region[:] = cv2.addWeighted(region, weight, patch, 1 - weight, 0)
        visible = np.concatenate((box[:2].clip(first), box[2:].clip(max=last)))
        return visible + np.tile(position - first, 2)


def _draw_between(limits: Sequence[float]) -> float:
    """Draw a number from a range, uniformly."""
    lower, upper = limits
    return np.random.uniform(lower, upper)
