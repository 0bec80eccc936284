"""COCO's panoptic format: things, stuff, and the PNGs with their pixels."""

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from image_folders import write_panoptic
from rejection import rejects

from anyfolder.readers.image_tree import Tree
from anyfolder.readers.panoptic import as_panoptic, numbers_in, read_panoptic_folder


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_panoptic(tmp_path / 'scenes')


def change_annotations(folder: Path, split: str, change) -> None:
    file = folder / f'annotations/panoptic_{split}.json'
    content = json.loads(file.read_text())
    change(content)
    file.write_text(json.dumps(content))


def test_things_come_first_and_boxes_are_of_the_pixels(folder):
    listing = read_panoptic_folder(Tree(folder))
    assert (listing.classes, listing.stuff, listing.form) == (
        ('square', 'bar', 'floor'),
        1,
        'COCO panoptic',
    )
    assert [len(listing.parts[split]) for split in ('train', 'val', 'test')] == [4, 2, 0]
    for record in listing.train:
        numbers = numbers_in(record.mask)
        assert [instance.name for instance in record.instances] == ['floor', 'square', 'bar']
        for instance in record.instances[1:]:
            left, top, width, height = instance.box
            assert (numbers[top : top + height, left : left + width] == instance.number).any()
            assert instance.area == (numbers == instance.number).sum()
        assert record.instances[0].area < 44 * 64  # the floor, below four unlabeled rows
    written = as_panoptic(listing.val, listing.classes, listing.stuff)
    assert [category['isthing'] for category in written['categories']] == [1, 1, 0]
    segments = written['annotations'][0]['segments_info']
    assert {segment['category_id'] for segment in segments} == {1, 2, 3}
    assert not listing.findings.rows()


def test_segments_without_pixels_and_pixels_without_segments_are_reported(folder):
    def change(content):
        segments = content['annotations'][0]['segments_info']
        segments[1]['id'] = 4  # of no pixel

    change_annotations(folder, 'train', change)
    listing = read_panoptic_folder(Tree(folder))
    assert [what for what, *_ in listing.findings.rows()] == [
        'segments left out, since they have no pixel',
        'numbers in PNGs that are not listed, taken as no segment',
    ]
    assert len(listing.train[0].instances) == 2


def test_invalid_panoptic_folders_raise(folder, tmp_path):
    png = folder / 'annotations/panoptic_train/1.png'
    cv2.imwrite(str(png), np.zeros((10, 12, 3), np.uint8))
    with rejects(r'another size than .* \(1, the first is .*1\.png with 12'):
        read_panoptic_folder(Tree(folder))
    png.unlink()
    with rejects(r'PNGs of segments are missing .*panoptic_train/1\.png'):
        read_panoptic_folder(Tree(folder))
    assert len(read_panoptic_folder(Tree(folder), skip_invalid=True).train) == 3
    change_annotations(folder, 'val', lambda content: content['categories'][0].update(isthing=1))
    with rejects("'floor' is both a thing and stuff"):
        read_panoptic_folder(Tree(folder))
    (tmp_path / 'empty').mkdir()
    with rejects('has no panoptic annotations; put a panoptic_'):
        read_panoptic_folder(Tree(tmp_path / 'empty'))


def test_folder_without_training_segments_raises(folder):
    def change(content):
        for annotation in content['annotations']:
            annotation['segments_info'] = []

    change_annotations(folder, 'train', change)
    change_annotations(folder, 'val', change)
    with rejects('no image of .* to train on has a segment'):
        read_panoptic_folder(Tree(folder))


def test_list_of_test_images_takes_them_from_training(folder):
    """A name in the list is that of an image and of its PNG."""
    (folder / 'test.txt').write_text('train/3\n')
    listing = read_panoptic_folder(Tree(folder))
    assert [len(listing.parts[split]) for split in ('train', 'val', 'test')] == [3, 2, 1]


def test_two_annotations_of_an_image_raise(folder):
    """Their segments have one PNG each, so that one annotation would be lost."""

    def change(content):
        content['annotations'][1]['image_id'] = content['annotations'][0]['image_id']

    change_annotations(folder, 'train', change)
    with rejects('two annotations have the image_id 0'):
        read_panoptic_folder(Tree(folder))


def test_two_segments_of_one_id_raise(folder):
    def change(content):
        segments = content['annotations'][0]['segments_info']
        segments[2]['id'] = segments[1]['id']

    change_annotations(folder, 'train', change)
    with rejects('segments have the same id as another one .*segment 300 of .*; correct the ids'):
        read_panoptic_folder(Tree(folder))


def test_photograph_in_place_of_segments_raises_at_once(folder):
    numbers = np.arange(128 * 128).reshape(128, 128)
    colors = np.stack([numbers >> 16, numbers >> 8 & 255, numbers & 255], -1)  # BGR
    cv2.imwrite(str(folder / 'annotations/panoptic_train/1.png'), colors.astype(np.uint8))
    with rejects(r'PNGs of segments cannot be read .*1\.png \(it has 16384 colors, as a photo'):
        read_panoptic_folder(Tree(folder))


@pytest.mark.parametrize(
    ('values', 'words'),
    [
        (dict(name=None), 'a category has no name'),
        (dict(id=9), 'two categories have the same id'),
    ],
)
def test_categories_have_a_name_and_an_id_of_their_own(folder, values, words):
    change_annotations(folder, 'train', lambda content: content['categories'][0].update(values))
    with rejects(words):
        read_panoptic_folder(Tree(folder))
