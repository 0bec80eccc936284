"""Outputs of predictions, written as they arrive: JSON, JSON Lines, CSV, pictures and videos."""

import json
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import cv2
import numpy as np

from anyfolder.complete import check_target, replacing
from vit_plugin.errors import ConfigError, needed_by, rejecting
from vit_plugin.files.untrusted_text import as_csv

from .inputs import Frame, Input
from .predictions import Prediction, draw_prediction
from .streams import WEBCAM_FPS, frame_rate
from .targets import (
    bases_of,
    check_no_input_overwritten,
    check_not_read,
    choose_targets,
    files_read,
)

DECIMALS = 4  # decimal places in a .csv
PredictionRow = Mapping[str, Any]


class Output(AbstractContextManager):
    """The writer of one ``--out``.

    It is a context manager: when it ends, even by an error or Ctrl-C, its files are complete.

    Args:
        target: the file or folder.
        inputs: what is read.
        score_thr: lowest score of what is written, see :meth:`Prediction.rows`.
    """

    def __init__(self, target: Path, inputs: Sequence[Input], score_thr: float) -> None:
        self.target, self.inputs, self.score_thr = target, inputs, score_thr
        self._stack = ExitStack()

    def __exit__(self, *error: Any) -> None:
        self._stack.__exit__(*error)

    @abstractmethod
    def add(self, frame: Frame, prediction: Prediction) -> str:
        """Write the prediction for a frame.

        Returns the paths of its pictures, joined by commas, or an empty string.
        """


class Table(Output):
    """A file of rows, to which each image's rows are written as soon as they are predicted.

    They go to a temporary file that is valid after every image, so even a killed process leaves its
    results. At the end, also when interrupted, it replaces an earlier file, unless writing failed.

    Attributes:
        start, end: text before the first image, and after the last one.

    Raises:
        ConfigError: if the file is an input, or cannot be written.
    """

    start = end = ''

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        check_target(self.target)
        check_no_input_overwritten([self.target], self.inputs)
        self.has_videos = any(source.is_video for source in self.inputs)
        self._file: BinaryIO | None = None

    def __exit__(self, *error: Any) -> None:
        if self._file is None and error[0] is None:
            self._write(self.text_without_images())
        # Not passed the error: what was written so far replaces an earlier file.
        self._stack.close()

    def add(self, frame: Frame, prediction: Prediction) -> str:
        number: PredictionRow = dict(frame=frame.number) if frame.source.is_video else {}
        rows: list[PredictionRow] = [{**number, **row} for row in prediction.rows(self.score_thr)]
        start = '' if self._file else self.opening(prediction)
        self._write(start + self.entry(frame, rows) + self.end)
        return ''

    def opening(self, prediction: Prediction) -> str:
        """Text before the first image."""
        return self.start

    def text_without_images(self) -> str:
        """The text of a file without images."""
        return self.start + self.end

    @abstractmethod
    def entry(self, frame: Frame, rows: list[PredictionRow]) -> str:
        """The text of an image or frame with these rows."""

    def _write(self, text: str) -> None:
        """Write text over ``end``, the closing text that the file has after each image."""
        try:
            if self._file is None:
                path = self._stack.enter_context(replacing(self.target))
                self._file = self._stack.enter_context(path.open('wb'))
            else:
                self._file.seek(-len(self.end), os.SEEK_END)
            # A name that is not UTF-8 has surrogates, which become JSON escapes.
            self._file.write(text.encode('utf-8', 'backslashreplace'))
            self._file.flush()
        except BaseException as error:
            # Passed the error, `replacing` keeps an earlier file.
            self._stack.__exit__(type(error), error, error.__traceback__)
            raise


class JsonTable(Table):
    """One JSON object: name of an input -> its list of rows, over all frames for a video."""

    # Overrides attributes of Table, which describes them.
    start, end = '{', ']\n}\n'

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._last_source: Input | None = None  # the input whose list is open
        self._has_rows = False  # whether that list has rows

    def text_without_images(self) -> str:
        return '{}\n'  # there is no list to end

    def entry(self, frame: Frame, rows: list[PredictionRow]) -> str:
        continues = frame.source == self._last_source
        follows_rows = continues and self._has_rows
        texts = ',\n    '.join(json.dumps(row, ensure_ascii=False) for row in rows)
        self._last_source, self._has_rows = frame.source, bool(rows) or follows_rows
        if continues:  # another frame of a video: the list's "]" was just overwritten
            return (',\n    ' if follows_rows and texts else '') + texts
        before = '],\n' if self._file else '\n'
        return f'{before}  {json.dumps(frame.source.name, ensure_ascii=False)}: [{texts}'


class JsonLines(Table):
    """One object per line for each image or frame: its name, its number, and the predictions."""

    def entry(self, frame: Frame, rows: list[PredictionRow]) -> str:
        number = dict(frame=frame.number) if frame.source.is_video else {}
        objects = [{name: value for name, value in row.items() if name != 'frame'} for row in rows]
        line = dict(image=frame.source.name, **number, found=objects)
        return json.dumps(line, ensure_ascii=False) + '\n'


