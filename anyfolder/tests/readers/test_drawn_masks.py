"""Masks that are drawn from polygons and run lengths."""

import json

import numpy as np
import pytest
from foreign_data import labelme, write
from image_folders import write_coco
from rejection import rejects

from anyfolder.readers.drawn_masks import class_map
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.mask_folders import read_mask_folder

TRAIN = 'annotations/instances_train2017.json'


def outline(box: list[int]) -> list[int]:
    left, top, width, height = box
    return [left, top, left + width, top, left + width, top + height, left, top + height]


def runs(box: list[int]) -> dict:
    """COCO's run lengths of a box in an image of 64 x 48 pixels."""
    left, top, width, height = box
    mask = np.zeros((48, 64), np.uint8)
    mask[top : top + height, left : left + width] = 1
    edges = np.flatnonzero(np.diff(mask.flatten('F'), prepend=0, append=0))
    return dict(size=[48, 64], counts=np.diff([0, *edges, mask.size]).tolist())


@pytest.mark.parametrize(
    'write_mask',
    [
        outline,
        lambda box: [outline(box), [], [1, 1, 2, 2]],
        runs,
        lambda box: [runs(box)],
    ],
)
def test_polygons_and_run_lengths_are_the_same_masks(tmp_path, write_mask):
    write_coco(tmp_path)
    content = json.loads((tmp_path / TRAIN).read_text())
    for row in content['annotations']:
        row['segmentation'] = write_mask(row['bbox'])
    write(tmp_path, TRAIN, json.dumps(content))
    listing = read_mask_folder(Tree(tmp_path))
    assert listing.classes == ('background', 'square', 'bar')
    pixels = np.bincount(class_map(listing, listing.train[0]).flatten())
    _, _, width, height = listing.train[0].instances[0].box
    assert pixels[1] == width * height


def test_regions_to_ignore_and_background_are_drawn_as_such(tmp_path):
    labelme(tmp_path)
    for name, label in (('0.json', '__ignore__'), ('1.json', '_background_')):
        text = (tmp_path / name).read_text()
        write(tmp_path, name, text.replace('"square"', f'"{label}"'))
    listing = read_mask_folder(Tree(tmp_path))
    assert listing.classes == ('background', 'bar', 'square')
    values = {
        record.path.stem: {*np.unique(class_map(listing, record)).tolist()}
        for record in listing.train + listing.val
    }
    assert (values['0'], values['1'], values['2']) == ({0, 1, 255}, {0, 1}, {0, 1, 2})


def test_masks_cannot_hold_hundreds_of_classes(tmp_path):
    write_coco(tmp_path)
    content = json.loads((tmp_path / TRAIN).read_text())
    ids, row = [image['id'] for image in content['images']], content['annotations'][0]
    row['segmentation'] = [outline(row['bbox'])]
    content['annotations'] = [
        dict(row, id=i, image_id=ids[i % len(ids)], category_id=i) for i in range(300)
    ]
    content['categories'] = [dict(id=i, name=f'class {i}') for i in range(300)]
    write(tmp_path, TRAIN, json.dumps(content))
    with rejects(r'has polygons of \d+ classes, but masks can have 254 and the background'):
        read_mask_folder(Tree(tmp_path))
