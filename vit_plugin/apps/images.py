"""From an image to what a model gets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mmcv
import numpy as np
from mmcv.transforms import LoadImageFromFile
from mmengine.config import Config
from mmengine.dataset import Compose
from PIL import Image
from timm.data import create_transform

from vit_plugin.config import with_pipeline
from vit_plugin.errors import ConfigError
from vit_plugin.files.images import read_image
from vit_plugin.weights.closed import REMEDY, closed


class ConfigPixels:
    """The steps of a config's test, without annotations, from pixels or a file to a sample of the model's input.

    Args:
        cfg: the config.
        stranger: where it comes from, if it is that of a checkpoint. Then the image is the only file that is opened.

    Raises:
        ConfigError: if the config has no ``test_dataloader``, or its first step is none that reads an image.
    """

    def __init__(self, cfg: Config, stranger: str | None = None) -> None:
        if not cfg.get('test_dataloader'):
            raise ConfigError(f'The config {cfg.filename or "of the checkpoint"!r} has no test_dataloader; add one, '
                              'whose pipeline the images go through.')
        pipeline = with_pipeline(cfg.test_dataloader.dataset).pipeline
        steps = [step for step in pipeline if 'Annotation' not in step['type']]
        self.grey = cfg.model.backbone.get('patch_embed', {}).get('in_channels', 3) == 1
        if 'LoadImage' not in steps[0]['type']:  # of a data set in memory
            steps.insert(0, dict(type='LoadImageFromFile', color_type='grayscale' if self.grey else 'color'))
        self.stranger = stranger
        with closed(stranger):
            self.load, self.from_pixels = Compose(steps[:1]), Compose(steps[1:])
        if stranger and not isinstance(self.load.transforms[0], LoadImageFromFile):
            raise ConfigError(f'The config in {stranger!r} reads images by {steps[0]["type"]!r}, which may read other '
                              f'files too; {REMEDY}.')

    def __call__(self, image: str | Path | np.ndarray, index: int = 0) -> dict[str, Any]:
        pixels = read_image(image)  # of a file too: it says in a sentence what is wrong with it
        if not isinstance(image, np.ndarray):
            loaded = self.load(dict(img_path=str(image), img_id=index))
        else:
            pixels = mmcv.bgr2gray(pixels) if self.grey else pixels
            shape = pixels.shape[:2]
            loaded = dict(img=pixels, img_path='', img_id=index, img_shape=shape, ori_shape=shape)
        with closed(self.stranger):
            return self.from_pixels(loaded)


class TimmPixels:
    """timm's transform of a test, from pixels or a file to a sample of the model's input.

    Args:
        data_config: ``input_size`` (C, H, W), ``interpolation``, ``crop_pct`` and ``crop_mode``.
    """

    def __init__(self, data_config: Mapping[str, Any]) -> None:
        self.grey, self.crop_pct = data_config['input_size'][0] == 1, data_config['crop_pct']
        self.transform = create_transform(**data_config, normalize=False)

    def __call__(self, image: str | Path | np.ndarray, index: int = 0) -> dict[str, Any]:
        pixels = Image.fromarray(np.ascontiguousarray(read_image(image)[..., ::-1]))
        inputs = self.transform(pixels.convert('L') if self.grey else pixels)
        return dict(inputs=inputs.flip(0))  # BGR, as a pipeline has it
