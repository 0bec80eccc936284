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
        num_objects: the most objects.
        min_area: the least area of an object in pixels.
        margins: least and largest margin on each side, as a share of the object's width or height.
        weights: range of the weight of the original pixels.
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
        (other,) = results['mix_results']
        image, old = results['img'].copy(), results['gt_bboxes']
        factor = min(np.divide(image.shape[:2], other['img'].shape[:2]))
        boxes = other['gt_bboxes'].tensor.numpy() * factor
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        chosen = np.flatnonzero((areas >= self.min_area) & ~other['gt_ignore_flags'])
        chosen = np.random.permutation(chosen)[: self.num_objects]
        if not len(chosen):
            return results
        size = [max(round(side * factor), 1) for side in other['img'].shape[1::-1]]
        source = resize_image(other['img'], size, 'bilinear')
        new = np.stack([self._blend(image, source, box) for box in boxes[chosen]])
        more = {
            name: np.concatenate((results[name], other[name][chosen]))
            for name in ('gt_bboxes_labels', 'gt_ignore_flags')
        }
        both = old.cat([old, type(old)(torch.from_numpy(new).to(old.dtype))])
        return dict(results, img=image, gt_bboxes=both, **more)

    def _blend(self, image: np.ndarray, source: np.ndarray, box: np.ndarray) -> np.ndarray:
        """Blend what is in a box of the source into the image. Returns the box (4) there."""
        ends, limits = np.array(image.shape[1::-1]), np.array(source.shape[1::-1])
        first = np.floor(box[:2]).astype(int).clip(0, limits - 1)
        last = np.ceil(box[2:]).astype(int).clip(first + 1, limits)
        place = np.random.randint(0, ends - (last - first) + 1)
        margin = (_between(self.margins) * (last - first)).astype(int)
        before = np.minimum.reduce([margin, first, place])
        after = np.minimum.reduce([margin, limits - last, ends - place - (last - first)])
        (left, top), (right, bottom) = place - before, place + (last - first) + after
        there = image[top:bottom, left:right]
        (left, top), (right, bottom) = first - before, last + after
        weight = _between(self.weights)
        there[:] = cv2.addWeighted(there, weight, source[top:bottom, left:right], 1 - weight, 0)
        moved = np.concatenate((box[:2].clip(first), box[2:].clip(max=last)))
        return moved + np.tile(place - first, 2)


def _between(ends: Sequence[float]) -> float:
    least, largest = ends
    return np.random.uniform(least, largest)
