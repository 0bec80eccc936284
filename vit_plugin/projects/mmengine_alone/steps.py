"""Replacements of mmcv's and MMPretrain's transforms without randomness, and their base classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from mmengine import fileio
from mmengine.structures import BaseDataElement

from anyfolder.pixels.images import decode
from vit_plugin.arguments.fields import Backend, PositiveInt, Size
from vit_plugin.files.resizing import center_crop, edge_size, resize_image

Library = Literal['cv2', 'pillow']
META_KEYS = ('sample_idx', 'img_path', 'ori_shape', 'img_shape')


def as_pair(size: int | Sequence[int]) -> tuple[int, ...]:
    """Expand one number to a pair.

    Fields of type ``Size`` become pairs in ``__post_init__``. Later calls change nothing, and are
    there for the type checker.
    """
    return (size, size) if isinstance(size, int) else tuple(size)


class BaseTransform:
    """A step of a pipeline, with the interface of mmcv's ``BaseTransform``."""

    def __call__(self, results: dict) -> dict | None:
        return self.transform(results)

    def transform(self, results: dict) -> dict | None:
        """Return the entries of a sample after this step, or None to skip the sample."""
        raise NotImplementedError


class PixelTransform(BaseTransform):
    """A transform of the pixels alone."""

    def transform(self, results: dict) -> dict | None:
        """Change the entry ``img``, pixels (H, W, C), and with it ``img_shape``."""
        image = self.change(results['img'])
        return dict(results, img=image, img_shape=image.shape[:2])

    def change(self, image: np.ndarray) -> np.ndarray:
        """Return the new image."""
        raise NotImplementedError


@dataclass
class LoadImageFromFile(BaseTransform):
    """mmcv's ``LoadImageFromFile``, with this package's image reader.

    Attributes:
        to_float32: whether to return float32.
        color_type: the channels that are decoded, see :func:`~anyfolder.pixels.images.decode`.
        imdecode_backend: accepted only as mmcv's default; the reader is always this package's.
        ignore_empty: not used here; the subclass :class:`~vit_plugin.data.images.LoadImage` skips
            unreadable files by it.
        backend_args: arguments of MMEngine's file backend.
    """

    to_float32: bool = False
    color_type: str = 'color'
    imdecode_backend: Literal['cv2'] = 'cv2'
    ignore_empty: bool = False
    backend_args: Backend = None

    def transform(self, results: dict) -> dict | None:
        image = decode(fileio.get(results['img_path'], self.backend_args), self.color_type)
        if self.to_float32:
            image = image.astype(np.float32)
        size = image.shape[:2]
        return dict(results, img=image, img_shape=size, ori_shape=size)


@dataclass
class WithTargetSize(PixelTransform):
    """A transform with a target size.

    Attributes:
        scale: the two sides, or one number for both.
    """

    scale: Size

    def __post_init__(self) -> None:
        self.scale = as_pair(self.scale)


@dataclass
class Resize(WithTargetSize):
    """Resize to a size.

    Attributes:
        scale: width and height, or one number for both.
        backend, interpolation: see :func:`~vit_plugin.files.resizing.resize_image`.
        keep_ratio: accepted only as False, which configs may state.
    """

    backend: Library = 'cv2'
    interpolation: str = 'bilinear'
    keep_ratio: Literal[False] = False

    def change(self, image: np.ndarray) -> np.ndarray:
        return resize_image(image, as_pair(self.scale), self.interpolation, self.backend)


@dataclass
class ResizeEdge(PixelTransform):
    """Resize one edge to a length, and keep the aspect ratio.

    Attributes:
        scale: the length.
        edge: the edge to resize.
        backend, interpolation: see :class:`Resize`.
    """

    scale: PositiveInt
    edge: Literal['short', 'long', 'width', 'height'] = 'short'
    backend: Library = 'cv2'
    interpolation: str = 'bilinear'

    def change(self, image: np.ndarray) -> np.ndarray:
        width, height = image.shape[1::-1]
        size = edge_size(width, height, self.edge, self.scale)
        return resize_image(image, size, self.interpolation, self.backend)


@dataclass
class CenterCrop(PixelTransform):
    """Crop the middle of an image, or keep all of it if it is smaller.

    Attributes:
        crop_size: width and height, or one number for both.
        auto_pad: accepted only as False, which configs may state.
    """

    crop_size: Size
    auto_pad: Literal[False] = False

    def __post_init__(self) -> None:
        self.crop_size = as_pair(self.crop_size)

    def change(self, image: np.ndarray) -> np.ndarray:
        return center_crop(image, as_pair(self.crop_size))


class PackInputs(BaseTransform):
    """The last transform: pack the image as a tensor (C, H, W), with its metadata.

    Labels remain arrays until they are on the device: each tensor that is sent between processes
    takes a file descriptor.
    """

    def transform(self, results: dict) -> dict | None:
        sample = BaseDataElement(
            metainfo={key: results[key] for key in META_KEYS if key in results}
        )
        if 'gt_label' in results:
            sample.gt_label = np.atleast_1d(results['gt_label'])
        image = np.ascontiguousarray(np.atleast_3d(results['img']).transpose(2, 0, 1))
        return dict(inputs=torch.from_numpy(image), data_samples=sample)
