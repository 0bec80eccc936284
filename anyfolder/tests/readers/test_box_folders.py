"""Folders with boxes in all formats, and with the faults of real data sets."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from box_scenes import BOX_SCENES, EXPECTED_BOXES, via_table
from foreign_data import (
    coco_json,
    cvat_coco,
    labelimg_yolo,
    labelme,
    roboflow_yolo,
    save,
    ultralytics_yolo,
    write,
)
from image_folders import scenes, write_coco, write_voc
from listings import boxes_of, notes_of, sizes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing

TRAIN = 'annotations/instances_train2017.json'


def read(folder: Path, **options) -> Listing:
    return read_annotated_folder(Tree(folder), **options)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def rewrite(folder: Path, change: Callable[[dict], None]) -> None:
    """Change the content of COCO's file."""
    content = json.loads((folder / TRAIN).read_text())
    change(content)
    write(folder, TRAIN, json.dumps(content))


@pytest.mark.parametrize('write_scene', BOX_SCENES, ids=lambda scene: scene.__name__)
def test_every_format_has_the_same_boxes(tmp_path, write_scene):
    write_scene(tmp_path)
    form, has_splits = BOX_SCENES[write_scene]
    listing = read(tmp_path)
    assert listing.form == form
    assert listing.classes == ('bar', 'square')
    assert boxes_of(listing) == EXPECTED_BOXES
    assert sizes_of(listing) == ([6, 2, 2] if has_splits else [9, 1, 0])
    assert listing.held_out == (not has_splits)


@pytest.mark.parametrize('write_scene', BOX_SCENES, ids=lambda scene: scene.__name__)
def test_listing_as_coco_is_complete(tmp_path, write_scene):
    write_scene(tmp_path)
    listing = read(tmp_path)
    content = json.loads(listing.as_coco(listing.train))
    assert content.keys() == {'info', 'licenses', 'images', 'annotations', 'categories'}
    assert [category['id'] for category in content['categories']] == [1, 2]
    ids = [row['id'] for row in content['annotations']]
    assert ids == [*range(1, len(ids) + 1)]
    assert all(row['area'] > 0 and row['iscrowd'] == 0 for row in content['annotations'])
    assert all((listing.root / image['file_name']).is_file() for image in content['images'])


def test_header_of_via_1_is_no_comment(tmp_path):
    via_table(tmp_path)
    replace(tmp_path / 'via_export_csv.csv', 'filename,file_size', '#filename,file_size')
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES


@pytest.mark.parametrize(
    'write_scene',
    # the YAML of roboflow_yolo and ultralytics_yolo states the splits
    [scene for scene in BOX_SCENES if scene not in (roboflow_yolo, ultralytics_yolo)],
    ids=lambda scene: scene.__name__,
)
def test_list_of_test_images_is_followed_in_every_format(tmp_path, write_scene):
    """No image in the list is for training or validation."""
    write_scene(tmp_path)
    images = sorted([*tmp_path.rglob('*.jpg'), *tmp_path.rglob('*.png')])
    tested = {path.name for path in images[:3]}
    write(tmp_path, 'test.txt', ''.join(f'{path.relative_to(tmp_path)}\n' for path in images[:3]))
    listing = read(tmp_path)
    assert tested <= {record.path.name for record in listing.parts['test']}
    assert not any(record.path in images[:3] for record in listing.train + listing.val)


@pytest.mark.parametrize(
    ('as_written', 'words'),
    [
        (lambda x, y, w, h: [x / 64, y / 48, w / 64, h / 48], 'have values from 0 to 1'),
        (lambda x, y, w, h: [x, y, x + w, y + h], 'seem to be left, top, right, bottom'),
        (lambda x, y, w, h: [x + w / 2, y + h / 2, w, h], 'seem to be center x'),
    ],
)
def test_boxes_in_other_forms_than_coco_states_raise(tmp_path, as_written, words):
    def change_boxes(content):
        for row in content['annotations']:
            row['bbox'] = as_written(*row['bbox'])

    write_coco(tmp_path)
    rewrite(tmp_path, change_boxes)
    with rejects(words) as error:
        read(tmp_path)
    assert '; ' in str(error.value)  # the remedy


