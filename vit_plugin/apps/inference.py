"""A trained model and images for it, outside of a run."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import Compose, pseudo_collate
from mmengine.logging import print_log
from mmengine.model import ImgDataPreprocessor, revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from vit_plugin.data.folders import IMAGE_SUFFIXES, is_image
from vit_plugin.engine.checks import check_classes, check_head
from vit_plugin.engine.checks.data import dataset_class
from vit_plugin.engine.explain import first_line
from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.models.loading import find_backbone, load_trained
from vit_plugin.models.protocol import Backbone
from vit_plugin.visualization.pictures import PreparedImage
from vit_plugin.weights.report import some
from vit_plugin.weights.sources import open_weights
from vit_plugin.zoo.pixels import data_config_of

FOREIGN = ('.npz', '.safetensors')  # files of weights alone


def image_files(paths: Sequence[str]) -> list[str]:
    """The image files among these paths, and in the folders among them, in order of their names.

    Raises:
        ConfigError: if a path does not exist, or if a folder has no images.
    """
    files: list[str] = []
    for path in map(Path, paths):
        if path.is_dir():
            found = sorted(str(file) for file in path.iterdir() if is_image(file))
            if not found:
                raise ConfigError(f'There are no images in the folder {str(path)!r}, whose names end in '
                                  f'{", ".join(IMAGE_SUFFIXES)}.')
            files += found
        elif path.is_file():
            files.append(str(path))
        else:
            raise ConfigError(f'There is no image {str(path)!r}.')
    return files


def read_image(path: str) -> np.ndarray:
    """The pixels (H, W, 3) of an image file, in BGR.

    Raises:
        ConfigError: if it cannot be read.
    """
    try:
        image = mmcv.imread(path)
    except Exception as error:  # whatever a decoder trips over
        raise ConfigError(f'The image {path!r} cannot be read ({first_line(error)}).') from error
    if image is None:
        raise ConfigError(f'The image {path!r} cannot be read.')
    return image


def load_model(cfg: Config, checkpoint: str, device: str,
               only_backbone: bool = False) -> tuple[nn.Module, dict[str, Any]]:
    """The model of a config with a checkpoint's weights, in eval mode, and what is known of the classes.

    Args:
        cfg: the config.
        checkpoint: the checkpoint of the whole model, or weights of any format of
            :data:`~vit_plugin.weights.formats.FORMATS` at an address or in a file that ends in .npz or .safetensors.
        device: the device for the model.
        only_backbone: whether such weights of another format may leave the neck and head at their initialisation.

    Raises:
        ConfigError: if the checkpoint is of another model, or lacks weights that count, or if the config has no
            ``test_dataloader``.
    """
    if not cfg.get('test_dataloader'):
        raise ConfigError(f'The config {cfg.filename!r} has no test_dataloader; add one, whose pipeline the images go '
                          'through.')
    init_default_scope(cfg.get('default_scope', 'mmpretrain'))
    cfg.model.setdefault('data_preprocessor', cfg.get('data_preprocessor'))
    model = revert_sync_batchnorm(MODELS.build(cfg.model))
    if not only_backbone:
        check_head(model)
    meta: dict[str, Any] = {}
    foreign = '://' in checkpoint or checkpoint.endswith(FOREIGN)
    if foreign and not dict(model.named_parameters()).keys() <= open_weights(checkpoint).keys():
        load_foreign(model, checkpoint, only_backbone)
    else:
        meta = load_trained(model, checkpoint)
        check_classes(model, meta, f'the checkpoint {checkpoint!r}')
    dataset = cfg.test_dataloader.dataset
    declared = {**getattr(dataset_class(dataset, cfg.default_scope), 'METAINFO', {}), **dataset.get('metainfo', {})}
    return model.to(device).eval(), {**declared, **meta}


def load_foreign(model: nn.Module, checkpoint: str, only_backbone: bool) -> None:
    """Load weights of another format, see :func:`load_model`."""
    report = load_weights(model, checkpoint)
    print_log(f'Loaded {checkpoint}\n{report}', 'current')
    counts = find_backbone(model, Backbone)[1].state_dict() if only_backbone else report.untrained
    lost = {name: why for name, why in report.untrained.items() if name in counts}
    if lost:
        raise ConfigError(f'The checkpoint {checkpoint!r} is not of the whole model: it has no values for '
                          f'{some(lost)} ({next(iter(lost.values()))}); give the checkpoint of its training.')


class Pretrained(nn.Module):
    """A backbone without a config, with weights of any format.

    Args:
        arch: the arch of the backbone. It or the checkpoint says what the pixels must be, see
            :func:`~vit_plugin.zoo.pixels.data_config_of`.
        checkpoint: see :func:`~vit_plugin.models.load_weights`.
        options: further arguments of :class:`~vit_plugin.models.VisionTransformer`.

    Raises:
        ConfigError: if the checkpoint does not fit the arch.
    """

    def __init__(self, arch: str, checkpoint: str, **options: Any) -> None:
        super().__init__()
        self.backbone, pixels = VisionTransformer(arch, **options), data_config_of(arch, checkpoint)
        mean, std = pixels['mean'], pixels['std']
        grey = self.backbone.patch_embed.in_channels == 1
        mean, std = ([255 * value for value in (values[:1] if grey else values)] for values in (mean, std))
        self.data_preprocessor = ImgDataPreprocessor(mean, std, bgr_to_rgb=not grey)
        load_weights(self.backbone, checkpoint)
        self.eval()


def build_pipeline(cfg: Config) -> Compose:
    """The steps of a test from a file to the model's input, without its annotations."""
    steps = [step for step in cfg.test_dataloader.dataset.pipeline if 'Annotation' not in step['type']]
    if 'LoadImage' not in steps[0]['type']:  # of a data set in memory
        grey = cfg.model.backbone.get('patch_embed', {}).get('in_channels', 3) == 1
        steps.insert(0, dict(type='LoadImageFromFile', color_type='grayscale' if grey else 'color'))
    return Compose(steps)


def prepare_in_pipeline(model: nn.Module, pipeline: Compose, path: str) -> PreparedImage:
    """An image after the steps of a test, see :func:`build_pipeline`.

    Raises:
        ConfigError: if it cannot be read.
    """
    read_image(path)
    return PreparedImage.from_batch(model, pseudo_collate([pipeline(dict(img_path=path, img_id=0))]))


def prepare_at_size(model: nn.Module, path: str, size: int) -> PreparedImage:
    """A whole image whose shorter side has this number of pixels, up to rounding to whole patches.

    Raises:
        ConfigError: if it cannot be read.
    """
    image, stem = read_image(path), find_backbone(model)[1].patch_embed
    scale = size / min(image.shape[:2])
    height, width = (max(round(side * scale / stem.stride), 1) * stem.stride for side in image.shape[:2])
    image = mmcv.imresize(image, (width, height), interpolation='bicubic', backend='pillow')
    if stem.in_channels == 1:
        image = mmcv.bgr2gray(image, keepdim=True)
    pixels = torch.from_numpy(image).permute(2, 0, 1).contiguous()
    return PreparedImage.from_batch(model, dict(inputs=[pixels], data_samples=None))
