"""Errors on ambiguous folders end with a layout file, by which the folder can be read."""

import ast
import traceback
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from public_maps import mask_of
from public_scene import Scene
from unclear_scenes import UNCLEAR, box_table, box_table_without_header, boxes_next_to_folders

import anyfolder
from anyfolder.errors import InputError
from anyfolder.layouts.answers import complete_layout
from anyfolder.layouts.layout_text import layout_as_yaml
from anyfolder.layouts.path_pattern import PathPattern
from anyfolder.layouts.patterns_of_files import paired_patterns, patterns_of

READERS = Path(anyfolder.__file__).parent / 'readers'


def error_of(folder, task):
    with pytest.raises(InputError) as raised:
        anyfolder.read(folder, task=task)
    return raised.value


def read_as_suggested(folder, task):
    """The sentence of the error, and the data as read with the layout file that it suggests."""
    sentence, _, layout = str(error_of(folder, task)).partition('such as:\n\n')
    (folder / 'anyfolder.yaml').write_text(layout)
    return sentence, anyfolder.read(folder, task=task)


@pytest.mark.parametrize('unclear', UNCLEAR, ids=lambda unclear: unclear.write.__name__)
def test_unclear_folders_are_read_with_the_layout_of_their_error(tmp_path, unclear):
    unclear.write(Scene(tmp_path))
    sentence, data = read_as_suggested(tmp_path, unclear.task)
    assert unclear.words in sentence
    assert data.classes == unclear.classes
    assert len([*chain(*data.splits.values())]) == unclear.images


def test_every_unclear_error_of_the_readers_has_a_scene(tmp_path):
    """The lines that raise an ``UnclearError``, in the code and with the scenes, are the same."""
    in_code = {
        (file.name, node.lineno)
        for file in READERS.rglob('*.py')
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Raise) and 'UnclearError' in ast.unparse(node)
    }
    reached = set()
    for unclear in UNCLEAR:
        folder = tmp_path / unclear.write.__name__
        unclear.write(Scene(folder))
        cause = error_of(folder, unclear.task)
        while cause.__cause__:
            cause = cause.__cause__
        last = traceback.extract_tb(cause.__traceback__)[-1]
        reached.add((Path(last.filename).name, last.lineno))
    assert reached == in_code


def test_yolo_boxes_with_upper_left_corners_are_unclear(tmp_path):
    scene = Scene(tmp_path)
    corners = np.random.default_rng(0).integers(0, 60, (12, 2)).tolist()
    for i, (left, top) in enumerate(corners):
        scene.images(f'images/{i}.jpg', size=(100, 100))
        scene.text(f'labels/{i}.txt', f'0 {left / 100} {top / 100} 0.4 0.4')
    scene.text('classes.txt', 'bar')
    sentence, data = read_as_suggested(tmp_path, 'detection')
    assert 'seem to be left, top, width, height instead of center x' in sentence
    for image in chain(*data.splits.values()):
        assert image.objects[0].box == pytest.approx((*corners[int(image.path.stem)], 40, 40))


@pytest.mark.parametrize(
    ('write', 'first_box'),
    [
        (box_table, (0, 0, 20, 15)),
        (box_table_without_header, (10, 8, 9, 7)),
        (boxes_next_to_folders, (0, 0, 20, 15)),
    ],
)
def test_unclear_box_tables_are_read_with_the_suggested_columns(tmp_path, write, first_box):
    """The box of each image is one pixel further right and down than that of the image before."""
    write(Scene(tmp_path))
    _, data = read_as_suggested(tmp_path, 'detection')
    left, top, width, height = first_box
    for image in chain(*data.splits.values()):
        [found] = image.objects
        number = int(image.path.stem)
        assert found.box == (left + number, top + number, width, height)
        assert found.label == ('car', 'bus')[number % 2]


