"""Predictions as tables that are complete after each image, and as pictures and videos."""

import csv
import json
import os
from pathlib import Path

import cv2
import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference.inputs import Frame, Input
from vit_plugin.inference.prediction_files import create_output, open_video_writer
from vit_plugin.inference.predictions import Prediction
from vit_plugin.tasks.depth.depth_prediction import DepthPrediction
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
    with create_output(path, [STILL, CLIP, OTHER], 0.3) as table:
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
    with pytest.raises(KeyboardInterrupt), create_output(path, [STILL], 0.3):
        raise KeyboardInterrupt
    assert json.loads(path.read_text()) == {'old': []}
    with create_output(path, [STILL], 0.3):
        pass
    assert json.loads(path.read_text()) == {}


def write_rows(path: Path, count: int, error: Exception | None = None) -> None:
    """Write a table of this many rows, then raise the error."""
    with create_output(path, [STILL], 0.3) as table:
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


def test_a_full_disk_leaves_no_partial_video(tmp_path, full_disk):
    pytest.importorskip('supervision')
    noise = np.random.default_rng(0).integers(0, 256, (240, 320, 3), np.uint8)

    def write_video() -> None:
        with open_video_writer(tmp_path / 'clip.mp4', (320, 240), 25.0) as write:
            for _ in range(30):
                write(noise)

    with rejects(r"clip.mp4' cannot be written \(.* of 30 frames were\)"):
        write_video()
    assert not list(tmp_path.iterdir())


def test_a_video_that_cannot_be_encoded_raises(tmp_path, monkeypatch):
    pytest.importorskip('supervision')

    class Sink:
        def __init__(self, *arguments):
            raise RuntimeError('Could not open video writer')

    monkeypatch.setattr('supervision.VideoSink', Sink)
    clip = tmp_path / 'clip.mp4'
    with (
        rejects(r"clip.mp4' cannot be encoded at 90\.5 frames per second \(Could not open"),
        open_video_writer(clip, (320, 240), 90.5),
    ):
        pass
    assert not list(tmp_path.iterdir())


def test_errors_of_the_model_keep_the_rows_before(tmp_path):
    path = tmp_path / 'found.jsonl'
    with pytest.raises(RuntimeError):
        write_rows(path, 1, RuntimeError())
    assert read(path) == {'a.png': [(None, 'cat')]}


def test_names_are_exact_in_json_and_escaped_in_csv(tmp_path):
    name = os.fsdecode(b'=\x1b\xff"\xc3\xbc.png')
    for suffix in ('.json', '.jsonl', '.csv'):
        path = tmp_path / f'found{suffix}'
        with create_output(path, [Input(name)], 0.3) as table:
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
        with create_output(tmp_path / 'found.csv', [STILL], 0.3) as table:
            table.add(Frame(STILL, None, IMAGE), prediction)
        assert (tmp_path / 'found.csv').read_text().splitlines() == [f'image,{columns}', *rows]


def test_overwriting_an_input_raises(tmp_path):
    path = tmp_path / 'a.png'
    cv2.imwrite(str(path), IMAGE)
    with rejects('would be overwritten while it is read'):
        create_output(tmp_path, [Input(str(path), tmp_path)], 0.3)


def test_pictures_and_videos_are_written_below_the_folder(tmp_path):
    pytest.importorskip('supervision')
    from supervision import VideoInfo, VideoSink, get_video_frames_generator

    clip = Input(str(tmp_path / 'set/clip.mov'), tmp_path / 'set', 'video')
    (tmp_path / 'set').mkdir()
    with VideoSink(clip.name, VideoInfo(64, 48, 10.0)) as sink:
        sink.write_frame(IMAGE)
    still = Input(str(tmp_path / 'set/x/a.bmp'), tmp_path / 'set')
    pictures = create_output(tmp_path / 'out', [still, clip], 0.3)
    assert pictures.add(Frame(still, None, IMAGE), boxes('cat')) == str(tmp_path / 'out/x/a.png')
    for number in range(3):
        pictures.add(Frame(clip, number, IMAGE), boxes('cat'))
    with pytest.raises(KeyboardInterrupt), pictures:
        raise KeyboardInterrupt  # before the end of the video
    picture = cv2.imread(str(tmp_path / 'out/x/a.png'))
    assert picture.shape == (240, 320, 3)
    assert picture.std() > 0
    video = tmp_path / 'out/clip.mp4'
    assert [frame.shape for frame in get_video_frames_generator(str(video))] == [(240, 320, 3)] * 3
    assert VideoInfo.from_video_path(str(video)).fps == 10


def depth() -> DepthPrediction:
    return DepthPrediction.of_depth(np.linspace(1, 5, 48 * 64).reshape(48, 64), 'depth')


def test_depth_maps_of_pictures_with_one_stem_differ(tmp_path):
    stills = [Input(name, Path()) for name in ('a.jpg', 'a.png', 'b.png')]
    with create_output(tmp_path, stills, 0.3) as pictures:
        for still in stills:
            pictures.add(Frame(still, None, IMAGE), depth())
    assert {path.name for path in tmp_path.glob('*.tiff')} == {
        'a.jpg_depth.tiff',
        'a.png_depth.tiff',
        'b_depth.tiff',
    }


def test_depth_maps_do_not_overwrite_other_inputs(tmp_path):
    stills = [Input(str(tmp_path / name), tmp_path) for name in ('a.bmp', 'a_depth.tiff')]
    with (
        rejects(r'a_depth\.tiff. would be overwritten while it is read'),
        create_output(tmp_path, stills, 0.3) as pictures,
    ):
        pictures.add(Frame(stills[0], None, IMAGE), depth())


def test_pictures_that_cannot_be_encoded_raise(tmp_path, monkeypatch):
    monkeypatch.setattr(cv2, 'imencode', lambda suffix, pixels: (False, None))
    writer = create_output(tmp_path / 'out', [STILL], 0.3)
    with rejects('a.png.* cannot be written'), writer:
        writer.add(Frame(STILL, None, IMAGE), boxes('cat'))
