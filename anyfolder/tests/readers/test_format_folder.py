"""The files of a folder besides the annotations of its format."""

import json

import pytest
from box_scenes import EXPECTED_BOXES, open_images, supervisely
from foreign_data import coco_json, save, write
from image_folders import scenes, write_coco
from listings import boxes_of, notes_of, sizes_of
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree

TRAIN = 'annotations/instances_train2017.json'


def read(folder, **options):
    return read_annotated_folder(Tree(folder), **options)


def test_files_with_boxes_are_read_and_not_captions_or_keypoints(tmp_path):
    write_coco(tmp_path, count=3)
    write_coco(tmp_path, count=2, name='instances_val2017')
    write_coco(tmp_path, count=1, name='instances_test2017')
    write(tmp_path, 'annotations/captions_train2017.json', '{}')
    keypoints = (tmp_path / TRAIN).read_text()
    write(tmp_path, 'annotations/person_keypoints_train2017.json', keypoints)
    listing = read(tmp_path)
    assert listing.classes == ('square', 'bar')
    assert sizes_of(listing) == [3, 2, 1]
    notes = dict(notes_of(listing))
    assert notes['files left out, .json'] == 1
    assert notes['files left out, since another one has the boxes of these images'] == 1


def write_batches(folder, *batches):
    """The images of ten scenes, and a COCO file for each of some ranges of them."""
    pictures = scenes(10)
    for i, (image, _) in enumerate(pictures):
        save(folder, f'images/{i}.jpg', image)
    for number, batch in enumerate(batches):
        names = [f'{i}.jpg' for i in batch]
        write(folder, f'job_{number}.json', coco_json(names, [pictures[i][1] for i in batch]))


@pytest.mark.parametrize('second', [range(4, 10), range(2, 10)])
def test_files_of_one_split_are_united(tmp_path, second):
    write_batches(tmp_path, range(4), second)
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES


def test_file_of_other_images_is_used_next_to_one_of_instances(tmp_path):
    write_batches(tmp_path, range(4), range(4, 10))
    (tmp_path / 'job_0.json').rename(tmp_path / 'instruments.json')
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES


def test_files_of_one_split_with_different_labels_of_an_image_raise(tmp_path):
    write_batches(tmp_path, range(10), range(5))
    file = tmp_path / 'job_1.json'
    file.write_text(file.read_text().replace('"square"', '"star"'))
    with rejects(r'have two label files.*job_0.*job_1'):
        read(tmp_path)


def test_split_may_have_no_objects(tmp_path):
    write_coco(tmp_path, count=4)
    write_coco(tmp_path, count=2, name='instances_val2017')
    file = tmp_path / TRAIN.replace('train', 'val')
    file.write_text(json.dumps(dict(json.loads(file.read_text()), annotations=[])))
    listing = read(tmp_path)
    assert (sizes_of(listing), listing.held_out) == ([4, 2, 0], False)


@pytest.mark.parametrize('name', ['class-descriptions-boxable.csv', 'names.csv'])
def test_class_names_of_open_images_come_from_a_table(tmp_path, name):
    open_images(tmp_path)
    (tmp_path / 'classes.csv').rename(tmp_path / name)
    write(tmp_path, 'prices.csv', 'a,b\n1,2')
    listing = read(tmp_path)
    assert listing.classes == ('bar', 'square')
    assert notes_of(listing) == [('files left out, .csv', 1)]


def test_class_of_open_images_without_a_name_keeps_its_id(tmp_path):
    open_images(tmp_path)
    write(tmp_path, 'classes.csv', '/m/0b,bar\n/m/0x,circle')
    assert read(tmp_path).classes == ('/m/0s', 'bar')


@pytest.mark.parametrize('row', ['/m/0x,circle, round', '/m/0x'])
def test_class_of_open_images_must_have_one_name(tmp_path, row):
    open_images(tmp_path)
    write(tmp_path, 'classes.csv', f'/m/0b,bar\n/m/0s,square\n/m/0y,cross\n{row}')
    with rejects("row of '/m/0x' in .*classes.csv' must have one class name; quote a name"):
        read(tmp_path)


def test_classes_of_supervisely_are_in_the_order_of_its_meta_file(tmp_path):
    supervisely(tmp_path)
    file = tmp_path / 'meta.json'
    content = json.loads(file.read_text())
    names = [row['title'] for row in content['classes']]
    assert names == sorted(names)
    content['classes'].reverse()
    content['classes'].insert(0, dict(title='unused', shape='any'))
    file.write_text(json.dumps(content))
    listing = read(tmp_path)
    assert list(listing.classes) == names[::-1]
    notes = dict(notes_of(listing))
    assert notes['class names left out, since no training object has them'] == 1
    assert 'files left out, .json' not in notes


def test_entries_of_supervisely_that_are_no_classes_are_left_out(tmp_path):
    supervisely(tmp_path)
    file = tmp_path / 'meta.json'
    content = json.loads(file.read_text())
    file.write_text(json.dumps(dict(content, classes=[3, None, *content['classes']])))
    assert read(tmp_path).classes == ('bar', 'square')
