"""The test transforms, from an image to a sample of a model's input."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from mmengine.config import Config
from mmengine.dataset import Compose
from PIL import Image
from timm.data import create_transform
from timm.layers import to_2tuple

from anyfolder.pixels.bands import check_bands, check_photograph
from anyfolder.pixels.images import read_image
from anyfolder.pixels.volume_slices import file_and_number
from vit_plugin.config import with_pipeline
from vit_plugin.errors import ConfigError

from .unusual_sizes import print_once

# Steps that read a file as read_image does, if their options have one of these values. Then the
# pixels can be read before the pipeline, which begins after this step.
LOADERS = ('LoadImageFromFile', 'LoadImage', 'LoadCachedImage')
PLAIN_ARGUMENTS: dict[str, tuple] = dict(
    color_type=('color', 'grayscale'),
    imdecode_backend=('cv2',),
    to_float32=(False, True),
    ignore_empty=(False, True),  # matters only in a data set
    window=(None,),
    backend_args=(None,),
    file_client_args=(None,),
)


class PipelineTransform:
    """A config's test pipeline without annotations, from pixels or a file to a model's sample.

    If a classifier's pipeline keeps the size of images, they are resized to the ``img_size`` of the
    backbone, and stderr says so once.

    Args:
        cfg: the config.

    Attributes:
        custom_reader: a step that reads a file in another way than :func:`read_image`, or None.
        bands, in_float: number of channels of the pixels, and whether they become float32.
        from_pixels: the steps after the image is read.
        transforms: the list of these steps.
        size: height and width that images are resized to; None if the pipeline decides.

    Raises:
        ConfigError: if the config has no ``test_dataloader``, or a pipeline without steps.
    """

    def __init__(self, cfg: Config) -> None:
        if not cfg.get('test_dataloader'):
            raise ConfigError(
                f'The config {cfg.filename or "of the checkpoint"!r} has no test_dataloader; add '
                'one, whose pipeline the images go through.'
            )
        pipeline = with_pipeline(cfg.test_dataloader.dataset).pipeline
        steps = [step for step in pipeline if 'Annotation' not in _type_name(step)]
        if not steps:
            raise ConfigError('test_dataloader: its pipeline has no steps; give those of a test.')
        backbone: Any = cfg.model.get('backbone') or {}  # a model of MMPretrain may have none
        has_reader = 'LoadImage' in _type_name(steps[0])  # a data set in memory has no reader
        reader, transforms = (steps[0], steps[1:]) if has_reader else ({}, steps)
        # A stem, or a backbone of timm as a whole, states the channels of images.
        stem = backbone.get('patch_embed') or {}
        takes_gray = 1 in (stem.get('in_channels'), backbone.get('in_channels'))
        self.gray = takes_gray or reader.get('color_type') == 'grayscale'
        self.bands = reader.get('bands') or 3
        self.in_float = bool(reader.get('to_float32'))
        is_custom = has_reader and not is_plain_loader(reader)
        self.reads_photographs = has_reader and not (is_custom or reader.get('bands'))
        self.custom_reader = Compose([reader]) if is_custom else None
        self.from_pixels = Compose(transforms)
        self.transforms = self.from_pixels.transforms
        self.size: Sequence[int] | None = None
        if not is_custom and cfg.get('default_scope') == 'mmpretrain' and 'img_size' in backbone:
            size = to_2tuple(backbone.img_size)
            if self._keeps_sizes(size):
                backend = 'cv2' if self.in_float or self.bands != 3 else 'pillow'
                resize = dict(type='Resize', scale=size[::-1], backend=backend)
                # Inserted into the list of from_pixels, so both change.
                self.size, self.transforms[:0] = size, Compose([resize]).transforms

    def _keeps_sizes(self, size: Sequence[int]) -> bool:
        """True if an image smaller than ``size`` and a larger one keep their sizes."""
        smaller = tuple(side // 2 + 1 for side in size)
        larger = tuple(2 * side + 1 for side in size)
        return all(
            self(np.zeros((*shape, self.bands), np.uint8))['inputs'].shape[1:] == shape
            for shape in (smaller, larger)
        )

    def __call__(self, image: str | Path | np.ndarray, index: int = 0) -> dict[str, Any]:
        # Read the file even if custom_reader reads it again: this error says what is wrong with it.
        pixels = read_image(image)
        path = '' if isinstance(image, np.ndarray) else str(image)
        if path and self.custom_reader:
            file, number = file_and_number(path)
            loaded = self.custom_reader(dict(img_path=file, slice=number, img_id=index))
        else:
            check_bands(pixels, self.bands, path)
            if self.reads_photographs:
                check_photograph(pixels, path)
            if self.size not in (None, pixels.shape[:2]):
                print_once(
                    f'Images are resized to {self.size[1]} x {self.size[0]} pixels, on which the '
                    'model was trained: the pipeline of its test leaves their size.'
                )
            gray = self.gray and self.bands == 3
            pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY) if gray else pixels
            pixels = pixels.astype(np.float32) if self.in_float else pixels
            shape = pixels.shape[:2]
            loaded = dict(img=pixels, img_path=path, img_id=index, img_shape=shape, ori_shape=shape)
        return self.from_pixels(loaded)


def is_plain_loader(step: Mapping[str, Any]) -> bool:
    """True if a step reads a file as :func:`read_image` does: as 8-bit BGR or gray, or as bands."""
    return _type_name(step).rpartition('.')[2] in LOADERS and all(
        name in ('type', 'bands') or value in PLAIN_ARGUMENTS.get(name, ())
        for name, value in step.items()
    )


def _type_name(step: Mapping[str, Any]) -> str:
    """The name of a step's type, which is a class in a config with imports."""
    step_type = step['type']
    return step_type if isinstance(step_type, str) else step_type.__name__


class TimmTransform:
    """timm's test transform, from pixels or a file to a sample of the model's input.

    Args:
        data_config: ``input_size`` (C, H, W), ``interpolation``, ``crop_pct`` and ``crop_mode``.
    """

    # Attributes of a PipelineTransform, constant here.
    custom_reader, bands, in_float = None, 3, False

    def __init__(self, data_config: Mapping[str, Any]) -> None:
        self.gray = data_config['input_size'][0] == 1
        self.transform = create_transform(**data_config, normalize=False)
        self.transforms = self.transform.transforms

    def __call__(self, image: str | Path | np.ndarray, index: int = 0) -> dict[str, Any]:
        array = read_image(image)
        name = '' if isinstance(image, np.ndarray) else str(image)
        check_bands(array, 3, name)
        check_photograph(array, name)
        pixels = Image.fromarray(np.ascontiguousarray(array[..., ::-1]))
        inputs = self.transform(pixels.convert('L') if self.gray else pixels)
        return dict(inputs=inputs.flip(0))  # BGR, as a pipeline yields it