def test_masks_of_one_name_in_a_folder_per_case_are_read_with_the_suggested_patterns(tmp_path):
    scene = Scene(tmp_path)
    for i in range(6):
        scene.images(f'case {i}/images/scan.png')
        scene.array(f'case {i}/masks/scan.png', mask_of(255, 1))
    sentence, data = read_as_suggested(tmp_path, 'segmentation')
    assert 'class and unlabeled' in sentence
    assert len([*data.images()]) == 6


# Paths of images and their labels in turn, and at the end the expected patterns of both.
PAIRS = {
    'side by side': 'a/1.jpg a/1_mask.png a/2.jpg a/2_mask.png a/{name}.jpg a/{name}_mask.png',
    'in folders': 'i/x/1.jpg m/x/1.png i/y/2.jpg m/y/2.png i/{a}/{name}.jpg m/{a}/{name}.png',
    'in splits': 'train/i/1.jpg train/m/1.png val/i/2.jpg val/m/2.png {split}/i/{name}.jpg '
    '{split}/m/{name}.png',
    'with several suffixes': 'i/1.jpg m/1.png i/2.png m/2.png i/{name}.* m/{name}.png',
    'a single pair': 'i/1.jpg m/1.png i/{name}.jpg m/{name}.png',
    'in a folder per case': 'p1/image.png p1/mask.png p2/image.png p2/mask.png {a}/image.png '
    '{a}/mask.png',
    'with overlapping affixes': 'i/aa.jpg m/aa.png i/aaa.jpg m/aaa.png i/aa{name}.jpg '
    'm/aa{name}.png',
    'in two levels of splits': 'train/train2017/1.jpg train/train2017/1.png val/val2017/2.jpg '
    'val/val2017/2.png {split}/{b}/{name}.jpg {split}/{b}/{name}.png',
    'in the same split twice': 'train/i/train/1.jpg train/m/train/1.png val/i/val/2.jpg '
    'val/m/val/2.png {split}/i/{split}/{name}.jpg {split}/m/{split}/{name}.png',
}


@pytest.mark.parametrize('case', PAIRS)
def test_patterns_of_pairs(case):
    *names, image_pattern, label_pattern = PAIRS[case].split()
    files = [Path('data', name) for name in names]
    pairs = [*zip(files[::2], files[1::2], strict=True)]
    assert paired_patterns(Path('data'), pairs) == ([image_pattern], [label_pattern])
    for pattern, paths in ((image_pattern, names[::2]), (label_pattern, names[1::2])):
        assert all(PathPattern(pattern, 'images').match(path) is not None for path in paths)


def test_unrelated_names_have_no_patterns():
    folder = Path('data')
    pairs = [(folder / '1.jpg', folder / 'x.png'), (folder / '2.jpg', folder / 'y.png')]
    assert paired_patterns(folder, pairs) is None


def test_patterns_of_files():
    files = [Path('d', name) for name in ('train/a.json', 'val/b.json', 'c.json')]
    assert patterns_of(Path('d'), files) == ['{split}/*.json', 'c.json']
    files = [Path('d', name) for name in ('train/train2017/1.json', 'val/val2017/2.json')]
    assert patterns_of(Path('d'), files) == ['{split}/*/*.json']


def test_layout_text_has_quotes_only_where_needed():
    content = dict(format='masks', images='{split}/*.jpg', classes={'0': None, '#ff0000': 'no'})
    assert layout_as_yaml(content) == (
        "format: masks\nimages: '{split}/*.jpg'\nclasses: {'0': ~, '#ff0000': 'no'}\n"
    )


def test_damaged_mask_does_not_hide_the_error(tmp_path):
    """Without its values, no layout is proposed."""
    scene = Scene(tmp_path)
    noise = np.random.default_rng(0).integers(0, 255, (30, 40), np.uint8)
    for i in range(2):
        scene.images(f'i/{i}.jpg')
        scene.array(f'm/{i}.png', noise)
    file = tmp_path / 'm/1.png'
    file.write_bytes(file.read_bytes()[:500])
    pairs = [(tmp_path / f'i/{i}.jpg', tmp_path / f'm/{i}.png') for i in range(2)]
    assert complete_layout(dict(format='masks', pairs=pairs), tmp_path, 'segmentation') is None
