"""Predictions drawn over their images, as pictures and videos."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from anyfolder.complete import replacing
from vit_plugin.errors import ConfigError

from .inputs import Frame, Input
from .prediction_writer import PredictionWriter
from .predictions import Prediction, draw_prediction
from .streams import WEBCAM_FPS, frame_rate
from .targets import bases_of, check_not_read, choose_targets, files_read
from .video_writer import open_video_writer


class Pictures(PredictionWriter):
    """A picture for each image and a video for each video below a folder.

    Per-pixel values of a prediction are written next to the picture, such as ``NAME_depth.tiff``
    in float32. NAME has the suffix of the picture if another picture differs only in it.

    Raises:
        ConfigError: see :func:`~vit_plugin.inference.targets.choose_targets`.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.targets = choose_targets(self.inputs, self.target)
        self._bases = bases_of(
            target for source, target in self.targets.items() if not source.is_video
        )
        self._read = files_read(self.inputs)
        self._source: Input | None = None  # source of the video that is being written
        self._write_frame: Callable[[np.ndarray], None]

    def add(self, frame: Frame, prediction: Prediction) -> str:
        picture = draw_prediction(frame.image, prediction, self.score_thr)
        target = self.targets[frame.source]
        is_new = frame.source != self._source
        if is_new:
            self._stack.close()  # closes the previous video
            self._source = frame.source
        if not frame.source.is_video:
            _write_picture(picture, target)
            return ', '.join(map(str, [target, *self._write_arrays(prediction, target)]))
        if is_new:
            is_file = frame.source.reader == 'video'
            fps = frame_rate(frame.source.name) if is_file else WEBCAM_FPS
            writer = open_video_writer(target, picture.shape[1::-1], fps)
            self._write_frame = self._stack.enter_context(writer)
        self._write_frame(picture)
        return str(target)

    def _write_arrays(self, prediction: Prediction, picture: Path) -> Iterator[Path]:
        """Write the per-pixel values of a prediction next to its picture, and yield their paths."""
        base = self._bases[picture].name
        for ending, values in prediction.arrays().items():
            target = picture.with_name(f'{base}{ending}')
            # Unlike `picture`, this name has not been compared with the inputs before.
            check_not_read([target], self._read)
            _write_picture(values, target)
            yield target


def _write_picture(pixels: np.ndarray, target: Path) -> None:
    """Write an array as a picture.

    Raises:
        ConfigError: if OpenCV cannot encode it. OpenCV itself only returns a flag.
    """
    with replacing(target) as path:
        is_encoded, content = cv2.imencode(target.suffix, pixels)
        if not is_encoded:
            raise ConfigError(
                f'{str(target)!r} cannot be written, since OpenCV cannot encode an array '
                f'{pixels.shape} of {pixels.dtype} as {target.suffix}; give another format.'
            )
        path.write_bytes(content.tobytes())
