"""Pictures are written below a folder, with the relative paths of their images."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from vit_plugin.inference.inputs import Input, find_inputs
from vit_plugin.inference.targets import choose_targets, without_earlier_outputs


def photo(path: Path, value: int = 7) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.full((8, 12, 3), value, np.uint8))
    return path


def targets_below(inputs: list[Input], folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in choose_targets(inputs, folder).values()]


def test_pictures_keep_the_relative_folders_of_their_images(tmp_path):
    for name in ('set/cat/1.jpg', 'set/dog/1.jpg', 'set/2.png'):
        photo(tmp_path / name)
    inputs = find_inputs([str(tmp_path / 'set')])
    assert targets_below(inputs, tmp_path / 'out') == ['2.png', 'cat/1.jpg', 'dog/1.jpg']


@pytest.mark.parametrize(
    ('names', 'expected'),
    [
        (
            ['set/a.png', 'set/a.bmp', 'set/a.JPEG', 'set/b.jpg'],
            {'a.png', 'a.bmp.png', 'a.jpg', 'b.jpg'},
        ),
        (['x/a.jpg', 'y/a.jpg', 'y/b.jpg'], {'x/a.jpg', 'y/a.jpg', 'b.jpg'}),
        (['1/x/a.jpg', '2/x/a.jpg'], {'1/x/a.jpg', '2/x/a.jpg'}),
    ],
)
def test_pictures_of_images_with_equal_names_differ(tmp_path, names, expected):
    inputs = find_inputs([str(photo(tmp_path / name)) for name in names])
    assert {*targets_below(inputs, tmp_path / 'out')} == expected


def test_pictures_of_urls_stay_below_the_folder(tmp_path):
    inputs = find_inputs(
        [
            f'https://example.org/{name}'
            for name in (
                '1/a.jpg',
                '2/a.jpg?x=../3',
                '/3/a.jpg',
                '..',
                '%2e%2e%2fb.png',
                'c%00.png',
            )
        ]
    )
    assert targets_below(inputs, tmp_path / 'out') == [
        'image.png',
        'b.png',
        'c.png',
        'example.org/1/a.jpg',
        'example.org/2/a.jpg',
        'example.org/3/a.jpg',
    ]


def test_the_video_of_a_webcam_stays_below_the_folder(tmp_path, monkeypatch):
    (tmp_path / 'clips').mkdir()
    (tmp_path / 'clips/webcam_0.mp4').touch()
    monkeypatch.chdir(tmp_path)
    inputs = find_inputs(['0', 'clips/webcam_0.mp4'])
    assert targets_below(inputs, tmp_path / 'out') == ['webcam_0.mp4', 'clips/webcam_0.mp4']


def test_pictures_of_an_earlier_run_are_left_out(tmp_path, capsys):
    for name in ('set/a.jpg', 'set/out/a.png', 'set/out/x/b.png'):
        photo(tmp_path / name)
    inputs = find_inputs([str(tmp_path / 'set')])
    remaining = without_earlier_outputs(inputs, [tmp_path / 'set/out', tmp_path / 'found.json'])
    assert [image.name for image in remaining] == [str(tmp_path / 'set/a.jpg')]
    assert capsys.readouterr().err == '2 left out, since they are in a folder of --out.\n'
    # Unless the folder itself is the input.
    inputs = find_inputs([str(tmp_path / 'set/out')])
    assert without_earlier_outputs(inputs, [tmp_path / 'set/out']) == inputs
