"""What a command is asked about: files, folders, URLs and videos; and where its pictures go."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest

from vit_plugin.errors import ConfigError
from vit_plugin.files import inputs
from vit_plugin.files.inputs import Input, Reading, find_inputs, targets_of

needs_supervision = pytest.mark.skipif(
    not find_spec('supervision'), reason='supervision is not installed')


def photo(path: Path, value: int = 7) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((8, 12, 3), value, np.uint8))
    return path


def video(path: Path, frames: int = 6) -> Path:
    import supervision as sv
    with sv.VideoSink(str(path), sv.VideoInfo(64, 48, 10.)) as sink:
        for i in range(frames):
            sink.write_frame(np.full((48, 64, 3), 40 * i, np.uint8))
    return path


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server(tmp_path) -> Iterator[str]:
    """The address of a server for the files of the test."""
    with ThreadingHTTPServer(('127.0.0.1', 0), partial(Quiet, directory=str(tmp_path))) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f'http://127.0.0.1:{running.server_port}'
        running.shutdown()
        thread.join()


def relative(found: list[Input], folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in targets_of(found, folder).values()]


def test_pictures_keep_the_folders_of_their_images(tmp_path):
    for name in ('set/cat/1.jpg', 'set/dog/1.jpg', 'set/2.png'):
        photo(tmp_path / name)
    found = find_inputs([str(tmp_path / 'set')])
    assert relative(found, tmp_path / 'out') == ['2.png', 'cat/1.png', 'dog/1.png']


def test_an_image_that_is_given_twice_is_one(tmp_path):
    one = str(photo(tmp_path / 'a.jpg'))
    assert len(find_inputs([one, one])) == 1


@pytest.mark.parametrize(('names', 'expected'), [
    (['set/a.jpg', 'set/a.bmp', 'set/b.jpg'], {'a.jpg.png', 'a.bmp.png', 'b.png'}),
    (['x/a.jpg', 'y/a.jpg', 'y/b.jpg'], {'x/a.jpg.png', 'y/a.jpg.png', 'b.png'}),
    (['1/x/a.jpg', '2/x/a.jpg'], {'1/x/a.jpg.png', '2/x/a.jpg.png'})])
def test_pictures_of_one_name_are_told_apart(tmp_path, names, expected):
    found = find_inputs([str(photo(tmp_path / name)) for name in names])
    assert {*relative(found, tmp_path / 'out')} == expected


def test_pictures_of_urls_stay_below_the_folder(tmp_path):
    found = find_inputs([f'https://example.org/{name}' for name in (
        '1/a.jpg', '2/a.jpg?x=../3', '..', '%2e%2e%2fb.png', '')][:4])
    assert relative(found, tmp_path / 'out') == [
        'image.png', 'b.png', 'example.org/1/a.jpg.png', 'example.org/2/a.jpg.png']


@pytest.mark.parametrize(('argument', 'words'), [
    ('', 'is empty'), (' ', 'is empty'), ('none.jpg', "There is no image 'none.jpg'"),
    ('https://example.org/clip.mp4', 'is a video; download it')])
def test_wrong_names_are_a_sentence(argument, words):
    with pytest.raises(ConfigError, match=words):
        find_inputs([argument])


def test_a_command_for_images_takes_no_video(tmp_path):
    (tmp_path / 'clip.MP4').touch()
    for argument, kind in ((str(tmp_path), 'video'), ('0', 'webcam')):
        with pytest.raises(ConfigError, match=f'is a {kind}, and this command takes images'):
            find_inputs([argument], videos=False)


def test_a_url_is_read_within_its_bounds(tmp_path, server, monkeypatch):
    photo(tmp_path / 'a photo.png', value=90)
    (tmp_path / 'no.png').write_text('no image')
    one, = find_inputs([f'{server}/a%20photo.png?size=1'])
    assert one.relative == Path('a photo.png')
    assert one.read().tolist() == np.full((8, 12, 3), 90).tolist()
    for name, words in (('none.png', '404'), ('no.png', 'no.png. cannot be read')):
        with pytest.raises(ConfigError, match=f'The image .*{words}'):
            find_inputs([f'{server}/{name}'])[0].read()
    monkeypatch.setattr(inputs, 'LARGEST', 20)
    with pytest.raises(ConfigError, match='has more than 0 MiB'):
        one.read()


def test_a_server_that_is_not_there_is_a_sentence():
    with pytest.raises(ConfigError, match=r'cannot be downloaded \(.*Connection refused\)\.$'):
        find_inputs(['http://127.0.0.1:9/a.png'])[0].read()


@needs_supervision
def test_frames_of_a_video_have_numbers(tmp_path):
    found = find_inputs([str(video(tmp_path / 'clip.mp4')), str(photo(tmp_path / 'a.png'))])
    frames = list(Reading(found).frames())
    assert [frame.number for frame in frames] == [0, 1, 2, 3, 4, 5, None]
    assert [round(frame.image.mean() / 40) for frame in frames[:6]] == [0, 1, 2, 3, 4, 5]
    assert inputs.frame_rate(found[0]) == 10


@needs_supervision
@pytest.mark.filterwarnings('ignore')
def test_what_cannot_be_read_is_counted_and_the_rest_goes_on(tmp_path, capfd):
    for name in ('a.png', 'clip.mp4'):
        (tmp_path / name).write_text('no image')
    photo(tmp_path / 'b.png')
    reading = Reading(find_inputs([str(tmp_path)]))
    assert [Path(frame.source.name).name for frame in reading.frames()] == ['b.png']
    said = capfd.readouterr().err
    assert "a.png' cannot be read" in said
    assert "clip.mp4' cannot be read" in said
    with pytest.raises(ConfigError, match='^2 of 3 inputs could not be read'):
        reading.finish()


@pytest.mark.parametrize('command', ['infer', 'embed', 'visualize'])
def test_a_wrong_path_takes_no_torch(command, tmp_path):
    script = ('import sys; from vit_plugin.__main__ import main; sys.modules["torch"] = None; '
              'main(sys.argv[1:])')
    more = ['attention'] if command == 'visualize' else []
    done = subprocess.run(
        [sys.executable, '-c', script, command, *more, 'none.pth', 'none.jpg', '--out', str(tmp_path / 'x.npz')],
        capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "Error: There is no image 'none.jpg'.\n"
