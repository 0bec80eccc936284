"""The sizes of images, and those that annotations state."""

from pathlib import Path

import pytest
from box_scenes import WANTED
from foreign_data import labelimg_yolo
from image_folders import write_coco
from listings import boxes_of, notes_of
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.findings import Findings
from anyfolder.readers.image_sizes import with_right_size
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.records import ImageRecord


def read(folder, **options):
    return read_annotated_folder(Tree(folder), **options)


def sized(stated: tuple[float, float]) -> tuple[list[ImageRecord], Findings]:
    """An image of 64 x 48 pixels with the size that an annotation states, and what is noted."""
    findings = Findings()
    record = ImageRecord(Path('0.jpg'), size=(64, 48), stated=stated, origin='0.json')
    return with_right_size([record], findings), findings


@pytest.mark.parametrize(
    ('stated', 'words'),
    [
        ((48, 64), 'width and height are swapped in the annotation'),
        ((128, 96), 'image sizes differ from their annotation'),
        ((1, 1), 'image sizes differ from their annotation'),
        ((64, -48), 'image sizes differ from their annotation'),
    ],
)
def test_sizes_are_those_of_the_files(stated, words):
    kept, findings = sized(stated)
    assert not kept
    [((what, remedy), kind)] = findings.wrong.items()
    assert what == words
    assert remedy
    assert kind.examples == [f'0.jpg with 64 x 48 pixels, and {stated[0]} x {stated[1]} in 0.json']


@pytest.mark.parametrize('stated', [(0, 0), (64, 48), (64.0, 48.0)])
def test_sizes_that_are_not_stated_are_those_of_the_files(stated):
    kept, findings = sized(stated)
    assert kept
    assert not findings.rows()


def test_a_size_that_is_a_pixel_off_is_no_error():
    """OpenLabeling#52."""
    kept, findings = sized((63, 48))
    assert kept
    assert findings.rows() == [
        ('sizes off by a pixel in the annotation, corrected by the files', 1, ['0.json'])
    ]


@pytest.mark.parametrize(
    'size',
    [
        '"width": 0, "height": 0',
        '"width": null, "height": null',
        '"width": NaN, "height": NaN',
        '"license": 1',
        '"width": "64", "height": "48"',
    ],
)
def test_what_is_no_size_in_a_file_is_not_stated(tmp_path, size):
    write_coco(tmp_path)
    file = tmp_path / 'annotations/instances_train2017.json'
    text = file.read_text()
    assert '"width": 64, "height": 48' in text
    file.write_text(text.replace('"width": 64, "height": 48', size))
    found = read(tmp_path)
    assert {record.size for record in found.train} == {(64, 48)}
    assert boxes_of(found) == WANTED


def test_an_image_that_cannot_be_read_is_left_out_and_named(tmp_path):
    labelimg_yolo(tmp_path)
    (tmp_path / 'images/3.png').write_bytes(b'not an image')
    found = read(tmp_path)
    assert sum(boxes_of(found).values()) == 18
    assert ('images left out, since they cannot be read', 1) in notes_of(found)
    for path in tmp_path.rglob('*.png'):
        path.write_bytes(b'not an image')
    with rejects('none of 10 images can be read, such as .*; check how they were saved'):
        read(tmp_path)
