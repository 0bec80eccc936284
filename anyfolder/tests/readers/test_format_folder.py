"""What a folder has besides the annotations of a format."""

import json

import pytest
from box_scenes import WANTED, open_images, supervisely
from foreign_data import coco_json, save, write
from image_folders import scenes, write_coco
from listings import boxes_of, notes_of, sizes_of
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree

TRAIN = 'annotations/instances_train2017.json'


def read(folder, **options):
    return read_annotated_folder(Tree(folder), **options)


def test_of_several_files_those_with_boxes_are_read(tmp_path):
    write_coco(tmp_path, count=3)
    write_coco(tmp_path, count=2, name='instances_val2017')
    write_coco(tmp_path, count=1, name='instances_test2017')
    write(tmp_path, 'annotations/captions_train2017.json', '{}')
    keypoints = (tmp_path / TRAIN).read_text()
    write(tmp_path, 'annotations/person_keypoints_train2017.json', keypoints)
    found = read(tmp_path)
    assert found.classes == ('square', 'bar')
    assert sizes_of(found) == [3, 2, 1]
    notes = dict(notes_of(found))
    assert notes['files left out, .json'] == 1
    assert notes['files left out, since another one has the boxes of these images'] == 1


def in_batches(folder, *batches):
    """A COCO file for each of some ranges of the ten scenes."""
    found = list(scenes(10))
    for i, (image, _) in enumerate(found):
        save(folder, f'images/{i}.jpg', image)
    for number, batch in enumerate(batches):
        names = [f'{i}.jpg' for i in batch]
        write(folder, f'job_{number}.json', coco_json(names, [found[i][1] for i in batch]))


@pytest.mark.parametrize('second', [range(4, 10), range(2, 10)])
def test_files_of_one_split_are_united(tmp_path, second):
    in_batches(tmp_path, range(4), second)
    assert boxes_of(read(tmp_path)) == WANTED


def test_files_of_one_split_that_say_different_things_of_an_image_are_an_error(tmp_path):
    in_batches(tmp_path, range(10), range(5))
    file = tmp_path / 'job_1.json'
    file.write_text(file.read_text().replace('"square"', '"star"'))
    with rejects(r'have two label files.*job_0.*job_1'):
        read(tmp_path)


def test_a_split_may_have_no_object_at_all(tmp_path):
    write_coco(tmp_path, count=4)
    write_coco(tmp_path, count=2, name='instances_val2017')
    file = tmp_path / TRAIN.replace('train', 'val')
    file.write_text(json.dumps(dict(json.loads(file.read_text()), annotations=[])))
    found = read(tmp_path)
    assert (sizes_of(found), found.held_out) == ([4, 2, 0], False)


@pytest.mark.parametrize('name', ['class-descriptions-boxable.csv', 'names.csv'])
def test_open_images_has_the_names_of_classes_in_a_table(tmp_path, name):
    open_images(tmp_path)
    (tmp_path / 'classes.csv').rename(tmp_path / name)
    write(tmp_path, 'prices.csv', 'a,b\n1,2')
    found = read(tmp_path)
    assert found.classes == ('bar', 'square')
    assert notes_of(found) == [('files left out, .csv', 1)]


def test_a_class_of_open_images_without_a_name_keeps_its_id(tmp_path):
    open_images(tmp_path)
    write(tmp_path, 'classes.csv', '/m/0b,bar\n/m/0x,circle')
    assert read(tmp_path).classes == ('/m/0s', 'bar')


def test_the_classes_of_supervisely_are_in_the_order_of_its_meta_file(tmp_path):
    supervisely(tmp_path)
    file = tmp_path / 'meta.json'
    content = json.loads(file.read_text())
    names = [one['title'] for one in content['classes']]
    assert names == sorted(names)
    content['classes'].reverse()
    content['classes'].insert(0, dict(title='unused', shape='any'))
    file.write_text(json.dumps(content))
    found = read(tmp_path)
    assert list(found.classes) == names[::-1]
    notes = dict(notes_of(found))
    assert notes['class names left out, since no training object has them'] == 1
    assert 'files left out, .json' not in notes
