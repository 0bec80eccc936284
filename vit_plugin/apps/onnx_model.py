"""A file of ``vit-plugin export``, run by onnxruntime alone: without torch or a framework."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from pydantic import with_config
from typing_extensions import TypedDict

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import OPEN
from vit_plugin.errors import ConfigError, first_line, needed_by
from vit_plugin.files.bands import check_bands

from .pixel_steps import Placed, apply_steps
from .predictions import Prediction, names_of

KEY = 'vit_plugin'  # of the file's metadata


@with_config(OPEN)
class Facts(TypedDict):
    """The metadata that :func:`facts_of` writes."""

    classes: list[str]
    multi_label: bool
    rgb: bool
    steps: list[dict[str, Any]]


class OnnxModel:
    """A classifier, detector or segmentor in ONNX.

    Args:
        path: the file.

    Raises:
        ConfigError: if the file cannot be run, or does not say what its outputs are.
        MissingExtraError: if onnxruntime is not installed.
    """

    def __init__(self, path: str | Path) -> None:
        with needed_by('A file in ONNX'):
            import onnxruntime
        try:
            self.session = onnxruntime.InferenceSession(
                str(path), providers=['CPUExecutionProvider']
            )
        except Exception as error:  # of onnxruntime, which has a class for each
            raise ConfigError(
                f'{str(path)!r} cannot be run ({first_line(error)}); export it again.'
            ) from error
        meta = self.session.get_modelmeta().custom_metadata_map
        try:
            self.facts: dict[str, Any] = json.loads(meta.get(KEY, '{}'))
        except (ValueError, RecursionError):
            self.facts = {}
        if not fits(Facts, self.facts):
            raise ConfigError(
                f'{str(path)!r} does not say what its inputs and outputs are; write it with '
                'vit-plugin export of this version.'
            )
        self.classes: list[str] = self.facts['classes']
        self.inputs = [given.name for given in self.session.get_inputs()]
        _, self.channels, *size = self.session.get_inputs()[0].shape
        self.size = tuple(size)  # height and width, or the names of what is open
        names = {output.name for output in self.session.get_outputs()}
        # Else the framework's own code makes segments of them.
        self.answers = bool({'logits', 'boxes'} & names)

    def __call__(self, image: np.ndarray) -> Prediction:
        """The prediction for the pixels (H, W, 3) of an image, in BGR."""
        return self.predict([image])[0]

    def predict(self, images: Sequence[np.ndarray]) -> list[Prediction]:
        """The same of several images, in one run if they have one size there.

        Raises:
            ConfigError: if the outputs become segments outside of the file.
        """
        fitted = [self.fitted(image) for image in images]
        inputs = [
            (self.channels_of(placed.pixels), inner_size(image, placed))
            for image, placed in zip(images, fitted, strict=True)
        ]
        together = len({pixels.shape for pixels, _ in inputs}) == 1
        parts = [inputs] if together else [[one] for one in inputs]
        names = [output.name for output in self.session.get_outputs()]
        outputs: list[dict[str, np.ndarray]] = []
        for part in parts:
            stacked = map(np.stack, zip(*part, strict=True))
            # Sizes for detectors alone.
            arrays = self.session.run(None, dict(zip(self.inputs, stacked, strict=False)))
            outputs += [dict(zip(names, one, strict=True)) for one in zip(*arrays, strict=True)]
        return [self._found(*one) for one in zip(outputs, images, fitted, strict=True)]

    def fitted(self, image: np.ndarray) -> Placed:
        """An image (H, W, 3) in BGR, or of bands, after the steps of the pipeline.

        Raises:
            ConfigError: if it has another number of bands than the file takes.
        """
        if self.channels == 1 and image.shape[2] == 3:
            image = cv2.cvtColor(image, cv2.COLOR_BGR2GRAY)
        check_bands(image, self.channels)
        return apply_steps(self.facts['steps'], image)

    def channels_of(self, pixels: np.ndarray) -> np.ndarray:
        """Pixels (H, W, C) or (H, W) in the channels of the file, (C, H, W) in float32."""
        pixels = pixels.reshape(*pixels.shape[:2], self.channels)
        if self.facts['rgb']:
            pixels = pixels[..., ::-1]
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32)

    def _found(
        self, outputs: dict[str, np.ndarray], image: np.ndarray, placed: Placed
    ) -> Prediction:
        """The prediction in the outputs of one image."""
        scale, offset = placed.scale, placed.offset
        if 'boxes' in outputs:
            height, width = image.shape[:2]
            boxes = (outputs['boxes'] - np.tile(offset, 2)) / np.tile(scale, 2)
            there = outputs['scores'] > 0  # an image of a batch may have fewer than another
            boxes = boxes.clip(0, (width, height, width, height))[there]
            labels, scores = outputs['labels'][there], outputs['scores'][there]
            return Prediction(None, labels, names_of(labels, self.classes), scores, boxes)
        if 'logits' not in outputs:
            raise ConfigError(
                f'The outputs {", ".join(outputs)} become segments outside of the file, by the '
                "framework's own code; run the checkpoint."
            )
        logits = outputs['logits']
        if logits.ndim == 1:
            exps = np.exp(logits - logits.max())
            scores = 1 / (1 + np.exp(-logits)) if self.facts['multi_label'] else exps / exps.sum()
            order = np.argsort(-scores, kind='stable')
            return Prediction(None, order, names_of(order, self.classes), scores[order])
        height, width = inner_size(image, placed)
        labels = best_class(logits[:, :height, :width], image.shape[1::-1])
        found, counts = np.unique(labels, return_counts=True)
        order = np.argsort(-counts, kind='stable')
        return Prediction(
            None,
            found[order],
            names_of(found[order], self.classes),
            (counts[order] / counts.sum()),
            map=labels,
        )


def inner_size(image: np.ndarray, placed: Placed) -> np.ndarray:
    """Height and width of an image after the steps, without what it is padded with."""
    scaled = np.rint(image.shape[:2] * np.asarray(placed.scale)[::-1]).astype(np.int64)
    return np.minimum(scaled, placed.pixels.shape[:2])


def best_class(logits: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """The class (H, W) of the largest logit, with logits (C, h, w) resized as in MMSegmentation."""
    labels = np.zeros(size[::-1], np.uint16)
    highest = cv2.resize(logits[0], size, interpolation=cv2.INTER_LINEAR)
    # One at a time, since all of a photograph's may not fit in memory.
    for label, one in enumerate(logits[1:], 1):
        one = cv2.resize(one, size, interpolation=cv2.INTER_LINEAR)
        better = one > highest
        labels[better], highest[better] = label, one[better]
    return labels


def facts_of(trained: Any, size: tuple[int, int] | None, unit: int = 1, least: int = 1) -> str:
    """Metadata of a ``TrainedModel`` for :class:`OnnxModel`, as JSON.

    Args:
        trained: the model.
        size: height and width of the images of the file. None means any.
        unit, least: their sides are multiples of the first, at least so many.

    Raises:
        ConfigError: for a step of its pipeline that the file cannot do.
    """
    # Not above: to read a file takes no MMEngine.
    from .pipeline_steps import in_size, keeps_ratio, steps_of, takes_rgb

    preprocessor = trained.model.data_preprocessor
    rgb = takes_rgb(preprocessor)
    mean = getattr(preprocessor, 'mean', None)
    fill = [127.0] * 3 if mean is None else mean.flatten().tolist()
    steps = steps_of(trained.pixels.transforms) if trained.has_pixels else []
    loader = getattr(trained.pixels, 'load', None) if trained.has_pixels else None
    if loader and getattr(loader.transforms[0], 'window', None):
        raise ConfigError(
            'test_dataloader: its pipeline reads a window of values, and a file in ONNX is given '
            'images of 8 bits; write .pt2, and give it values from 0 to 255 of this window.'
        )
    if not keeps_ratio(steps):
        size = size or trained.model.backbone.img_size
    fit = 'stretch'
    if keeps_ratio(steps):
        fit = 'pad'
    elif steps and 'crop' in steps[-1]:
        fit = 'crop'
    steps = in_size(steps, size, unit, least, fill[::-1] if rgb else fill)
    head = type(getattr(trained.model, 'head', None))
    multi_label = any(kind.__name__ == 'MultiLabelClsHead' for kind in head.__mro__)
    return json.dumps(
        dict(classes=trained.classes, multi_label=multi_label, rgb=rgb, fit=fit, steps=steps)
    )
