"""Images by split, each file in one split."""

import json
from pathlib import Path

import pytest
from foreign_data import write
from image_folders import write_coco, write_voc
from listings import notes_of, sizes_of
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.division import furthest
from anyfolder.readers.image_tree import Tree

TRAIN = 'annotations/instances_train2017.json'


def read(folder: Path):
    return read_annotated_folder(Tree(folder))


@pytest.mark.parametrize('remove', [['val'], ['val', 'train']])
def test_held_out_images_are_the_same_each_time(tmp_path, remove):
    write_voc(tmp_path, train=20, val=0)
    for name in remove:
        (tmp_path / f'ImageSets/Main/{name}.txt').unlink()
    first, again = read(tmp_path), read(tmp_path)
    assert first.held_out
    assert sizes_of(first) == [18, 2, 0]
    assert [record.path for record in first.val] == [record.path for record in again.val]


def test_error_on_a_validation_class_names_the_similar_training_class(tmp_path):
    file = write_voc(tmp_path) / 'Annotations/004.xml'
    file.write_text(file.read_text().replace('>bar<', '>Bar<'))
    with rejects("to validate, has the class 'Bar', which has no training data, only of 'bar'"):
        read(tmp_path)


def test_image_that_is_listed_twice_is_counted_once(tmp_path):
    write_coco(tmp_path)
    content = json.loads((tmp_path / TRAIN).read_text())
    image, rows = content['images'][0], content['annotations']
    content['images'].append(dict(image, id=99))
    of_image = [row for row in rows if row['image_id'] == image['id']]
    rows += [dict(row, image_id=99, id=100 + i) for i, row in enumerate(of_image)]
    write(tmp_path, TRAIN, json.dumps(content))
    listing = read(tmp_path)
    assert sum(len(record.instances) for record in listing.train + listing.val) == 20
    assert ('images listed twice, counted once', 1) in notes_of(listing)


def test_images_in_two_splits_are_left_out_of_training(tmp_path):
    write_coco(tmp_path)
    content = json.loads((tmp_path / TRAIN).read_text())
    content['images'] = content['images'][:3]
    ids = [image['id'] for image in content['images']]
    content['annotations'] = [row for row in content['annotations'] if row['image_id'] in ids]
    write(tmp_path, TRAIN.replace('train', 'val'), json.dumps(content))
    listing = read(tmp_path)
    assert not {record.path for record in listing.train} & {record.path for record in listing.val}
    assert len(listing.val) == 3
    assert ('images in several splits, left out of training', 3) in notes_of(listing)


@pytest.mark.parametrize(
    ('shift', 'words'),
    [(0, 'none to train on'), (2, 'two label files with different content')],
)
def test_two_files_that_list_all_training_images_raise(tmp_path, shift, words):
    """With the same boxes, no image is left to train on; shifted boxes contradict each other."""
    write_coco(tmp_path)
    rows = json.loads((tmp_path / TRAIN).read_text())
    rows['images'] = [dict(row, file_name=f'train2017/{row["id"]}.jpg') for row in rows['images']]
    for row in rows['annotations']:
        row['bbox'][0] += shift
    write(tmp_path, TRAIN.replace('train', 'val'), json.dumps(rows))
    with rejects(words):
        read(tmp_path)


def test_furthest_returns_the_split_furthest_from_training():
    assert furthest(['train', None, 'val']) == 'val'
    assert furthest(['test', 'val']) == 'test'
    assert furthest([None]) is None
