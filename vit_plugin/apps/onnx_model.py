"""A file that ``vit-plugin export`` wrote, asked about images by onnxruntime alone: without torch and a framework."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from vit_plugin.errors import ConfigError, first_line, needed_by

from .predictions import Prediction, names_of

KEY = 'vit_plugin'  # of the file's metadata
METHODS = dict(nearest=cv2.INTER_NEAREST, bilinear=cv2.INTER_LINEAR, bicubic=cv2.INTER_CUBIC, area=cv2.INTER_AREA,
               lanczos=cv2.INTER_LANCZOS4)


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
            self.session = onnxruntime.InferenceSession(str(path), providers=['CPUExecutionProvider'])
        except Exception as error:  # of onnxruntime, which has a class for each
            raise ConfigError(f'{str(path)!r} cannot be run ({first_line(error)}); export it again.') from error
        meta = self.session.get_modelmeta().custom_metadata_map
        if KEY not in meta:
            raise ConfigError(f'{str(path)!r} does not say what its outputs are; write it with vit-plugin export.')
        self.facts = json.loads(meta[KEY])
        self.classes: list[str] = self.facts['classes']
        number, self.channels, *size = self.session.get_inputs()[0].shape
        self.any_number = not isinstance(number, int)
        self.size = tuple(size if all(isinstance(side, int) for side in size) else self.facts['size'])

    def __call__(self, image: np.ndarray) -> Prediction:
        """What the model finds in the pixels (H, W, 3) of an image, in BGR."""
        return self.predict([image])[0]

    def predict(self, images: Sequence[np.ndarray]) -> list[Prediction]:
        """The same of several images, in one run where the file takes any number.

        Raises:
            ConfigError: if the outputs become segments outside of the file.
        """
        fitted = [self.fitted(image) for image in images]
        inputs = [self.channels_of(pixels) for pixels, _, _ in fitted]
        together = self.any_number and 'scale' not in self.facts  # all of one size
        parts = [np.stack(inputs)] if together else [one[None] for one in inputs]
        names = [output.name for output in self.session.get_outputs()]
        outputs: list[dict[str, np.ndarray]] = []
        for part in parts:
            arrays = self.session.run(None, {'images': part})
            outputs += [dict(zip(names, one, strict=True)) for one in zip(*arrays, strict=True)]
        return [self._found(found, image, scale, offset)
                for found, image, (_, scale, offset) in zip(outputs, images, fitted, strict=True)]

    def channels_of(self, pixels: np.ndarray) -> np.ndarray:
        """Pixels (H, W, 3) in BGR in the channels of the file, (C, H, W) in float32."""
        if self.channels == 1:
            pixels = cv2.cvtColor(pixels, cv2.COLOR_BGR2GRAY)[..., None]
        elif self.facts['rgb']:
            pixels = pixels[..., ::-1]
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), dtype=np.float32)

    def _found(self, outputs: dict[str, np.ndarray], image: np.ndarray, scale: np.ndarray,
               offset: np.ndarray) -> Prediction:
        """The prediction in the outputs of one image, which was scaled and moved."""
        if 'boxes' in outputs:
            height, width = image.shape[:2]
            boxes = (outputs['boxes'] - np.tile(offset, 2)) / np.tile(scale, 2)
            boxes = boxes.clip(0, (width, height, width, height))
            labels = outputs['labels']
            return Prediction(None, labels, names_of(labels, self.classes), outputs['scores'], boxes)
        if 'logits' not in outputs:
            raise ConfigError(f'The outputs {", ".join(outputs)} become segments outside of the file, by the '
                              "framework's own code; run the checkpoint.")
        logits = outputs['logits']
        if logits.ndim == 1:
            scores = np.exp(logits - logits.max())
            order = np.argsort(-scores, kind='stable')
            return Prediction(None, order, names_of(order, self.classes), (scores / scores.sum())[order])
        inner = [round(side * ratio) for side, ratio in zip(image.shape[1::-1], scale, strict=True)]  # without padding
        labels = cv2.resize(logits.argmax(0)[:inner[1], :inner[0]].astype(np.uint16), image.shape[1::-1],
                            interpolation=cv2.INTER_NEAREST)
        found, counts = np.unique(labels, return_counts=True)
        order = np.argsort(-counts, kind='stable')
        return Prediction(None, found[order], names_of(found[order], self.classes),
                          (counts[order] / counts.sum()), map=labels)

    def kept_ratio(self, sides: np.ndarray) -> float | None:
        """By how much MMCV's ``Resize(keep_ratio=True)`` resizes an image, or None of a file of one size.

        The longer side fits into the longer one of its scale, and the shorter into the shorter, however it is turned.
        """
        longer, shorter = self.facts.get('scale') or (None, None)
        return longer and min(longer / sides.max(), shorter / sides.min())

    def canvas(self, sides: np.ndarray) -> tuple[int, int]:
        """Width and height of the input for an image: of the file, or of the resized image in whole units."""
        ratio, unit = self.kept_ratio(sides), self.facts.get('unit')
        if not ratio:
            return self.size[1], self.size[0]
        width, height = (np.ceil(np.maximum(np.rint(sides * ratio), 1) / unit).astype(int) * unit).tolist()
        least = self.facts['least']
        return max(width, least), max(height, least)

    def fitted(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """An image at the size of the file, as the config's test brings it there.

        Returns:
            The pixels, and what takes a point (x, y) of the image there: its scale, and then its offset.
        """
        sides = np.array(image.shape[1::-1])
        width, height = self.canvas(sides)
        ratios = np.array((width, height)) / sides
        match self.facts['fit']:
            case 'crop':  # the shorter side is a little larger than the file's, and the middle is taken
                ratios = np.full(2, ratios.max() * self.facts['enlarged'])
            case 'pad':  # the longer side fits, and the rest is grey
                ratios = np.full(2, self.kept_ratio(sides) or ratios.min())
        inner = np.maximum(np.rint(sides * ratios), 1).astype(int)
        antialias = self.facts['antialias'] and ratios.max() < 1
        method = cv2.INTER_AREA if antialias else METHODS[self.facts['interpolation']]
        resized = cv2.resize(image, tuple(inner.tolist()), interpolation=method)
        if self.facts['fit'] == 'pad':
            canvas = np.full((height, width, 3), self.facts['padding'], np.uint8)
            canvas[:inner[1], :inner[0]] = resized
            return canvas, inner / sides, np.zeros(2)
        left, top = ((inner - (width, height)) // 2).tolist()
        return resized[top:top + height, left:left + width], inner / sides, -np.array((left, top))


def facts_of(trained: Any, size: tuple[int, int] | None, unit: int = 1, least: int = 1) -> str:
    """What :class:`OnnxModel` has to know of a ``TrainedModel``, as JSON.

    Args:
        trained: the model.
        size: height and width of the images of the file. None means any.
        unit, least: their sides are multiples of the first, at least so many.
    """
    from vit_plugin.config import with_pipeline  # not above: to read a file takes no MMEngine
    model = trained.model
    preprocessor = model.data_preprocessor
    rgb = bool(getattr(preprocessor, 'to_rgb', getattr(preprocessor, '_channel_conversion', False)))
    facts: dict[str, Any] = dict(classes=trained.classes, size=size or model.backbone.img_size, fit='stretch',
                                 enlarged=1., rgb=rgb, interpolation='bilinear', antialias=False)
    mean = getattr(preprocessor, 'mean', None)
    padding = [127.] * 3 if mean is None else mean.flatten().tolist()
    facts['padding'] = padding[::-1] if rgb else padding
    if trained.crop_pct:
        return json.dumps(facts | dict(fit='crop', enlarged=1 / trained.crop_pct, interpolation='bicubic',
                                       antialias=True))
    loader = trained.cfg.get('test_dataloader')
    pipeline = with_pipeline(loader.dataset).pipeline if loader else ()
    steps = {step['type'].rpartition('.')[2]: step for step in pipeline if isinstance(step['type'], str)}
    resize = steps.get('ResizeEdge') or steps.get('Resize') or {}
    facts |= dict(interpolation=resize.get('interpolation', 'bilinear'), antialias=resize.get('backend') == 'pillow')
    if 'ResizeEdge' in steps:
        crop = steps.get('CenterCrop', {}).get('crop_size', steps['ResizeEdge']['scale'])
        crop = crop if isinstance(crop, int) else min(crop)
        facts |= dict(fit='crop', enlarged=resize['scale'] / crop)
    elif resize.get('keep_ratio'):
        facts['fit'] = 'pad'
        if size is None:
            facts |= dict(scale=sorted(resize['scale'], reverse=True), unit=unit, least=least * unit)
    return json.dumps(facts)
