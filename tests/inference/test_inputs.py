"""The inputs of commands: files, folders, URLs and videos."""

from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference.inputs import Reading, find_inputs
from vit_plugin.inference.streams import frame_rate

needs_supervision = pytest.mark.skipif(
    not find_spec('supervision'), reason='supervision is not installed'
)


def photo(path: Path, value: int = 7) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((8, 12, 3), value, np.uint8))
    return path


def video(path: Path, frames: int = 6) -> Path:
    """Write frames of increasing brightness."""
    import supervision as sv

    with sv.VideoSink(str(path), sv.VideoInfo(64, 48, 10.0)) as sink:
        for i in range(frames):
            sink.write_frame(np.full((48, 64, 3), 40 * i, np.uint8))
    return path


def test_repeated_images_are_read_once(tmp_path):
    path = str(photo(tmp_path / 'a.jpg'))
    assert len(find_inputs([path, path])) == 1
    below = str(photo(tmp_path / 'set/b.jpg'))
    inputs = find_inputs([str(tmp_path), below])
    assert [source.name for source in inputs] == [path, below]
    assert inputs[1].root == tmp_path / 'set'


@pytest.mark.parametrize(
    ('argument', 'words'),
    [
        ('', 'is empty'),
        (' ', 'is empty'),
        ('none.jpg', "There is no image 'none.jpg'"),
        ('s3://bucket/a.jpg', 's3://bucket/a.jpg. is not a supported URL'),
        ('https:/a.jpg', 'give http:// or https://'),
        ('https://example.org/clip.mp4', 'is a video; download it'),
        ('https://[::1/a.jpg', r'is not a valid URL \(Invalid IPv6 URL\); correct it'),
    ],
)
def test_invalid_inputs_raise(argument, words):
    with rejects(words):
        find_inputs([argument])


def test_videos_raise_in_commands_for_images(tmp_path):
    (tmp_path / 'clip.MP4').touch()
    for argument, kind in ((str(tmp_path), 'video'), ('0', 'webcam')):
        with rejects(f'is a {kind}, and this command takes images'):
            find_inputs([argument], with_videos=False)


@needs_supervision
def test_frames_of_a_video_are_numbered(tmp_path):
    inputs = find_inputs([str(video(tmp_path / 'clip.mp4')), str(photo(tmp_path / 'a.png'))])
    frames = list(Reading(inputs).frames())
    assert [frame.number for frame in frames] == [0, 1, 2, 3, 4, 5, None]
    assert [round(frame.image.mean() / 40) for frame in frames[:6]] == [0, 1, 2, 3, 4, 5]
    assert frame_rate(inputs[0].name) == 10


@needs_supervision
@pytest.mark.filterwarnings('ignore')
def test_unreadable_inputs_are_counted_and_skipped(tmp_path, capfd):
    for name in ('a.png', 'clip.mp4'):
        (tmp_path / name).write_text('no image')
    photo(tmp_path / 'b.png')
    reading = Reading(find_inputs([str(tmp_path)]))
    assert [Path(frame.source.name).name for frame in reading.frames()] == ['b.png']
    err = capfd.readouterr().err
    assert "a.png' cannot be read" in err
    assert "clip.mp4' cannot be read" in err
    with rejects('^2 of 3 inputs could not be read'):
        reading.finish()