@pytest.mark.parametrize(
    ('as_written', 'words'),
    [
        (lambda x, y, w, h: (x - w / 2, y - h / 2, w, h), 'left, top, width, height instead of'),
        (lambda x, y, w, h: (x - w / 2, y - h / 2, x + w / 2, y + h / 2), 'left, top, right'),
        (lambda x, y, w, h: (x * 64, y * 48, w * 64, h * 48), 'have values in pixels instead'),
    ],
)
def test_boxes_in_other_forms_than_yolo_states_raise(tmp_path, as_written, words):
    """Upper left corners once passed for centers, with boxes clipped to their image."""
    generator = np.random.default_rng(0)
    for i in range(12):
        save(tmp_path, f'images/{i}.png', np.full((48, 64, 3), 20 * i, np.uint8))
        sides = generator.uniform(0.1, 0.5, (10, 2))
        boxes = np.concatenate((generator.uniform(sides / 2, 1 - sides / 2), sides), axis=1)
        lines = (f'0 {" ".join(map(str, as_written(*box)))}' for box in boxes.tolist())
        write(tmp_path, f'labels/{i}.txt', '\n'.join(lines))
    write(tmp_path, 'classes.txt', 'bar')
    with rejects(f'the boxes .*{words}'):
        read(tmp_path)


def test_invalid_boxes_can_be_left_out(tmp_path):
    write_coco(tmp_path)
    replace(tmp_path / TRAIN, '[30, 40, 30, 4]', '[90, 40, 30, 4]')
    with rejects(
        r'boxes lie outside of their image \(10, .* or leave them out by skip_invalid=True'
    ):
        read(tmp_path)
    listing = read(tmp_path, skip_invalid=True)
    assert {name for name, *_ in boxes_of(listing)} == {'square'}
    what = 'left out as invalid: boxes lie outside of their image'
    assert notes_of(listing)[0] == (what, 10)


def test_few_invalid_boxes_among_many_are_reported(tmp_path):
    """BCCD has two boxes of 0 x 0 pixels among 4,000."""
    write_coco(tmp_path, count=100)
    file = tmp_path / TRAIN
    file.write_text(file.read_text().replace('[30, 40, 30, 4]', '[30, 40, 0, 0]', 2))
    listing = read(tmp_path)
    assert sum(boxes_of(listing).values()) == 198
    what = 'left out as invalid: boxes have a side of less than a pixel'
    assert notes_of(listing)[0] == (what, 2)
    file.write_text(file.read_text().replace('[30, 40, 30, 4]', '[30, 40, 0, 0]', 1))
    with rejects(r'boxes have a side of less than a pixel \(3, '):
        read(tmp_path)


