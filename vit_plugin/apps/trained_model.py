"""A trained model: a checkpoint, its config, its pixels and its classes."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mmcv
import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import VISUALIZERS
from mmengine.visualization import Visualizer
from torch import Tensor, nn

from vit_plugin.config import of_framework
from vit_plugin.config.scope import in_scope
from vit_plugin.errors import ConfigError
from vit_plugin.files.images import read_image
from vit_plugin.models.classifier import Classifier
from vit_plugin.models.loading import find_backbone
from vit_plugin.passes import optimize
from vit_plugin.visualization.pictures import PreparedImage
from vit_plugin.weights.closed import closed

from .images import ConfigPixels, TimmPixels
from .predictions import Prediction

# By a config's default_scope: the task, and what draws its predictions.
TASKS = dict(mmpretrain=('classification', 'UniversalVisualizer'), mmdet=('detection', 'DetLocalVisualizer'),
             mmseg=('segmentation', 'SegLocalVisualizer'))


class TrainedModel:
    """A model in eval mode that is asked about images. Make it by :func:`vit_plugin.apps.load.load`.

    Args:
        model: a classifier, detector or segmentor, or a :class:`~vit_plugin.models.classifier.Classifier` of features.
        cfg: its config. That of a model without one says its ``default_scope`` alone.
        meta: what is known of the data, such as the names of the ``classes``.
        pixels: an image -> a sample of the model's input. Default: the steps of the config's test.
        stranger: where the config comes from, if it is that of a checkpoint: see :mod:`vit_plugin.weights.closed`.

    Attributes:
        classes: the names of the classes, as far as they are known.
        crop_pct: for a model of timm, the part of an image's shorter side that it sees; None for a config.
        task: ``'classification'``, ``'detection'`` or ``'segmentation'``.
    """

    def __init__(self, model: nn.Module, cfg: Config, meta: Mapping[str, Any],
                 pixels: Callable[..., dict[str, Any]] | None = None, stranger: str | None = None) -> None:
        self.stranger = stranger
        self.model, self.cfg, self.meta = model.eval(), cfg, dict(meta)
        self.classes = list(self.meta.get('classes') or ())
        self.task, self._visualizer = of_framework(TASKS, cfg)
        self._pixels = pixels
        self._size = min(find_backbone(model)[1].img_size) if isinstance(pixels, TimmPixels) else None
        self.crop_pct = pixels.crop_pct if isinstance(pixels, TimmPixels) else None

    def sample(self, image: str | Path | np.ndarray, index: int = 0) -> dict[str, Any]:
        """An image as the model's test has it, before it is normalised.

        Args:
            image: a file, or pixels (H, W, 3) in BGR as OpenCV reads them.
            index: its number in the framework's data samples.

        Raises:
            ConfigError: if the file cannot be read, or if the config has no ``test_dataloader``.
        """
        if self._pixels is None:
            with in_scope(self.cfg.default_scope):  # another thread may have built it meanwhile, which costs nothing
                self._pixels = self._pixels or ConfigPixels(self.cfg, self.stranger)
        return self._pixels(image, index)

    def prepare(self, image: str | Path | np.ndarray, size: int | None = None) -> PreparedImage:
        """An image for a picture of what the model sees.

        Args:
            image: see :meth:`sample`.
            size: the shorter side in pixels of the complete image, up to rounding to complete patches. Default: the
                steps of the config's test, or the ``img_size`` of the arch.

        Raises:
            ConfigError: see :meth:`sample`.
        """
        size = size or self._size
        if size is None:
            return PreparedImage.from_batch(self.model, pseudo_collate([self.sample(image)]))
        pixels, stem = read_image(image), find_backbone(self.model)[1].patch_embed
        scale = size / min(pixels.shape[:2])
        height, width = (max(round(side * scale / stem.stride), 1) * stem.stride for side in pixels.shape[:2])
        pixels = mmcv.imresize(pixels, (width, height), interpolation='bicubic', backend='pillow')
        if stem.in_channels == 1:
            pixels = mmcv.bgr2gray(pixels, keepdim=True)
        inputs = torch.from_numpy(pixels).permute(2, 0, 1).contiguous()
        return PreparedImage.from_batch(self.model, dict(inputs=[inputs], data_samples=None))

    @torch.no_grad()
    def __call__(self, image: str | Path | np.ndarray, index: int = 0) -> Prediction:
        """What the model finds in an image, see :meth:`sample`.

        Raises:
            ConfigError: if the image cannot be read, or if the model has no classes to predict.
        """
        if isinstance(self.model, Classifier):
            raise ConfigError('There are no classes to predict, since these weights have no head with known names of '
                              'classes; give --config with the config of a classifier.')
        batch = pseudo_collate([self.sample(image, index)])
        with closed(self.stranger):
            found = self.model.test_step(batch)[0]
        return Prediction.of(found.cpu(), self.classes)

    def features(self, samples: Sequence[dict[str, Any]]) -> np.ndarray:
        """What the head of a classifier gets of images, (N, C) in float32, from samples of :meth:`sample`.

        Raises:
            ConfigError: if this is no classifier, or see :func:`vectors_of`.
        """
        if self.task != 'classification':
            raise ConfigError(f'A model of {self.task} has no single vector for an image, as a classifier has; '
                              'give the checkpoint of one, or --arch.')
        with closed(self.stranger):
            return vectors_of(self.model, self.model.data_preprocessor(pseudo_collate(samples), False)['inputs'])

    def visualizer(self) -> Visualizer:
        """What draws the predictions: the config's, or the framework's."""
        with in_scope(self.cfg.default_scope), closed(self.stranger):
            cfg = dict(self.cfg.get('visualizer') or dict(type=self._visualizer), name='infer', vis_backends=None)
            visualizer = VISUALIZERS.build(cfg)
        visualizer.dataset_meta = self.meta
        return visualizer

    def optimized(self) -> 'TrainedModel':
        """This model, with the passes for its device unless the config has ``optimize=False``."""
        if self.cfg.get('optimize', True):
            self.model = optimize(self.model)
        return self


@torch.no_grad()
def vectors_of(model: nn.Module, inputs: Tensor) -> np.ndarray:
    """What the head of a classifier in eval mode gets of normalised images (N, C, H, W): (N, C') in float32.

    Raises:
        ConfigError: if the head gets tokens or maps.
    """
    features = model.forward_features(inputs) if isinstance(model, Classifier) else model.extract_feat(inputs)[-1]
    if features.ndim != 2:
        raise ConfigError(f'The head gets features of shape {tuple(features.shape)}, and one vector for an image is '
                          "wanted: pool them with the neck TokenPooling, or choose the out_type 'cls_token' or "
                          "'avg_featmap'.")
    return features.float().cpu().numpy()
