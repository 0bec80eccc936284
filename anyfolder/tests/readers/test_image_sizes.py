"""The sizes of images, and those that annotations state."""

from pathlib import Path

import pytest
from box_scenes import EXPECTED_BOXES
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


def compared(stated: tuple[float, float]) -> tuple[list[ImageRecord], Findings]:
    """An image of 64 x 48 pixels, if this size in its annotation is accepted, and the findings."""
    findings = Findings()
    record = ImageRecord(Path('0.jpg'), size=(64, 48), stated_size=stated, origin='0.json')
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
def test_stated_sizes_that_differ_from_the_files_are_rejected(stated, words):
    kept, findings = compared(stated)
    assert not kept
    [((what, remedy), kind)] = findings.errors.items()
    assert what == words
    assert remedy
    assert kind.examples == [f'0.jpg with 64 x 48 pixels, and {stated[0]} x {stated[1]} in 0.json']


@pytest.mark.parametrize('stated', [(0, 0), (64, 48), (64.0, 48.0)])
def test_missing_and_equal_sizes_are_accepted(stated):
    kept, findings = compared(stated)
    assert kept
    assert not findings.rows()


def test_size_that_is_off_by_a_pixel_is_corrected():
    """OpenLabeling#52."""
    kept, findings = compared((63, 48))
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
def test_missing_and_invalid_sizes_in_a_file_are_ignored(tmp_path, size):
    write_coco(tmp_path)
    file = tmp_path / 'annotations/instances_train2017.json'
    text = file.read_text()
    assert '"width": 64, "height": 48' in text
    file.write_text(text.replace('"width": 64, "height": 48', size))
    listing = read(tmp_path)
    assert {record.size for record in listing.train} == {(64, 48)}
    assert boxes_of(listing) == EXPECTED_BOXES


def test_unreadable_images_are_left_out_unless_all_are_unreadable(tmp_path):
    labelimg_yolo(tmp_path)
    (tmp_path / 'images/3.png').write_bytes(b'not an image')
    listing = read(tmp_path)
    assert sum(boxes_of(listing).values()) == 18
    assert ('images left out, since they cannot be read', 1) in notes_of(listing)
    for path in tmp_path.rglob('*.png'):
        path.write_bytes(b'not an image')
    with rejects('none of 10 images can be read, such as .*; check how they were saved'):
        read(tmp_path)
