"""A trained model with its config, preprocessing and classes, to call with images."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import torch
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from torch import Tensor, nn

from anyfolder.pixels.images import read_image
from anyfolder.pixels.volume_slices import file_and_number
from vit_plugin.config.scope import in_scope
from vit_plugin.errors import ConfigError
from vit_plugin.importable import make_importable
from vit_plugin.models.classifier import Classifier
from vit_plugin.models.loading import find_backbone
from vit_plugin.passes import optimize
from vit_plugin.task import tasks

from . import MIN_SLICE_SIDE
from .answered_task import find_task
from .image_transforms import PipelineTransform, TimmTransform
from .inputs import Frame
from .predictions import Prediction
from .prepared_image import PreparedImage, as_picture, find_visible_part, resize_to_patches
from .unusual_sizes import announce_large_image, print_once

ImageTransform = PipelineTransform | TimmTransform

WHOLE_SHARE = 0.97  # a sample that shows this share of both sides counts as the complete photograph


class _ImportableFirst:
    """Calls :func:`make_importable` when it is unpickled, so before the model after it."""

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return make_importable, ()


class TrainedModel:
    """A model in eval mode, to call with images. Made by :func:`vit_plugin.inference.load.load`.

    Args:
        model: a classifier, detector or segmentor, or a
            :class:`~vit_plugin.models.classifier.Classifier` of features.
        cfg: its config; only a ``default_scope`` for a model without one.
        meta: metadata of the data set, such as the names of the ``classes``.
        pixels: an image -> a sample of the model's input. Default: the config's test pipeline.

    Attributes:
        classes: the class names, if they are known.
        has_pixels: whether the preprocessing is known, so that :attr:`pixels` can be built.
        task: the task of the model, see :func:`~vit_plugin.inference.answered_task.find_task`.
    """

    def __init__(
        self,
        model: nn.Module,
        cfg: Config,
        meta: Mapping[str, Any],
        pixels: ImageTransform | None = None,
    ) -> None:
        self.model, self.cfg, self.meta = model.eval(), cfg, dict(meta)
        self.classes = list(self.meta.get('classes') or ())
        self.task = find_task(model, cfg)
        self._pixels = pixels
        # The default size of `prepare` for weights without a config.
        self._size = (
            min(find_backbone(model)[1].img_size) if isinstance(pixels, TimmTransform) else None
        )
        self.has_pixels = pixels is not None or bool(cfg.get('test_dataloader'))

    @property
    def prediction_class(self) -> type[Prediction]:
        """The class of its predictions."""
        return resolve_name(tasks()[self.task].prediction)

    def __getstate__(self) -> list[Any]:
        return [_ImportableFirst(), vars(self)]  # unpickled in this order

    def __setstate__(self, state: Sequence[Any]) -> None:
        vars(self).update(state[1])

    def sample(self, image: str | Path | np.ndarray, index: int = 0) -> dict[str, Any]:
        """An image as the model's test pipeline returns it, before it is normalized.

        Args:
            image: a file, or pixels (H, W, 3) in BGR as OpenCV reads them, or values of bands.
            index: its number in the framework's data samples.

        Raises:
            ConfigError: if the file cannot be read, or if the config has no ``test_dataloader``.
        """
        return self.pixels(image, index)

    @property
    def pixels(self) -> ImageTransform:
        """An image -> a sample, see :meth:`sample`. Thread-safe: the first thread builds it."""
        if self._pixels is None:
            with in_scope(self.cfg.default_scope):
                self._pixels = self._pixels or PipelineTransform(self.cfg)
        return self._pixels

    def sample_argument(self, frame: Frame) -> str | np.ndarray:
        """The argument of :meth:`sample` for a frame.

        It is the pixels, or the name of the file if the config has a reader of its own. Only files
        go through that reader, and stderr says so once.
        """
        reader = self._reader
        if reader and frame.source.reader == 'image':
            return frame.source.name
        if reader:
            print_once(
                f'{type(reader.transforms[0]).__name__} of the config reads only files, so its '
                'options, such as a window, do not apply to URLs, videos and webcams; download the '
                'images, and give the files.',
                frame.source.name,
            )
        return frame.image

    def read(self, image: str | Path | np.ndarray) -> np.ndarray:
        """The pixels (H, W, C) of an image. A file is read by the config's own reader."""
        if self._reader and not isinstance(image, np.ndarray):
            file, number = file_and_number(str(image))
            return self._reader(dict(img_path=file, slice=number))['img']
        return read_image(image)

    @property
    def _reader(self) -> Any:
        """The config's own reader of files, or None."""
        return self.pixels.custom_reader if self.has_pixels else None

    @cached_property
    def training_size(self) -> Sequence[int] | None:
        """Height and width in training, to tell whether an image is unusually large.

        It is the size of an image of the backbone's ``img_size`` after the test pipeline, or that
        ``img_size`` itself if the pipeline is unknown or has its own reader. None if the backbone
        has none.
        """
        size = getattr(getattr(self.model, 'backbone', None), 'img_size', None)
        if not size or not self.has_pixels or self.pixels.custom_reader:
            return size
        blank = np.zeros((*size, self.pixels.bands), np.uint8)
        return self.sample(blank)['inputs'].shape[1:]

    @property
    def slices(self) -> int | None:
        """The side of the slices that a detector was trained for, in pixels, or None.

        Raises:
            ConfigError: if it is not a number of pixels, or too small.
        """
        side = (self.cfg.get('test_cfg') or {}).get('side')
        if side is not None and not (isinstance(side, int) and side >= MIN_SLICE_SIDE):
            raise ConfigError(
                f'test_cfg.side={side!r}: the side of a slice is a number of pixels from '
                f'{MIN_SLICE_SIDE} on; change it, for example by --cfg-options.'
            )
        return side

    def prepare(self, image: str | Path | np.ndarray, size: int | None = None) -> PreparedImage:
        """Prepare an image for pictures of what the model sees.

        Args:
            image: see :meth:`sample`.
            size: the shorter side in pixels of the complete image, up to rounding to complete
                patches. Default: by the config's test pipeline, at its scale but without a crop, or
                the ``img_size`` of the arch.

        Raises:
            ConfigError: see :meth:`sample`.
        """
        size, pixels = size or self._size, read_image(image)
        if size is None:
            prepared = PreparedImage.from_batch(self.model, self._batch([self.sample(image)]))
            spans = find_visible_part(self.sample, pixels.shape, prepared.image.shape)
            if spans is None:
                return prepared
            height, width = (span.stop - span.start for span in spans)
            if min(height / pixels.shape[0], width / pixels.shape[1]) > WHOLE_SHARE:
                return prepared._replace(photograph=as_picture(pixels))
            # The complete photograph at the scale of the part that the pipeline crops.
            size = round(min(pixels.shape[:2]) * prepared.image.shape[0] / height)
        values = self.read(image) if self._reader else pixels  # such as of a window
        inputs = resize_to_patches(values, size, find_backbone(self.model)[1].patch_embed)
        prepared = PreparedImage.from_batch(self.model, dict(inputs=[inputs], data_samples=None))
        return prepared._replace(photograph=as_picture(pixels))

    def __call__(self, image: str | Path | np.ndarray) -> Prediction:
        """The prediction for an image, see :meth:`predict`."""
        return self.predict([image])[0]

    @torch.no_grad()
    def predict(
        self, images: Sequence[str | Path | np.ndarray], names: Sequence[str] = ()
    ) -> list[Prediction]:
        """Predictions for images, see :meth:`sample`. ``names`` are for messages.

        Images whose samples have the same size are batched. Others are not, since padding would
        change their predictions.

        Raises:
            ConfigError: if an image cannot be read, or if the model has no classes to predict.
        """
        if isinstance(self.model, Classifier):
            raise ConfigError(
                'There are no classes to predict, since these weights have no head with known '
                'names of classes; give --config with the config of a classifier.'
            )
        samples = [self.sample(image, i) for i, image in enumerate(images)]
        for sample, name in zip(samples, names, strict=False):
            if 'data_samples' in sample:  # timm's transform returns only pixels
                sample['data_samples'].set_metainfo(dict(img_path=name))
        sizes = [self._size_of(sample) for sample in samples]
        predictions: dict[int, Prediction] = {}
        for _, group in groupby(
            sorted(range(len(samples)), key=sizes.__getitem__), key=sizes.__getitem__
        ):
            indices = list(group)
            results = self.model.test_step(self._batch([samples[i] for i in indices]))
            predictions |= {
                i: Prediction.of(result.cpu(), self.classes, self.model)
                for i, result in zip(indices, results, strict=True)
            }
        return [predictions[i] for i in range(len(samples))]

    def _batch(self, samples: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """Collate samples. If one is so large that the model takes long, stderr says so before."""
        for sample in samples:
            file = getattr(sample.get('data_samples'), 'img_path', '')
            announce_large_image(sample['inputs'].shape[1:], self.training_size, file)
        return pseudo_collate(samples)

    def _size_of(self, sample: dict[str, Any]) -> tuple[int, ...]:
        """The shape that all samples of a batch share.

        It includes the size of the original image if the model predicts its pixels.
        """
        original = sample['data_samples'].ori_shape if self.prediction_class.of_pixels else ()
        return (*sample['inputs'].shape, *original)

    def features(self, samples: Sequence[dict[str, Any]]) -> np.ndarray:
        """Features before a classifier's head, (N, C) in float32, from samples of :meth:`sample`.

        Raises:
            ConfigError: if this is not a classifier, and see :func:`compute_vectors`.
        """
        if self.task != 'classification':
            raise ConfigError(
                f'A model of {self.task} has no single vector for an image, as a classifier has; '
                'give the checkpoint of one, or --arch.'
            )
        return compute_vectors(
            self.model, self.model.data_preprocessor(self._batch(samples), training=False)['inputs']
        )

    def optimized(self) -> 'TrainedModel':
        """Apply the passes of :mod:`vit_plugin.passes`, unless the config has ``optimize=False``.

        They make the model faster on its device. Returns this object.
        """
        if self.cfg.get('optimize', True):
            self.model = optimize(self.model, frozen=True)
        return self


@torch.no_grad()
def compute_vectors(model: nn.Module, inputs: Tensor) -> np.ndarray:
    """Features before a classifier's head, from normalized images (N, C, H, W): (N, C') in float32.

    Raises:
        ConfigError: if the features are tokens or maps.
    """
    features = (
        model.forward_features(inputs)
        if isinstance(model, Classifier)
        else model.extract_feat(inputs)[-1]
    )
    if features.ndim != 2:
        raise ConfigError(
            f'The features have the shape {tuple(features.shape)}, and one vector for each image '
            'is needed: pool them with the neck TokenPooling, or choose model.backbone.out_type='
            "'cls_token' or 'avg_featmap'."
        )
    return features.float().cpu().numpy()
