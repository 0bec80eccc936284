"""What a folder leaves open is answered by the lines of a layout file that its error ends in."""

import ast
import traceback
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from public_scene import Scene
from unclear_scenes import UNCLEAR, box_table, box_table_without_header, boxes_beside_folders

import anyfolder
from anyfolder.errors import InputError
from anyfolder.layouts.layout_text import as_lines
from anyfolder.layouts.patterns_of_files import paired_patterns, patterns_of

READERS = Path(anyfolder.__file__).parent / 'readers'


def refusal_of(folder, task):
    with pytest.raises(InputError) as raised:
        anyfolder.read(folder, task=task)
    return raised.value


@pytest.mark.parametrize('unclear', UNCLEAR, ids=lambda one: one.write.__name__)
def test_an_unclear_folder_is_read_with_the_lines_of_its_error(tmp_path, unclear):
    unclear.write(Scene(tmp_path))
    sentence, _, lines = str(refusal_of(tmp_path, unclear.task)).partition('such as:\n\n')
    assert unclear.words in sentence
    (tmp_path / 'anyfolder.yaml').write_text(lines)
    found = anyfolder.read(tmp_path, task=unclear.task)
    assert found.classes == unclear.classes
    assert len([*chain(*found.splits.values())]) == unclear.images


def test_every_question_of_the_readers_is_asked_above(tmp_path):
    asked = {
        (file.name, node.lineno)
        for file in READERS.rglob('*.py')
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Raise) and 'UnclearError' in ast.unparse(node)
    }
    met = set()
    for unclear in UNCLEAR:
        folder = tmp_path / unclear.write.__name__
        unclear.write(Scene(folder))
        cause = refusal_of(folder, unclear.task)
        while cause.__cause__:
            cause = cause.__cause__
        last = traceback.extract_tb(cause.__traceback__)[-1]
        met.add((Path(last.filename).name, last.lineno))
    assert met == asked


def test_yolo_with_left_upper_corners_is_one_question(tmp_path):
    scene, random, starts = Scene(tmp_path), np.random.default_rng(0), []
    for i in range(12):
        scene.images(f'images/{i}.jpg', size=(100, 100))
        starts.append(random.integers(0, 60, 2).tolist())
        scene.text(f'labels/{i}.txt', f'0 {starts[i][0] / 100} {starts[i][1] / 100} 0.4 0.4')
    scene.text('classes.txt', 'bar')
    sentence, _, lines = str(refusal_of(tmp_path, 'detection')).partition('such as:\n\n')
    assert 'seem to be left, top, width, height instead of center x' in sentence
    (tmp_path / 'anyfolder.yaml').write_text(lines)
    found = anyfolder.read(tmp_path, task='detection')
    for image in chain(*found.splits.values()):
        assert image.objects[0].box == pytest.approx((*starts[int(image.path.stem)], 40, 40))


@pytest.mark.parametrize(
    ('write', 'first'),
    [
        (box_table, (0, 0, 20, 15)),
        (box_table_without_header, (10, 8, 9, 7)),
        (boxes_beside_folders, (0, 0, 20, 15)),
    ],
)
def test_a_table_of_boxes_is_read_by_the_lines_of_its_question(tmp_path, write, first):
    write(Scene(tmp_path))
    lines = str(refusal_of(tmp_path, 'detection')).partition('such as:\n\n')[2]
    (tmp_path / 'anyfolder.yaml').write_text(lines)
    found = anyfolder.read(tmp_path, task='detection')
    for image in chain(*found.splits.values()):
        [one] = image.objects
        number = int(image.path.stem)
        assert one.box == (first[0] + number, first[1] + number, *first[2:])
        assert one.label == ('car', 'bus')[number % 2]


# Pairs of an image and its labels, and the patterns of both.
PAIRS = {
    'side by side': 'a/1.jpg a/1_mask.png a/2.jpg a/2_mask.png a/{name}.jpg a/{name}_mask.png',
    'in folders': 'i/x/1.jpg m/x/1.png i/y/2.jpg m/y/2.png i/{a}/{name}.jpg m/{a}/{name}.png',
    'in splits': 'train/i/1.jpg train/m/1.png val/i/2.jpg val/m/2.png {split}/i/{name}.jpg '
    '{split}/m/{name}.png',
    'of other suffixes': 'i/1.jpg m/1.png i/2.png m/2.png i/{name}.* m/{name}.png',
    'of one': 'i/1.jpg m/1.png i/{name}.jpg m/{name}.png',
}


@pytest.mark.parametrize('how', PAIRS)
def test_patterns_of_pairs(how):
    *names, image, label = PAIRS[how].split()
    files = [Path('data', name) for name in names]
    found = paired_patterns(Path('data'), [*zip(files[::2], files[1::2], strict=True)])
    assert found == ([image], [label])


def test_names_without_a_rule_have_no_patterns():
    folder = Path('data')
    pairs = [(folder / '1.jpg', folder / 'x.png'), (folder / '2.jpg', folder / 'y.png')]
    assert paired_patterns(folder, pairs) is None


def test_patterns_of_files():
    files = [Path('d', name) for name in ('train/a.json', 'val/b.json', 'c.json')]
    assert patterns_of(Path('d'), files) == ['{split}/*.json', 'c.json']


def test_lines_are_plain_and_in_quotes_where_they_must_be():
    content = dict(format='masks', images='{split}/*.jpg', classes={'0': None, '#ff0000': 'no'})
    assert as_lines(content) == (
        "format: masks\nimages: '{split}/*.jpg'\nclasses: {'0': ~, '#ff0000': 'no'}\n"
    )