def test_image_size_is_that_of_the_displayed_image(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6  # rotated by 90 degrees
    (tmp_path / 'images').mkdir()
    for i, (image, _) in enumerate(scenes(10)):
        stored = Image.fromarray(np.rot90(image))  # the orientation rotates it back
        stored.save(tmp_path / f'images/{i}.jpg', exif=exif)
    names = [f'{i}.jpg' for i in range(10)]
    text = coco_json(names, [boxes for _, boxes in scenes(10)])
    write(tmp_path, 'annotations/instances.json', text)
    listing = read(tmp_path)
    assert {record.size for record in listing.train} == {(64, 48)}
    assert boxes_of(listing) == EXPECTED_BOXES


def test_categories_are_classes_by_their_names(tmp_path):
    def change(content):
        first, last = dict(id=0, name='square'), dict(id=9, name=' bar ')
        content['categories'] = [first, *content['categories'], last]
        content['annotations'][1]['category_id'] = 9

    write_coco(tmp_path)
    rewrite(tmp_path, change)
    file = tmp_path / TRAIN
    file.write_text('\ufeff' + file.read_text())
    listing = read(tmp_path)
    # in the order of the categories, without the unused one
    assert listing.classes == ('square', 'bar')
    assert boxes_of(listing) == EXPECTED_BOXES


@pytest.mark.parametrize('other', ['traffic\u00a0light', ' traffic  light ', 'traffic\u200b light'])
def test_names_that_look_the_same_are_one_class(tmp_path, other):
    write_coco(tmp_path)
    text = (tmp_path / TRAIN).read_text().replace('"nothing"', '"traffic light"')
    text = text.replace('"bar"', json.dumps(other))
    write(tmp_path, TRAIN, text.replace('"category_id": 7', '"category_id": 1', 3))
    assert read(tmp_path).classes == ('square', 'traffic light')


@pytest.mark.parametrize('name', ['ignored regions', '__ignore__', 'DontCare'])
def test_regions_to_ignore_are_not_a_class(tmp_path, name):
    """VisDrone, LabelMe and KITTI."""
    write_coco(tmp_path)
    replace(tmp_path / TRAIN, '"bar"', f'"{name}"')
    listing = read(tmp_path)
    assert listing.classes == ('square',)
    instances = (instance for record in listing.train for instance in record.instances)
    assert {instance.name for instance in instances if instance.crowd} == {''}


@pytest.mark.parametrize(('label', 'crowds'), [('__ignore__', 2), ('_background_', 0)])
def test_ignored_and_background_regions_of_labelme_are_not_objects(tmp_path, label, crowds):
    """labelme#899."""
    labelme(tmp_path)
    replace(tmp_path / '0.json', '"square"', f'"{label}"')
    listing = read(tmp_path)
    assert listing.classes == ('bar', 'square')
    first = [record for record in listing.train if record.path.stem == '0']
    rows = json.loads(listing.as_coco(first))['annotations']
    # an ignored region is written for each of the two classes
    assert sum(row['iscrowd'] for row in rows) == crowds


@pytest.mark.parametrize('label', ['" "', 'null'])
def test_objects_without_a_class_raise(tmp_path, label):
    cvat_coco(tmp_path)
    replace(tmp_path / 'annotations/instances_default.json', '"name": "bar"', f'"name": {label}')
    with rejects('objects have no class'):
        read(tmp_path)


def test_difficult_objects_are_ignored(tmp_path):
    labelme(tmp_path)
    replace(tmp_path / '1.json', '"flags": {}, "shape', '"difficult": true, "shape')
    listing = read(tmp_path)
    assert sum(listing.counts(listing.train + listing.val).values()) == 18
    rows = json.loads(listing.as_coco(listing.train + listing.val))['annotations']
    assert sum(row['iscrowd'] for row in rows) == 2


def test_class_names_without_an_object_are_reported(tmp_path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'labels/classes.txt', 'circle\nsquare\nother')
    what = 'class names left out, since no training object has them'
    assert (what, 1, ['other']) in read(tmp_path).findings.rows()


def test_two_formats_in_one_folder_raise(tmp_path):
    write_voc(tmp_path)
    write_coco(tmp_path)
    with rejects('has boxes as COCO and Pascal VOC, in .*; keep one of them'):
        read(tmp_path)


def test_folder_without_boxes_raises_with_what_is_expected(tmp_path):
    save(tmp_path, '0.png', np.zeros((4, 4), np.uint8))
    with rejects('has no boxes: no Annotations.* with the names of the images; put the boxes'):
        read(tmp_path)


@pytest.mark.parametrize('change', [lambda text: text.replace('"bbox"', '"box"'), lambda _: '[]'])
def test_json_of_another_format_raises(tmp_path, change):
    """Such as iNaturalist's image labels, and a detector's results, which are a list."""
    write_coco(tmp_path)
    write(tmp_path, TRAIN, change((tmp_path / TRAIN).read_text()))
    with rejects(f'of the images, but files of another form: {TRAIN}; put the boxes'):
        read(tmp_path)


def test_table_next_to_boxes_in_another_format_is_left_out(tmp_path):
    """The table of the script xml_to_csv, and JSON with two of Datumaro's keys."""
    write_voc(tmp_path)
    write(tmp_path, 'shop.json', '{"items": [{}], "categories": ["a"]}')
    write(tmp_path, 'train_labels.csv', 'filename,class,xmin,ymin,xmax,ymax\n000.png,a,1,1,9,9')
    assert ('files left out, .csv', 1) in notes_of(read(tmp_path))


def test_table_may_have_no_column_of_classes(tmp_path):
    """As Kaggle's wheat heads, with an image without a box, as in VinBigData."""
    for i in range(8):
        save(tmp_path, f'train/{i}.png', np.full((48, 64, 3), 20 * i, np.uint8))
    rows = [f'{i},64,48,"[4.0, 6, 20.0, 24]"' if i else f'{i},64,48,' for i in range(8)]
    write(tmp_path, 'train.csv', '\n'.join(['image_id,width,height,bbox', *rows]))
    listing = read(tmp_path)
    assert listing.classes == ('object',)
    assert sum(boxes_of(listing).values()) == 7
    replace(tmp_path / 'train.csv', '64,48', '99,48')
    with rejects('image sizes differ from their annotation'):
        read(tmp_path)


def test_numbers_without_leading_zeros_find_their_images(tmp_path):
    rows = ['image_id,xmin,ymin,xmax,ymax,class']
    for i, (image, boxes) in enumerate(scenes(10)):
        save(tmp_path, f'{i:05}.png', image)
        rows += [f'{i}.0,{",".join(map(str, box))},{name}' for name, box in boxes]
    write(tmp_path, 'boxes.csv', '\n'.join(rows))
    listing = read(tmp_path)
    assert boxes_of(listing) == EXPECTED_BOXES
    what = 'numbers matched to images or folders whose names have other zeros'
    assert (what, 10) in notes_of(listing)