class CsvTable(Table):
    """One line per row, with the image, and the frame number if there are videos.

    Names are as :func:`~vit_plugin.files.untrusted_text.csv_cell` writes them.
    """

    columns: list[str]  # known from the first prediction

    def opening(self, prediction: Prediction) -> str:
        first_columns = ['image', 'frame'] if self.has_videos else ['image']
        self.columns = [*first_columns, *prediction.columns]
        return as_csv([], self.columns)

    def entry(self, frame: Frame, rows: list[PredictionRow]) -> str:
        image_rows = [
            dict(image=frame.source.name)
            | {
                name: round(value, DECIMALS) if isinstance(value, float) else value
                for name, value in row.items()
            }
            for row in rows
        ]
        return as_csv(image_rows, self.columns, with_header=False)


class Pictures(Output):
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
        self._write: Callable[[np.ndarray], None]

    def add(self, frame: Frame, prediction: Prediction) -> str:
        picture = draw_prediction(frame.image, prediction, self.score_thr)
        target = self.targets[frame.source]
        is_new = frame.source != self._source
        if is_new:
            self._stack.close()  # closes the previous video
            self._source = frame.source
        if not frame.source.is_video:
            with replacing(target) as path:
                path.write_bytes(_encode(picture, target))
            written = [target]
            base = self._bases[target].name
            for ending, values in prediction.arrays().items():
                array_target = target.with_name(f'{base}{ending}')
                # Unlike `target`, this name has not been compared with the inputs before.
                check_not_read([array_target], self._read)
                with replacing(array_target) as path:
                    path.write_bytes(_encode(values, array_target))
                written.append(array_target)
            return ', '.join(map(str, written))
        if is_new:
            is_file = frame.source.reader == 'video'
            fps = frame_rate(frame.source.name) if is_file else WEBCAM_FPS
            writer = open_video_writer(target, picture.shape[1::-1], fps)
            self._write = self._stack.enter_context(writer)
        self._write(picture)
        return str(target)


def _encode(pixels: np.ndarray, target: Path) -> bytes:
    """The content of a picture.

    Raises:
        ConfigError: if OpenCV cannot encode it. OpenCV itself only returns a flag.
    """
    is_encoded, content = cv2.imencode(target.suffix, pixels)
    if not is_encoded:
        raise ConfigError(
            f'{str(target)!r} cannot be written, since OpenCV cannot encode an array '
            f'{pixels.shape} of {pixels.dtype} as {target.suffix}; give another format.'
        )
    return content.tobytes()


@contextmanager
def open_video_writer(
    target: Path, size: tuple[int, int], fps: float
) -> Iterator[Callable[[np.ndarray], None]]:
    """Yield a function that adds a frame (H, W, 3) in BGR to a video.

    An interrupted video has the frames written so far.

    Args:
        target: the file.
        size: width and height in pixels.
        fps: frames per second.

    Raises:
        ConfigError: if the video cannot be encoded, or lacks frames at its end.
    """
    with needed_by('A video'):
        import supervision as sv
    interrupt, count = None, 0
    with replacing(target) as path:
        with ExitStack() as stack:
            # Only around the opening, since errors of the frames pass through this context, too.
            with rejecting(
                f'{str(target)!r} cannot be encoded at {fps:g} frames per second',
                'give a video of another rate, or write a table of the predictions',
                (RuntimeError,),
            ):
                sink = stack.enter_context(sv.VideoSink(str(path), sv.VideoInfo(*size, fps)))

            def write(frame: np.ndarray) -> None:
                nonlocal count
                sink.write_frame(frame)
                count += 1

            try:
                yield write
            except KeyboardInterrupt as error:
                # Leave normally, so that the frames so far are kept; raised again below.
                interrupt = error
        _check_video(path, count, target)
    if interrupt:
        raise interrupt


def _check_video(path: Path, count: int, target: Path) -> None:
    """Raise a ``ConfigError`` if a video lacks frames. OpenCV is silent on a full disk."""
    stream = cv2.VideoCapture(str(path))
    written = int(stream.get(cv2.CAP_PROP_FRAME_COUNT)) if stream.isOpened() else 0
    stream.release()
    if written < count:
        raise ConfigError(
            f'{str(target)!r} cannot be written ({written} of {count} frames were); make room, or '
            'give another path.'
        )


# The writer for each suffix of --out. Any other name is a folder.
TABLES: dict[str, type[Table]] = {'.json': JsonTable, '.jsonl': JsonLines, '.csv': CsvTable}


def create_output(target: Path, inputs: Sequence[Input], score_thr: float) -> Output:
    """The writer for a file or a folder.

    Raises:
        ConfigError: if an input would be overwritten, or if the target cannot be written.
    """
    return TABLES.get(target.suffix.lower(), Pictures)(target, inputs, score_thr)
