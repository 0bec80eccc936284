"""Predictions as pictures, videos and maps of values."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference.inputs import Frame, Input
from vit_plugin.inference.prediction_files import create_writer
from vit_plugin.tasks.depth.depth_prediction import DepthPrediction
from vit_plugin.tasks.detection.box_prediction import BoxPrediction

IMAGE = np.full((48, 64, 3), 128, np.uint8)
STILL = Input('a.png', Path())
BOX = BoxPrediction(
    None, np.array([0]), ['cat'], np.array([0.5]), np.array([[1.0, 2.0, 30.0, 40.0]])
)


def test_overwriting_an_input_raises(tmp_path):
    path = tmp_path / 'a.png'
    cv2.imwrite(str(path), IMAGE)
    with rejects('would be overwritten while it is read'):
        create_writer(tmp_path, [Input(str(path), tmp_path)], 0.3)


def test_pictures_and_videos_are_written_below_the_folder(tmp_path):
    pytest.importorskip('supervision')
    from supervision import VideoInfo, VideoSink, get_video_frames_generator

    clip = Input(str(tmp_path / 'set/clip.mov'), tmp_path / 'set', 'video')
    (tmp_path / 'set').mkdir()
    with VideoSink(clip.name, VideoInfo(64, 48, 10.0)) as sink:
        sink.write_frame(IMAGE)
    still = Input(str(tmp_path / 'set/x/a.bmp'), tmp_path / 'set')
    pictures = create_writer(tmp_path / 'out', [still, clip], 0.3)
    assert pictures.add(Frame(still, None, IMAGE), BOX) == str(tmp_path / 'out/x/a.png')
    for number in range(3):
        pictures.add(Frame(clip, number, IMAGE), BOX)
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
    with create_writer(tmp_path, stills, 0.3) as pictures:
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
        create_writer(tmp_path, stills, 0.3) as pictures,
    ):
        pictures.add(Frame(stills[0], None, IMAGE), depth())


def test_pictures_that_cannot_be_encoded_raise(tmp_path, monkeypatch):
    monkeypatch.setattr(cv2, 'imencode', lambda suffix, pixels: (False, None))
    writer = create_writer(tmp_path / 'out', [STILL], 0.3)
    with rejects('a.png.* cannot be written'), writer:
        writer.add(Frame(STILL, None, IMAGE), BOX)
