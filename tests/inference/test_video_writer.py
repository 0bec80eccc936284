"""A video is complete, or it is not there."""

import numpy as np
import pytest
from rejection import rejects

from vit_plugin.inference.video_writer import open_video_writer


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
