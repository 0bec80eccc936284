"""A file that ``vit-plugin export`` wrote, asked about images by onnxruntime alone: without torch and a framework."""

import json
import math
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
        _, self.channels, *size = self.session.get_inputs()[0].shape
        self.size = tuple(size if all(isinstance(side, int) for side in size) else self.facts['size'])

    def __call__(self, image: np.ndarray) -> Prediction:
        """What the model finds in the pixels (H, W, 3) of an image, in BGR."""
        fitted, scale, offset = self.fitted(image)
        pixels = cv2.cvtColor(fitted, cv2.COLOR_BGR2GRAY)[..., None] if self.channels == 1 else (
            fitted[..., ::-1] if self.facts['rgb'] else fitted)
        images = np.ascontiguousarray(pixels.transpose(2, 0, 1)[None], dtype=np.float32)
        outputs = dict(zip((out.name for out in self.session.get_outputs()),
                           self.session.run(None, {'images': images}), strict=True))
        if 'boxes' in outputs:
            height, width = image.shape[:2]
            boxes = (outputs['boxes'][0] - np.tile(offset, 2)) / np.tile(scale, 2)
            boxes = boxes.clip(0, (width, height, width, height))
            return Prediction(None, names_of(outputs['labels'][0], self.classes), outputs['scores'][0], boxes=boxes)
        if 'logits' not in outputs:
            raise ConfigError(f'The outputs {", ".join(outputs)} become segments outside of the file, by the '
                              "framework's own code; run the checkpoint.")
        logits = outputs['logits'][0]
        if logits.ndim == 1:
            scores = np.exp(logits - logits.max())
            order = np.argsort(-scores, kind='stable')
            return Prediction(None, names_of(order, self.classes), (scores / scores.sum())[order])
        inner = [round(side * ratio) for side, ratio in zip(image.shape[1::-1], scale, strict=True)]  # without padding
        labels = cv2.resize(logits.argmax(0)[:inner[1], :inner[0]].astype(np.uint16), image.shape[1::-1],
                            interpolation=cv2.INTER_NEAREST)
        found, counts = np.unique(labels, return_counts=True)
        order = np.argsort(-counts, kind='stable')
        return Prediction(None, names_of(found[order], self.classes), (counts[order] / counts.sum()), map=labels)

    def fitted(self, image: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """An image at the size of the file, as the config's test brings it there.

        Returns:
            The pixels, and what takes a point (x, y) of the image there: its scale, and then its offset.
        """
        height, width = self.size
        sides = np.array(image.shape[1::-1])
        ratios = np.array((width, height)) / sides
        match self.facts['fit']:
            case 'crop':  # the shorter side is a little larger than the file's, and the middle is taken
                ratios = np.full(2, ratios.max() * self.facts['enlarged'])
            case 'pad':  # the longer side fits, and the rest is grey
                ratios = np.full(2, ratios.min())
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


def draw(image: np.ndarray, prediction: Prediction, file: str | Path, score_thr: float) -> None:
    """Draw a prediction over the pixels (H, W, 3) of an image, in BGR, into a file."""
    picture, rows = image.copy(), prediction.rows(score_thr)
    height = max(picture.shape[0] / 40, 8)
    names = {name: i for i, name in enumerate(sorted({row['class'] for row in rows}))}
    if prediction.map is not None:
        colours = np.array([_colour(label) for label in range(256)], np.uint8)
        picture = cv2.addWeighted(picture, 0.5, colours[prediction.map % 256], 0.5, 0)
    for i, row in enumerate(rows):
        text = f'{row["class"]} {row.get("score", row.get("share")):.2f}'
        colour, at = _colour(names[row['class']]), (4, int((i + 1) * 1.4 * height))
        if prediction.boxes is not None:
            corners = [int(row[side]) for side in ('left', 'top', 'right', 'bottom')]
            cv2.rectangle(picture, corners[:2], corners[2:], colour, max(1, round(height / 8)))
            at = (corners[0], max(corners[1] - 3, int(height)))
        for thickness, shade in ((3, (0, 0, 0)), (1, (255, 255, 255) if prediction.boxes is None else colour)):
            cv2.putText(picture, text, at, cv2.FONT_HERSHEY_SIMPLEX, height / 22, shade, thickness, cv2.LINE_AA)
    written, encoded = cv2.imencode(Path(file).suffix, picture)
    if not written:
        raise ConfigError(f'{str(file)!r}: OpenCV writes no pictures of this kind; take .png.')
    Path(file).write_bytes(encoded.tobytes())


def _colour(number: int) -> tuple[int, int, int]:
    """A colour in BGR. Neighbouring numbers have hues far apart."""
    hue = math.modf(number * 0.618)[0] * 179
    blue, green, red = cv2.cvtColor(np.array([[[hue, 200, 255]]], np.uint8), cv2.COLOR_HSV2BGR)[0, 0].tolist()
    return blue, green, red


def facts_of(trained: Any, size: tuple[int, int] | None) -> str:
    """What :class:`OnnxModel` has to know of a ``TrainedModel``, as JSON.

    Args:
        trained: the model.
        size: height and width of the images of the file. None means any.
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
    return json.dumps(facts)
