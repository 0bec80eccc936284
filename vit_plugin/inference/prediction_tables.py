"""Predictions as rows of a table: JSON, JSON Lines or CSV."""

import json
import os
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, BinaryIO

from anyfolder.complete import check_target, replacing
from vit_plugin.files.untrusted_text import as_csv

from .inputs import Frame, Input
from .prediction_writer import PredictionWriter
from .predictions import Prediction
from .targets import check_no_input_overwritten

DECIMALS = 4  # decimal places in a .csv
PredictionRow = Mapping[str, Any]


class Table(PredictionWriter):
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
