"""Predictions as tables that are complete after each image."""

import csv
import json
import os
from pathlib import Path

import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference.inputs import Frame, Input
from vit_plugin.inference.prediction_files import create_writer
from vit_plugin.inference.predictions import Prediction
from vit_plugin.tasks.detection.box_prediction import BoxPrediction
from vit_plugin.tasks.segmentation.map_prediction import MapPrediction

IMAGE = np.full((48, 64, 3), 128, np.uint8)
STILL, OTHER = (Input(name, Path()) for name in ('a.png', 'b "c".png'))
CLIP = Input('clip.mp4', Path(), 'video')


def boxes(*names: str) -> Prediction:
    """A prediction of boxes of these classes."""
    count = len(names)
    return BoxPrediction(
        None,
        np.arange(count),
        list(names),
        np.full(count, 0.5),
        np.tile([1.0, 2.0, 30.0, 40.0], (count, 1)),
    )


def predicted_frames() -> list[tuple[Frame, Prediction]]:
    """Frames of two images and a video, with their predictions, some of which are empty."""
    return [
        (Frame(STILL, None, IMAGE), boxes('cat', 'dog')),
        (Frame(CLIP, 0, IMAGE), boxes()),
        (Frame(CLIP, 1, IMAGE), boxes('cat')),
        (Frame(CLIP, 2, IMAGE), boxes('dog', 'dog')),
        (Frame(OTHER, None, IMAGE), boxes()),
    ]


def read(path: Path) -> dict[str, list[tuple[int | None, str]]]:
    """The frame numbers and classes of each input, from any format of tables."""
    text, classes = path.read_text(), {}
    if path.suffix == '.json':
        for name, rows in json.loads(text).items():
            classes[name] = [(row.get('frame'), row['class']) for row in rows]
    elif path.suffix == '.jsonl':
        for line in map(json.loads, text.splitlines()):
            classes.setdefault(line['image'], []).extend(
                (line.get('frame'), row['class']) for row in line['found']
            )
    else:
        for row in csv.DictReader(text.splitlines()):
            number = int(row['frame']) if row.get('frame') else None
            classes.setdefault(row['image'], []).append((number, row['class']))
    return classes


@pytest.mark.parametrize('suffix', ['.json', '.jsonl', '.csv'])
def test_a_table_is_complete_after_each_image(tmp_path, suffix):
    path = tmp_path / f'new/found{suffix}'
    expected: dict[str, list[tuple[int | None, str]]] = {}
    with create_writer(path, [STILL, CLIP, OTHER], 0.3) as table:
        for frame, prediction in predicted_frames():
            table.add(frame, prediction)
            rows = expected.setdefault(frame.source.name, [])
            rows += [(frame.number, name) for name in prediction.names]
            (temporary,) = path.parent.iterdir()  # remains if the process is killed
            # CSV has no rows for images without predictions.
            assert read(temporary) == {
                name: rows for name, rows in expected.items() if rows or suffix != '.csv'
            }
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    assert read(path) == {name: rows for name, rows in expected.items() if rows or suffix != '.csv'}


def test_interrupts_before_the_first_image_keep_the_earlier_table(tmp_path):
    path = tmp_path / 'found.json'
    path.write_text('{"old": []}')
    with pytest.raises(KeyboardInterrupt), create_writer(path, [STILL], 0.3):
        raise KeyboardInterrupt
    assert json.loads(path.read_text()) == {'old': []}
    with create_writer(path, [STILL], 0.3):
        pass
    assert json.loads(path.read_text()) == {}


def write_rows(path: Path, count: int, error: Exception | None = None) -> None:
    """Write a table of this many rows, then raise the error."""
    with create_writer(path, [STILL], 0.3) as table:
        for _ in range(count):
            table.add(Frame(STILL, None, IMAGE), boxes('cat'))
        if error:
            raise error


@pytest.mark.parametrize('suffix', ['.json', '.jsonl', '.csv'])
def test_a_full_disk_keeps_the_earlier_table(tmp_path, full_disk, suffix):
    path = tmp_path / f'found{suffix}'
    path.write_text('old')
    with rejects(r'\(File too large\); the previous file is unch'):
        write_rows(path, 3000)
    assert [file.read_text() for file in tmp_path.iterdir()] == ['old']


def test_errors_of_the_model_keep_the_rows_before(tmp_path):
    path = tmp_path / 'found.jsonl'
    with pytest.raises(RuntimeError):
        write_rows(path, 1, RuntimeError())
    assert read(path) == {'a.png': [(None, 'cat')]}


def test_names_are_exact_in_json_and_escaped_in_csv(tmp_path):
    name = os.fsdecode(b'=\x1b\xff"\xc3\xbc.png')
    for suffix in ('.json', '.jsonl', '.csv'):
        path = tmp_path / f'found{suffix}'
        with create_writer(path, [Input(name)], 0.3) as table:
            table.add(Frame(Input(name), None, IMAGE), boxes('=1+1'))
        if suffix == '.csv':  # the apostrophe keeps spreadsheets from computing formulas
            assert read(path) == {'\'=\\x1b\\udcff"ü.png': [(None, "'=1+1")]}
        else:
            assert read(path) == {name: [(None, '=1+1')]}
        assert (suffix == '.csv') == ('\\x1b' in path.read_text())


def test_columns_depend_on_the_task_and_numbers_have_four_digits(tmp_path):
    segmentation = MapPrediction(
        None, np.array([1]), ['sky'], np.array([1 / 3]), map=np.ones((48, 64), int)
    )
    for prediction, columns, rows in (
        (boxes(), 'class,score,left,top,right,bottom', []),
        (segmentation, 'class,share', ['a.png,sky,0.3333']),
    ):
        with create_writer(tmp_path / 'found.csv', [STILL], 0.3) as table:
            table.add(Frame(STILL, None, IMAGE), prediction)
        assert (tmp_path / 'found.csv').read_text().splitlines() == [f'image,{columns}', *rows]
