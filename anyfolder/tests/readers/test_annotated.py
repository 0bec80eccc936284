"""Folders with boxes on the disk, in the forms and with the faults that other people's have."""

import base64
import io
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml
from foreign_data import (
    BOXES,
    coco_json,
    cvat_coco,
    cvat_voc,
    cvat_yolo,
    labelimg_yolo,
    labelme,
    roboflow_yolo,
    save,
    write,
)
from hypothesis import given
from hypothesis import strategies as st
from image_folders import scenes, write_coco, write_voc
from listings import notes_of, sizes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.drawn_masks import class_map
from anyfolder.readers.findings import Findings
from anyfolder.readers.formats.yolo_line_form import _dimensions
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.mask_folders import read_mask_folder
from anyfolder.readers.object_checks import check_instances
from anyfolder.readers.records import ImageRecord, Instance


def read(folder: Path, **options) -> Listing:
    return read_annotated_folder(Tree(folder), **options)


def boxes_of(listing: Listing) -> Counter:
    """The name and the corners of all boxes."""
    found = Counter()
    for photo in (photo for part in listing.parts.values() for photo in part):
        for instance in photo.instances:
            left, top, width, height = instance.box
            found[
                (
                    instance.name,
                    *np.round((left, top, left + width, top + height)).astype(int).tolist(),
                )
            ] += 1
    return found


WANTED = Counter((name, *box) for _, boxes in scenes(10) for name, box in boxes)


@pytest.mark.parametrize('write_form', BOXES, ids=lambda form: form.__name__)
def test_every_form_has_the_same_boxes(tmp_path, write_form):
    write_form(tmp_path)
    form, says_parts = BOXES[write_form]
    found = read(tmp_path)
    assert found.form == form
    assert found.classes == ('bar', 'square')
    assert boxes_of(found) == WANTED
    sizes = sizes_of(found)
    assert (sizes, found.held_out) == (([6, 2, 2], False) if says_parts else ([9, 1, 0], True))


@pytest.mark.parametrize('write_form', BOXES, ids=lambda form: form.__name__)
def test_the_canonical_file_is_complete(tmp_path, write_form):
    write_form(tmp_path)
    found = read(tmp_path)
    content = json.loads(found.as_coco(found.train))
    assert content.keys() == {'info', 'licenses', 'images', 'annotations', 'categories'}
    assert [category['id'] for category in content['categories']] == [1, 2]
    assert [row['id'] for row in content['annotations']] == [
        *range(1, len(content['annotations']) + 1)
    ]
    assert all(row['area'] > 0 and row['iscrowd'] == 0 for row in content['annotations'])
    assert all((found.root / image['file_name']).is_file() for image in content['images'])


def test_names_in_voc_may_have_spaces(tmp_path):
    write_voc(tmp_path)
    for old, new in (('000', 'img 0'), ('001', 'an image')):
        for place in ('Annotations/{}.xml', 'JPEGImages/{}.jpg'):
            (tmp_path / place.format(old)).rename(tmp_path / place.format(new))
    (tmp_path / 'ImageSets/Main/train.txt').write_text('img 0\nan image  1\n002 -1\n003\n')
    assert [photo.path.stem for photo in read(tmp_path).train] == [
        '002',
        '003',
        'an image',
        'img 0',
    ]


def test_lists_of_voc_are_of_the_annotations_beside_them(tmp_path):
    """VOC2007 and VOC2012, unpacked in one folder."""
    for year, folder in enumerate(('VOC2007', 'VOC2012')):
        write_voc(tmp_path / folder, train=4 - 2 * year, val=2 + 2 * year)
    found = read(tmp_path)
    assert [len(part) for part in found.parts.values()] == [6, 6, 0]
    assert [photo.path.stem for photo in found.train if 'VOC2012' in photo.path.parts] == [
        '000',
        '001',
    ]


def test_corners_of_voc_are_counted_from_one_unless_one_is_zero(tmp_path):
    write_voc(tmp_path)
    first = read(tmp_path).train[0].instances[1].box
    assert first == (30, 40, 30, 4)
    change(tmp_path / 'Annotations/001.xml', '<xmin>31<', '<xmin>0<')
    assert read(tmp_path).train[0].instances[1].box == (31, 41, 30, 4)


@pytest.mark.parametrize('remove', [['val'], ['val', 'train']])
def test_what_is_held_out_is_the_same_each_time(tmp_path, remove):
    write_voc(tmp_path, train=20, val=0)
    for name in remove:
        (tmp_path / f'ImageSets/Main/{name}.txt').unlink()
    found, again = read(tmp_path), read(tmp_path)
    assert found.held_out
    assert sizes_of(found) == [18, 2, 0]
    assert [photo.path for photo in found.val] == [photo.path for photo in again.val]


def test_of_several_files_those_with_boxes_are_read(tmp_path):
    write_coco(tmp_path, count=3)
    write_coco(tmp_path, count=2, name='instances_val2017')
    write_coco(tmp_path, count=1, name='instances_test2017')
    (tmp_path / 'annotations/captions_train2017.json').write_text('{}')
    (tmp_path / 'annotations/person_keypoints_train2017.json').write_bytes(
        (tmp_path / 'annotations/instances_train2017.json').read_bytes()
    )
    found = read(tmp_path)
    assert found.classes == (
        'square',
        'bar',
    )  # in the order of the file, without the one that no box has
    assert sizes_of(found) == [3, 2, 1]
    notes = {what: count for what, count, _ in found.findings.rows()}
    assert (
        notes['files left out, .json']
        == notes['files left out, since another has the boxes of these images']
        == 1
    )


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


TRAIN = 'annotations/instances_train2017.json'


def rewrite(folder: Path, change: Callable[[dict], None]) -> None:
    """Change the content of this file."""
    content = json.loads((folder / TRAIN).read_text())
    change(content)
    (folder / TRAIN).write_text(json.dumps(content))


def changed(folder: Path, **entries) -> Listing:
    """COCO of ten scenes, with other entries of each annotation.

    None takes one out, a function makes it anew.
    """

    def change(content):
        for row in content['annotations']:
            for key, value in entries.items():
                row[key] = value(row) if callable(value) else value
                if row[key] is None:
                    del row[key]

    write_coco(folder)
    rewrite(folder, change)
    return read(folder)


@pytest.mark.parametrize(
    'entries',
    [
        dict(area=0),
        dict(area=-1),
        dict(area=None),
        dict(area=str),
        dict(area=float('nan')),
        dict(area=1e9),
        dict(iscrowd=None),
        dict(id=None),
        dict(id=7),
        dict(id=lambda row: row['id'] - 1),
        dict(segmentation=[]),
        dict(segmentation=None),
        dict(segmentation=[[1, 2]]),
    ],
)
def test_what_tools_leave_out_or_write_otherwise_costs_no_box(tmp_path, entries):
    found = changed(tmp_path, **entries)
    assert boxes_of(found) == WANTED
    assert all(
        instance.area == pytest.approx(np.prod(instance.box[2:]))
        for photo in found.train
        for instance in photo.instances
    )


@pytest.mark.parametrize(
    ('box', 'words'),
    [
        (
            lambda row: [
                row['bbox'][0] / 64,
                row['bbox'][1] / 48,
                row['bbox'][2] / 64,
                row['bbox'][3] / 48,
            ],
            'the boxes have values from 0 to 1',
        ),
        (
            lambda row: [
                *row['bbox'][:2],
                row['bbox'][0] + row['bbox'][2],
                row['bbox'][1] + row['bbox'][3],
            ],
            'seem to be left, top, right, bottom',
        ),
        (
            lambda row: [
                row['bbox'][0] + row['bbox'][2],
                row['bbox'][1],
                -row['bbox'][2],
                row['bbox'][3],
            ],
            r'boxes have a negative width or height \(20, the first is',
        ),
        (lambda row: [*row['bbox'][:3], 0.5], 'boxes have a side of less than a pixel'),
        (
            lambda row: [70, *row['bbox'][1:]],
            r'lie outside of their image .*, an image of 64 x 48',
        ),
        (lambda row: row['bbox'][:3], 'are not 4 finite numbers'),
        (lambda row: [*row['bbox'][:3], float('nan')], 'are not 4 finite numbers'),
        (lambda row: [*row['bbox'][:3], 'four'], 'are not 4 finite numbers'),
        (lambda row: '1234', 'are not 4 finite numbers'),
    ],
)
def test_boxes_that_cannot_be_right_are_one_sentence(tmp_path, box, words):
    with rejects(words) as error:
        changed(tmp_path, bbox=box)
    assert '; ' in str(error.value)  # the remedy


def test_what_is_wrong_can_be_left_out(tmp_path):
    write_coco(tmp_path)
    change(tmp_path / 'annotations/instances_train2017.json', '[30, 40, 30, 4]', '[90, 40, 30, 4]')
    words = r'boxes lie outside of their image \(10, .* or leave them out by skip_invalid=True'
    with rejects(words):
        read(tmp_path)
    found = read(tmp_path, skip_invalid=True)
    assert {name for name, *_ in boxes_of(found)} == {'square'}
    assert found.findings.rows()[0][:2] == (
        'left out, since they are wrong: boxes lie outside of their image',
        10,
    )


def test_few_strays_in_many_are_said_and_no_error(tmp_path):
    """BCCD has two boxes of 0 x 0 pixels among 4,000."""
    write_coco(tmp_path, count=100)
    file = tmp_path / 'annotations/instances_train2017.json'
    file.write_text(file.read_text().replace('[30, 40, 30, 4]', '[30, 40, 0, 0]', 2))
    found = read(tmp_path)
    assert sum(boxes_of(found).values()) == 198
    assert found.findings.rows()[0][:2] == (
        'left out, since they are wrong: boxes have a side of less than a pixel',
        2,
    )
    file.write_text(file.read_text().replace('[30, 40, 30, 4]', '[30, 40, 0, 0]', 1))
    with rejects(r'boxes have a side of less than a pixel \(3, '):
        read(tmp_path)


@given(st.tuples(*[st.floats(-100, 200)] * 2), st.tuples(*[st.floats(-10, 200)] * 2))
def test_a_box_that_stays_lies_within_its_image(corner, sides):
    photo = ImageRecord(
        Path('x.jpg'),
        size=(64, 48),
        instances=[Instance('a', (*corner, *sides)), Instance('a', (1, 2, 3, 4))],
    )
    findings = Findings()
    check_instances([photo], findings)
    left, top, width, height = photo.instances[0].box
    assert 0 <= left < left + width <= 64 + 1e-9
    assert 0 <= top < top + height <= 48 + 1e-9
    assert min(width, height) >= 1
    assert (len(photo.instances) == 2) != bool(findings.wrong)


@pytest.mark.parametrize(
    ('size', 'words'),
    [
        ((48, 64), 'have the sides that their annotation says the other way round'),
        ((128, 96), 'have another size'),
        ((1, 1), 'have another size'),
        ((64, -48), 'have another size'),
    ],
)
def test_sizes_are_those_of_the_files(tmp_path, size, words):
    write_coco(tmp_path)
    change(
        tmp_path / 'annotations/instances_train2017.json',
        '"width": 64, "height": 48',
        f'"width": {size[0]}, "height": {size[1]}',
    )
    with rejects(rf'images {words}.* \(10, '):
        read(tmp_path)


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
def test_sizes_that_are_not_stated_are_those_of_the_files(tmp_path, size):
    write_coco(tmp_path)
    change(tmp_path / 'annotations/instances_train2017.json', '"width": 64, "height": 48', size)
    found = read(tmp_path)
    assert {photo.size for photo in found.train} == {(64, 48)}
    assert boxes_of(found) == WANTED


def test_an_image_is_as_large_as_it_is_seen(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    for i, (image, _) in enumerate(scenes(10)):
        (tmp_path / 'images').mkdir(exist_ok=True)
        stored = Image.fromarray(np.rot90(image))  # which the orientation turns back
        stored.save(tmp_path / f'images/{i}.jpg', exif=exif)
    write(
        tmp_path,
        'annotations/instances.json',
        coco_json([f'{i}.jpg' for i in range(10)], [boxes for _, boxes in scenes(10)]),
    )
    found = read(tmp_path)
    assert {photo.size for photo in found.train} == {(64, 48)}
    assert boxes_of(found) == WANTED


def test_categories_are_classes_by_their_names(tmp_path):
    write_coco(tmp_path)
    file = tmp_path / 'annotations/instances_train2017.json'
    content = json.loads(file.read_text())
    content['categories'] = [
        dict(id=0, name='square'),
        *content['categories'],
        dict(id=9, name=' bar '),
    ]
    content['annotations'][1]['category_id'] = 9
    file.write_text('\ufeff' + json.dumps(content))
    assert read(tmp_path).classes == ('square', 'bar')
    assert boxes_of(read(tmp_path)) == WANTED


def test_names_are_compared_as_people_read_them(tmp_path):
    for i, (image, _) in enumerate(scenes(10)):
        save(tmp_path, f'images/cafe\u0301 {i}.jpg', image)  # as macOS writes it
        save(tmp_path, f'images/._cafe\u0301 {i}.jpg', image)
    (tmp_path / 'images/Thumbs.db').touch()
    write(
        tmp_path,
        'result.json',
        coco_json(
            [f'C:\\photos\\caf\u00e9 {i}.jpg' for i in range(10)],
            [boxes for _, boxes in scenes(10)],
        ),
    )
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert not found.findings.rows()


def test_names_in_latin_1(tmp_path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'labels/classes.txt', 'bär\nsquare\n', encoding='latin-1')
    found = read(tmp_path)
    assert found.classes == ('bär', 'square')
    (what, _, [line]) = found.findings.rows()[0]
    assert 'read as Windows-1252' in what
    assert line.startswith("'bär' in ")


@pytest.mark.parametrize('form', ['{} {}', '{}: {}', '{},{}'])
def test_names_with_numbers_before_them_are_in_the_order_of_these(tmp_path, form):
    labelimg_yolo(tmp_path)
    known = read(tmp_path).classes
    lines = [form.format(i, name) for i, name in enumerate(known)]
    write(tmp_path, 'labels/classes.txt', '\n'.join(reversed(lines)))
    assert read(tmp_path).classes == known


def test_names_that_no_object_has_are_named(tmp_path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'labels/classes.txt', 'circle\nsquare\nother')
    assert ('names of classes left out, which no object to train on has', 1, ['other']) in (
        read(tmp_path).findings.rows()
    )


def test_images_of_one_name_are_told_apart_by_their_part(tmp_path):
    for split, count in (('train', 6), ('val', 3)):
        for i, (image, _) in enumerate(scenes(count)):
            save(tmp_path, f'images/{split}/{i}.jpg', image)
        write(
            tmp_path,
            f'annotations/{split}.json',
            coco_json([f'{i}.jpg' for i in range(count)], [boxes for _, boxes in scenes(count)]),
        )
    found = read(tmp_path)
    assert [photo.path.parent.name for photo in found.val] == ['val'] * 3


@pytest.mark.parametrize(
    ('write_form', 'name', 'old', 'new', 'words'),
    [
        (
            roboflow_yolo,
            'train/labels/1_jpg.rf.abc.txt',
            '1 0.',
            '7 0.',
            'have a class that data.yaml does not name',
        ),
        (
            roboflow_yolo,
            'train/labels/1_jpg.rf.abc.txt',
            '1 0.',
            '1 x 0.',
            'lines are not a class and 4 numbers',
        ),
        (roboflow_yolo, 'train/labels/1_jpg.rf.abc.txt', '1 0.', '1 70.', 'values beyond 0 to 1'),
        (roboflow_yolo, 'data.yaml', "['bar', 'square']", '3', 'must be a list of the classes'),
        (roboflow_yolo, 'data.yaml', 'names:', 'names: [', 'is not YAML'),
        (
            labelme,
            '1.json',
            '"points"',
            '"point"',
            'has a shape that is not complete in the format of LabelMe',
        ),
        (labelme, '1.json', '"imageHeight": 48', '"imageHeight": 4800', 'images have another size'),
    ],
)
def test_what_is_wrong_in_other_forms_is_one_sentence(tmp_path, write_form, name, old, new, words):
    write_form(tmp_path)
    change(tmp_path / name, old, new)
    with rejects(words):
        read(tmp_path)


def test_settings_are_parsed_once(tmp_path, monkeypatch):
    roboflow_yolo(tmp_path)
    parsed, load = [], yaml.load
    monkeypatch.setattr(yaml, 'load', lambda *args: parsed.append(args) or load(*args))
    assert read(tmp_path).classes == ('bar', 'square')
    assert len(parsed) == 1


def test_images_without_labels_have_no_object(tmp_path):
    roboflow_yolo(tmp_path)
    (tmp_path / 'train/labels/1_jpg.rf.abc.txt').unlink()
    write(tmp_path, 'train/labels/stray.txt', '0 0.5 0.5 0.1 0.1\n')
    found = read(tmp_path)
    notes = {what: count for what, count, _ in found.findings.rows()}
    assert len(found.train) == 6
    assert notes['images without a file of labels, taken as without an object'] == 1
    assert notes['files of labels left out, without an image of their name'] == 1


def test_classes_of_yolo_must_have_names(tmp_path):
    labelimg_yolo(tmp_path)
    (tmp_path / 'labels/classes.txt').unlink()
    with rejects('no file with the names of the classes; add data.yaml'):
        read(tmp_path)


def test_two_forms_in_one_folder_are_not_guessed_about(tmp_path):
    write_voc(tmp_path)
    write_coco(tmp_path)
    with rejects('has boxes as COCO and Pascal VOC, in .*; keep one of them'):
        read(tmp_path)


@pytest.mark.parametrize(
    ('spoil', 'words'),
    [
        (
            lambda f: [path.unlink() for path in (f / 'Annotations').iterdir()],
            'has no boxes: neither Annotations',
        ),
        (
            lambda f: (f / 'JPEGImages/001.jpg').unlink(),
            r'annotations have no image of their name \(1, the first is .*001\.xml',
        ),
        (
            lambda f: (f / 'Annotations/001.xml').write_text('<annotation>'),
            r'001\.xml. is not XML \(',
        ),
        (
            lambda f: change(f / 'Annotations/001.xml', 'xmin', 'left'),
            r'001\.xml. has an object that is not complete in the format of Pascal VOC \(',
        ),
        (
            lambda f: change(f / 'Annotations/004.xml', '>bar<', '>Bar<'),
            "to validate, has the class 'Bar', of which there is nothing to train on, only of "
            "'bar'",
        ),
        (
            lambda f: [change(f / f'Annotations/{i:03d}.xml', 'object', 'thing') for i in range(4)],
            'to train on has a box',
        ),
    ],
)
def test_what_is_wrong_in_voc_is_one_sentence(tmp_path, spoil, words):
    spoil(write_voc(tmp_path))
    with rejects(words):
        read(tmp_path)


@pytest.mark.parametrize(
    ('name', 'old', 'new', 'words'),
    [
        ('train', '"images"', '{', "instances_train2017.json' is not JSON"),
        (
            'train',
            '"categories"',
            '"classes"',
            "is not complete in the format of COCO .*'categories'",
        ),
        ('train', '"id": 7, "name"', '"id": 1, "name"', 'two categories have one id'),
        (
            'train',
            '"file_name"',
            '"name"',
            "has an image or a box that is not complete in the format of COCO .*'file_name'",
        ),
        (
            'train',
            '0.jpg',
            'x.jpg',
            r"images of .* or are in another part of the data \(1, the first is 'x.jpg'",
        ),
        (
            'train',
            '"image_id": 1',
            '"image_id": 5',
            'annotations are of images that their file does not list .* 5 of',
        ),
        (
            'train',
            '"category_id": 7',
            '"category_id": 8',
            'have a category that their file does not list',
        ),
        ('train', '"id": 1, "file', '"id": 0, "file', 'two images have the id 0'),
        ('val', '"category_id": 7', '"category_id": 1', "has the class 'nothing'"),
    ],
)
def test_what_is_wrong_in_coco_is_one_sentence(tmp_path, name, old, new, words):
    write_coco(tmp_path, count=2)
    write_coco(tmp_path, count=2, name='instances_val2017')
    change(tmp_path / f'annotations/instances_{name}2017.json', old, new)
    with rejects(words):
        read(tmp_path)


# What people report in public threads.


def test_a_box_that_is_not_there_is_that_of_the_outline(tmp_path):
    """detectron2#1531: annotations of programs that write polygons alone."""
    write(
        tmp_path,
        'result.json',
        coco_json([f'{i}.jpg' for i in range(10)], [boxes for _, boxes in scenes(10)]),
    )
    content = json.loads((tmp_path / 'result.json').read_text())
    for row in content['annotations'][::2]:
        del row['bbox']
    for row in content['annotations'][1::2]:
        row['bbox'] = []
    (tmp_path / 'result.json').write_text(json.dumps(content))
    for i, (image, _) in enumerate(scenes(10)):
        save(tmp_path, f'{i}.jpg', image)
    assert boxes_of(read(tmp_path)) == WANTED


@pytest.mark.parametrize('names', ['x1 y1 x2 y2', 'x y x y'])
def test_voc_with_polygons_in_place_of_boxes(tmp_path, names):
    """convert2Yolo#16: Labelbox writes them so, and LabelMe in the browser, with deleted ones."""
    write_voc(tmp_path)
    wanted = boxes_of(read(tmp_path))
    for file in (tmp_path / 'Annotations').iterdir():
        text = file.read_text().replace('bndbox', 'polygon')
        for old, new in zip(('xmin', 'ymin', 'xmax', 'ymax'), names.split(), strict=True):
            text = text.replace(old, new)
        deleted = '<username>me</username></polygon><deleted>1</deleted></object><object>'
        file.write_text(text.replace('<object>', f'<object><name>x</name><polygon>{deleted}', 1))
    assert boxes_of(read(tmp_path)) == wanted


def test_a_size_that_is_a_pixel_off_is_no_error(tmp_path):
    """OpenLabeling#52."""
    write_voc(tmp_path)
    change(tmp_path / 'Annotations/001.xml', '>64<', '>63<')
    found = read(tmp_path)
    assert {photo.size for photo in found.train} == {(64, 48)}
    assert ('sizes a pixel off in the annotation, taken from the files', 1) in notes_of(found)


def test_voc_with_numbers_that_are_not_whole(tmp_path):
    """PaddleLabel#81."""
    write_voc(tmp_path)
    change(tmp_path / 'Annotations/001.xml', '<xmin>31<', '<xmin>31.0000001<')
    assert read(tmp_path).train[1].instances[1].box[0] == pytest.approx(30)


@pytest.mark.parametrize(
    'as_mapping',
    [
        lambda rows: {str(row['id']): row['name'] for row in rows},
        lambda rows: {row['name']: row['id'] for row in rows},
        lambda rows: {str(row['id']): dict(name=row['name']) for row in rows},
    ],
)
def test_categories_may_be_a_mapping(tmp_path, as_mapping):
    def change(content):
        content['categories'] = as_mapping(content['categories'])

    write_coco(tmp_path)
    wanted = boxes_of(read(tmp_path))
    rewrite(tmp_path, change)
    assert boxes_of(read(tmp_path)) == wanted


def test_ids_of_categories_may_be_any_numbers(tmp_path):
    """fiftyone#1696: those of a data base."""
    write_coco(tmp_path)
    file = tmp_path / 'annotations/instances_train2017.json'
    file.write_text(
        file.read_text()
        .replace('"category_id": 7', '"category_id": 9007199254740993')
        .replace('"id": 7, "name"', '"id": 9007199254740993, "name"')
    )
    assert boxes_of(read(tmp_path)) == WANTED


def test_a_line_that_is_there_twice_is_named(tmp_path):
    """yolov5#5210."""
    labelimg_yolo(tmp_path)
    lines = (tmp_path / 'labels/1.txt').read_text()
    (tmp_path / 'labels/1.txt').write_text(lines + lines)
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert ('objects left out, since the same box of the class is there', 2) in notes_of(found)


def test_keypoints_behind_a_box_are_no_outline(tmp_path):
    """ultralytics#20138: with a visibility of 2, which is no share."""
    roboflow_yolo(tmp_path)
    with open(tmp_path / 'data.yaml', 'a') as file:
        file.write('kpt_shape: [2, 3]\n')
    for path in tmp_path.rglob('labels/*.txt'):
        lines = path.read_text().splitlines()
        path.write_text('\n'.join(f'{line} 0.5 0.5 2.0 0.1 0.2 2.0' for line in lines))
    assert boxes_of(read(tmp_path)) == WANTED


def test_a_folder_of_labels_within_a_folder_of_that_name(tmp_path):
    folder = tmp_path / 'labels/images'
    folder.mkdir(parents=True)
    labelimg_yolo(folder)
    assert boxes_of(read(folder)) == WANTED


def test_the_same_images_to_train_and_to_validate_are_held_out_instead(tmp_path):
    """As coco128 has them."""
    labelimg_yolo(tmp_path)
    write(tmp_path, 'data.yaml', 'train: images\nval: images\nnames: [bar, square]\n')
    found = read(tmp_path)
    assert (sizes_of(found), found.held_out) == ([9, 1, 0], True)
    assert ('images that are named for two parts, taken for the first', 10) in notes_of(found)


def test_lists_say_the_part(tmp_path):
    """As darknet and CVAT write them, without a YAML file."""
    cvat_yolo(tmp_path)
    lines = (tmp_path / 'train.txt').read_text().splitlines()
    write(tmp_path, 'train.txt', '\n'.join(lines[:7]))
    write(tmp_path, 'valid.txt', '\n'.join(lines[7:]))
    found = read(tmp_path)
    assert (sizes_of(found), found.held_out) == ([7, 3, 0], False)
    assert notes_of(found) == [('files left out, .data', 1)]


def test_an_image_that_is_listed_twice_is_one(tmp_path):
    def twice(content):
        image, rows = content['images'][0], content['annotations']
        content['images'].append(dict(image, id=99))
        same = [row for row in rows if row['image_id'] == image['id']]
        rows += [dict(row, image_id=99, id=100 + i) for i, row in enumerate(same)]

    write_coco(tmp_path)
    rewrite(tmp_path, twice)
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert ('images that are listed twice, taken as one', 1) in notes_of(found)


def test_no_image_is_trained_on_and_validated(tmp_path):
    write_coco(tmp_path)
    content = json.loads((tmp_path / TRAIN).read_text())
    few = [image['id'] for image in content['images'][:3]]
    content['images'] = content['images'][:3]
    content['annotations'] = [row for row in content['annotations'] if row['image_id'] in few]
    write(tmp_path, TRAIN.replace('train', 'val'), json.dumps(content))
    found = read(tmp_path)
    assert not {photo.path for photo in found.train} & {photo.path for photo in found.val}
    assert len(found.val) == 3
    assert ('images in several parts of the data, left out of training', 3) in notes_of(found)


@pytest.mark.parametrize('kind', [str, float])
def test_numbers_may_be_text_or_floats(tmp_path, kind):
    def as_text(content):
        for row in content['annotations']:
            row |= dict(
                bbox=[kind(value) for value in row['bbox']],
                image_id=kind(row['image_id']),
                category_id=kind(row['category_id']),
                iscrowd='0',
            )

    write_coco(tmp_path)
    rewrite(tmp_path, as_text)
    assert boxes_of(read(tmp_path)) == WANTED


@pytest.mark.parametrize(
    'name', ['/data/local-files/?d={stem}.jpg', 'C:\\photos\\{stem}.JPG', '{stem}.png']
)
def test_names_of_other_machines_and_suffixes(tmp_path, name):
    """label-studio-converter writes the first one, and conversions leave the last one."""

    def as_there(content):
        for image in content['images']:
            image['file_name'] = name.format(stem=Path(image['file_name']).stem)

    write_coco(tmp_path)
    rewrite(tmp_path, as_there)
    assert boxes_of(read(tmp_path)) == WANTED


def test_a_part_may_have_no_object_at_all(tmp_path):
    write_coco(tmp_path, count=4)
    write_coco(tmp_path, count=2, name='instances_val2017')
    file = tmp_path / TRAIN.replace('train', 'val')
    file.write_text(json.dumps(dict(json.loads(file.read_text()), annotations=[])))
    found = read(tmp_path)
    assert (sizes_of(found), found.held_out) == ([4, 2, 0], False)


@pytest.mark.parametrize(
    ('key', 'value'),
    [
        ('iscrowd', '1'),
        ('ignore', 1),
        ('Difficult', True),
        ('attributes', dict(difficult='true')),
        ('extra', dict(flags=dict(ignore=1))),
    ],
)
def test_groups_and_ignored_objects_are_named_and_teach_nothing(tmp_path, key, value):
    found = changed(tmp_path, **{key: lambda row: value if row['id'] == 1 else 0})
    what = 'objects marked as crowd, ignored or difficult, neither trained on nor counted'
    assert (what, 1) in notes_of(found)
    rewrite(tmp_path, lambda content: [row.update({key: value}) for row in content['annotations']])
    with rejects(r'has a box \(.*objects marked as crowd.*: 20'):
        read(tmp_path)


def outline_of(row: dict) -> list[float]:
    left, top, width, height = row['bbox']
    return [left, top, left + width, top, left + width, top + height, left, top + height]


def run_lengths_of(row: dict) -> dict:
    left, top, width, height = row['bbox']
    mask = np.zeros((48, 64), np.uint8)
    mask[top : top + height, left : left + width] = 1
    edges = np.flatnonzero(np.diff(mask.flatten('F'), prepend=0, append=0))
    return dict(size=[48, 64], counts=np.diff([0, *edges, mask.size]).tolist())


def compressed(row: dict) -> dict:
    from pycocotools.mask import frPyObjects

    counts = frPyObjects(run_lengths_of(row), 48, 64)['counts']
    return dict(size=[48.0, 64.0], counts=counts.decode())


@pytest.mark.parametrize(
    'polygon',
    [
        outline_of,
        lambda row: [outline_of(row), [], [1, 1, 2, 2]],
        run_lengths_of,
        compressed,
        lambda row: [compressed(row)],
    ],
)
def test_outlines_and_run_lengths_are_the_same_masks(tmp_path, polygon):
    pytest.importorskip('pycocotools')
    changed(tmp_path, segmentation=polygon)
    found = read_mask_folder(Tree(tmp_path))
    assert found.classes == ('background', 'square', 'bar')
    pixels = np.bincount(class_map(found, found.train[0]).flatten())
    _, _, width, height = found.train[0].instances[0].box
    assert pixels[1] == pytest.approx(width * height, rel=0.15)


@pytest.mark.parametrize(
    ('polygon', 'words'),
    [
        (lambda row: [[0, 0, 5, 0, 5, 5]], 'polygons and boxes of objects lie in different places'),
        (lambda row: [[]], 'have a box and no polygon'),
        (lambda row: [[1, 2, 3, 4]], 'not three or more pairs'),
        (lambda row: dict(size=[48, 64], counts=[5, 6]), 'are not run lengths of COCO'),
        (lambda row: dict(size=[48, 64], counts="b'Yh6'"), 'are not run lengths of COCO'),
        (lambda row: dict(size=[64, 48], counts=[3072]), 'have another size than their image'),
    ],
)
def test_outlines_that_cannot_be_right_are_one_sentence(tmp_path, polygon, words):
    changed(tmp_path, segmentation=polygon)
    with rejects(words):
        read(tmp_path, with_masks=True)


@pytest.mark.parametrize('change', [lambda text: text.replace('"bbox"', '"box"'), lambda _: '[]'])
def test_files_of_another_form_are_named(tmp_path, change):
    """As the classes of iNaturalist, and results of a detector, which are a list."""
    write_coco(tmp_path)
    (tmp_path / TRAIN).write_text(change((tmp_path / TRAIN).read_text()))
    with rejects(f'of the images, and of another form {TRAIN}; put the boxes'):
        read(tmp_path)


@pytest.mark.parametrize(
    ('settings', 'classes'),
    [
        ('names: [no, 007]', ('no', '007')),
        ('names: [bar, square, bar]', ('bar', 'square')),
        ('names: {1: square, "0": bar}', ('bar', 'square')),
    ],
)
def test_names_of_yolo_are_text_and_each_is_one_class(tmp_path, settings, classes):
    labelimg_yolo(tmp_path)
    (tmp_path / 'labels/classes.txt').unlink()
    write(tmp_path, 'data.yaml', settings)
    found = read(tmp_path)
    assert found.classes == classes
    numbers = [row['id'] for row in json.loads(found.as_coco(found.train))['categories']]
    assert numbers == [1, 2]


def test_places_of_another_machine_and_those_that_are_not_there(tmp_path):
    labelimg_yolo(tmp_path)
    settings = (
        'train: /home/me/ds/images\nval: D:\\ds\\list.txt\ntest: ../none\nnames: [bar, square]'
    )
    write(tmp_path, 'data.yaml', settings)
    write(tmp_path, 'list.txt', '/home/me/ds/images/1.jpg\n/home/me/ds/images/x.jpg\n')
    found = read(tmp_path)
    assert (sizes_of(found), found.held_out) == ([9, 1, 0], False)
    notes = notes_of(found)
    assert ('lines of list.txt left out, whose image is not there', 1) in notes
    assert ('places that data.yaml names, which are not there', 1) in notes
    assert ('images that are named for two parts, taken for the last', 1) in notes


@pytest.mark.parametrize('names', ['old.yaml', 'images/classes.txt'])
def test_files_that_name_other_classes_are_a_question(tmp_path, names):
    labelimg_yolo(tmp_path)
    if names == 'old.yaml':
        write(tmp_path, 'data.yaml', 'names: [bar, square]')
    write(tmp_path, names, 'names: [square, bar]' if names == 'old.yaml' else 'square\nbar\n')
    with rejects('name other classes, or in another order'):
        read(tmp_path)


def test_labels_beside_their_images_are_known_by_their_lines(tmp_path):
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').iterdir():
        path.rename(tmp_path / 'images' / path.name)
    (tmp_path / 'images/classes.txt').rename(tmp_path / 'images/voc.names')
    assert boxes_of(read(tmp_path)) == WANTED
    (tmp_path / 'images/voc.names').unlink()
    with rejects('no file with the names of the classes'):
        read(tmp_path)


def test_masks_and_numbers_of_labelme(tmp_path):
    pixels = np.zeros((12, 10), np.uint8)
    pixels[2:9, 3:8] = 1
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, 'PNG')
    shape = dict(
        label=7,
        shape_type='mask',
        points=[[20, 30], [29, 41]],
        mask=base64.b64encode(stream.getvalue()).decode(),
    )
    for i, (image, _) in enumerate(scenes(3)):
        save(tmp_path, f'{i}.jpg', image)
        write(tmp_path, f'{i}.json', json.dumps(dict(shapes=[shape], imagePath=f'{i}.jpg')))
    found = read(tmp_path, with_masks=True)
    assert found.classes == ('7',)
    assert found.train[0].instances[0].box == (23, 32, 4, 6)
    shape['mask'] = '!!'
    write(tmp_path, '0.json', json.dumps(dict(shapes=[shape], imagePath='0.jpg')))
    with rejects(r'0\.json.*its mask is not a PNG in base64'):
        read(tmp_path, with_masks=True)


def test_shapes_of_one_group_are_one_object(tmp_path):
    shapes = [
        dict(label='pen', points=[[x, 5], [x + 8, 5], [x + 8, 20]], group_id=group)
        for x, group in ((5, 1), (20, 1), (35, None), (50, None))
    ]
    for i, (image, _) in enumerate(scenes(2)):
        save(tmp_path, f'{i}.jpg', image)
        write(tmp_path, f'{i}.json', json.dumps(dict(shapes=shapes, imagePath=f'{i}.jpg')))
    found = read(tmp_path, with_masks=True).train[0].instances
    assert [len(one.segmentation) for one in found] == [2, 1, 1]
    assert found[0].box == (5, 5, 23, 15)


def test_names_may_be_those_of_urls(tmp_path):
    """As Label Studio writes those with spaces."""
    write_coco(tmp_path)
    for path in tmp_path.rglob('*.jpg'):
        path.rename(path.with_name(f'a {path.name}'))

    def as_urls(content):
        for image in content['images']:
            folder, _, name = image['file_name'].rpartition('/')
            image['file_name'] = f'{folder}/a%20{name}'

    rewrite(tmp_path, as_urls)
    assert boxes_of(read(tmp_path)) == WANTED


def test_images_of_the_test_may_have_no_annotation_in_voc(tmp_path):
    """As VOC2012 was published."""
    write_voc(tmp_path)
    write(tmp_path, 'ImageSets/Main/test.txt', '900\n901\n')
    write(tmp_path, 'ImageSets/Main/trainval.txt', ''.join(f'{i:03d}\n' for i in range(6)))
    found = read(tmp_path)
    assert sizes_of(found) == [4, 2, 0]
    assert ('lines of test.txt left out, without an annotation', 2) in notes_of(found)
    write(tmp_path, 'ImageSets/Main/trainval.txt', '800\n801\n')
    with rejects(r"no line of .*trainval\.txt' has an annotation, such as '800'; correct the list"):
        read(tmp_path)


# Whose label it is, and whether it is what it claims.


@pytest.mark.parametrize('write_form', [form for form, row in BOXES.items() if row[1]])
def test_no_image_has_the_label_of_one_that_is_gone(tmp_path, write_form):
    """ultralytics#20440: another part has an image of this name."""
    write_form(tmp_path)
    [gone] = tmp_path.rglob('6*.jpg')
    other = next(tmp_path.rglob('0*.jpg')).with_name(gone.name)
    gone.rename(other)
    found = read(tmp_path, skip_invalid=True)
    assert not any(
        photo.instances for part in found.parts.values() for photo in part if photo.path == other
    )
    assert sum(boxes_of(found).values()) == 18
    assert any('6' in row[2][0] for row in found.findings.rows())


@pytest.mark.parametrize(
    'leave',
    [
        lambda folder: write(folder, 'runs/detect/predict/labels/0.txt', '0 0.5 0.5 0.1 0.1'),
        lambda folder: write(folder, 'exp/args.yaml', 'data: x'),
        lambda folder: shutil.copytree(folder / 'images', folder / 'runs/train/exp'),
        lambda folder: shutil.copytree(folder / 'images', folder / 'wandb/media'),
        lambda folder: write(folder, 'mine/data_report.json', '{"images": [], "annotations": []}'),
    ],
)
def test_what_trainings_leave_is_no_data_and_named(tmp_path, leave):
    labelimg_yolo(tmp_path)
    leave(tmp_path)
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert notes_of(found) == [('folders of trainings left out', 1)]


@pytest.mark.parametrize('write_form', [labelimg_yolo, cvat_coco, labelme, cvat_voc])
def test_arrays_beside_images_are_caches(tmp_path, write_form):
    """ultralytics#17372."""
    write_form(tmp_path)
    for path in [*tmp_path.rglob('*.jpg'), *tmp_path.rglob('*.png')]:
        np.save(path.with_suffix('.npy'), np.asarray(Image.open(path)))
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert ('files left out, .npy', 10) in notes_of(found)


@pytest.mark.parametrize('parts', [('train', 'val'), ('images/train', 'images/valid')])
def test_parts_that_are_one_folder_by_a_link_are_a_question(tmp_path, parts):
    """ultralytics#5036."""
    save(tmp_path, 'all/0.jpg', scenes(1)[0][0])
    for part in parts:
        (tmp_path / 'data' / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'data' / part).symlink_to(tmp_path / 'all')
    with rejects(f'{parts[1]}.* and .*{parts[0]}.* are one folder by a'):
        Tree(tmp_path / 'data')


def test_parts_that_are_links_to_a_folder_beside_them(tmp_path):
    save(tmp_path, 'all/0.jpg', scenes(1)[0][0])
    (tmp_path / 'train').symlink_to('all')
    with rejects('train.* and .*all.* are one folder by a link'):
        Tree(tmp_path)


@pytest.mark.parametrize('names', ['data.yaml', 'classes.txt'])
def test_lists_say_the_part_where_no_settings_do(tmp_path, names):
    labelimg_yolo(tmp_path)
    text = 'names: [bar, square]\n' if names == 'data.yaml' else 'bar\nsquare\n'
    write(tmp_path, names, text)
    write(tmp_path, 'test_list.txt', 'images/1.jpg\nimages/2.jpg\n')
    found = read(tmp_path)
    assert [len(part) for part in found.parts.values()] == [7, 1, 2]


@pytest.mark.parametrize('same', [True, False])
def test_two_files_that_list_an_image_must_say_the_same(tmp_path, same):
    write_coco(tmp_path)
    rows = json.loads((tmp_path / TRAIN).read_text())
    rows['images'] = [dict(row, file_name=f'train2017/{row["id"]}.jpg') for row in rows['images']]
    for row in rows['annotations']:
        row['bbox'][0] += 0 if same else 2
    write(tmp_path, TRAIN.replace('train', 'val'), json.dumps(rows))
    words = 'none to train on' if same else 'two files of labels, which say different things'
    with rejects(words):
        read(tmp_path)


def test_a_file_of_labelme_with_the_name_of_one_image_and_the_path_of_another(tmp_path):
    """X-AnyLabeling#1206, labelme#389."""
    labelme(tmp_path)
    change(tmp_path / '3.json', '..\\\\raw\\\\3.jpg', '4.jpg')
    with rejects(r"have the name of one image.*3\.json with '4\.jpg'"):
        read(tmp_path)
    for i in range(10):  # all were renamed, and no old name is there
        path = tmp_path / f'{i}.json'
        path.write_text(path.read_text().replace('3.jpg', 'IMG.jpg').replace('4.jpg', 'IMG.jpg'))
    assert boxes_of(read(tmp_path)) == WANTED


def turned(write_form, folder: Path, degrees: object) -> None:
    """Ten scenes with an angle of all boxes as this form has it."""
    write_form(folder)
    if write_form is cvat_voc:
        value = f'<attribute><name>rotation</name><value>{degrees}</value></attribute>'
        for path in (folder / 'Annotations').iterdir():
            path.write_text(
                path.read_text().replace('</object>', f'<attributes>{value}</attributes></object>')
            )
    else:
        [path] = folder.rglob('*.json')
        content = json.loads(path.read_text())
        for i, row in enumerate(content['annotations']):
            row |= dict(rotation=degrees) if i % 2 else dict(attributes=dict(rotation=degrees))
            row['meta'] = dict(camera=dict(rotation=45))  # not of the box
        path.write_text(json.dumps(content))


@pytest.mark.parametrize('write_form', [cvat_coco, cvat_voc])
@pytest.mark.parametrize('degrees', [90.0, '90', 270, -90, 360, 180.0, 'nan', 0, None])
def test_a_turned_box_is_the_rectangle_around_it(tmp_path, write_form, degrees):
    """cvat#4745, label-studio-converter#131."""
    turned(write_form, tmp_path, degrees)
    found = read(tmp_path, skip_invalid=True)
    sides = {
        instance.name: tuple(np.round(instance.box[2:]))
        for photo in found.train
        for instance in photo.instances
    }
    upright = degrees in (360, 180.0, 'nan', 0, None)
    assert sides['square'] == (16, 16)
    assert sides['bar'] == ((30, 4) if upright else (4, 21))  # a side is cut at the edge
    what = 'boxes with a rotation, taken as the upright rectangle around them'
    assert (what in dict(notes_of(found))) != upright


def test_boxes_of_rolabelimg(tmp_path):
    """With an angle in radians, and no corners."""
    write_voc(tmp_path)
    change(
        tmp_path / 'Annotations/001.xml',
        '<bndbox><xmin>31</xmin><ymin>41</ymin><xmax>61</xmax><ymax>45</ymax></bndbox>',
        '<robndbox><cx>31</cx><cy>31</cy><w>20</w><h>4</h><angle>1.570796</angle></robndbox>',
    )
    boxes = [found.box for found in read(tmp_path).train[1].instances]
    assert boxes[1] == pytest.approx((28, 20, 4, 20), abs=1e-3)


@pytest.mark.parametrize(
    ('write_form', 'name', 'old', 'new'),
    [
        (cvat_voc, 'Annotations/1.xml', '</name><bnd', '</name><difficult>1</difficult><bnd'),
        (labelme, '1.json', '"flags": {}, "shape', '"difficult": true, "shape'),
    ],
)
def test_what_is_difficult_or_to_be_ignored_teaches_nothing(tmp_path, write_form, name, old, new):
    write_form(tmp_path)
    change(tmp_path / name, old, new)
    found = read(tmp_path)
    assert sum(found.counts(found.train + found.val).values()) == 18
    rows = json.loads(found.as_coco(found.train + found.val))['annotations']
    assert sum(row['iscrowd'] for row in rows) == 2


@pytest.mark.parametrize(('label', 'crowds'), [('__ignore__', 2), ('_background_', 0)])
def test_regions_of_labelme_that_are_no_objects(tmp_path, label, crowds):
    """labelme#899."""
    labelme(tmp_path)
    change(tmp_path / '0.json', '"square"', f'"{label}"')
    found = read(tmp_path)
    assert found.classes == ('bar', 'square')
    rows = json.loads(found.as_coco([p for p in found.train if p.path.stem == '0']))['annotations']
    assert sum(row['iscrowd'] for row in rows) == crowds  # a region of no class is one of each


def test_regions_without_a_class_are_no_pixels_of_one(tmp_path):
    labelme(tmp_path)
    change(tmp_path / '0.json', '"square"', '"__ignore__"')
    change(tmp_path / '1.json', '"square"', '"_background_"')
    found = read_mask_folder(Tree(tmp_path))
    assert found.classes == ('background', 'bar', 'square')
    values = {
        photo.path.stem: set(np.unique(class_map(found, photo)))
        for photo in found.train + found.val
    }
    assert (values['0'], values['1'], values['2']) == ({0, 1, 255}, {0, 1}, {0, 1, 2})


def by_rows(row: dict) -> dict:
    """Run lengths in the order of the rows, as programs without COCO's library write them."""
    left, top, width, height = row['bbox']
    mask = np.zeros((48, 64), np.uint8)
    mask[top : top + height, left : left + width] = 1
    edges = np.flatnonzero(np.diff(mask.flatten(), prepend=0, append=0))
    return dict(size=[48, 64], counts=np.diff([0, *edges, mask.size]).tolist())


def of_another_object(row: dict) -> dict:
    return run_lengths_of(dict(row, bbox=[0, 0, 3, 3]))


@pytest.mark.parametrize(
    ('polygon', 'words'),
    [
        (by_rows, 'polygons and boxes of objects lie in different places'),
        (of_another_object, 'polygons and boxes of objects lie in different places'),
        (lambda row: dict(size=[48, 64], counts=[3072]), 'masks by run lengths are empty'),
        (lambda row: dict(size=[48, 64], counts=[3072, 0]), 'masks by run lengths are empty'),
    ],
)
def test_run_lengths_are_compared_with_their_box(tmp_path, polygon, words):
    changed(tmp_path, segmentation=polygon)
    with rejects(words):
        read(tmp_path, with_masks=True)


POINTS = '0.5 0.5 {} 0.52 0.48 {} 0.45 0.55 {}'


@pytest.mark.parametrize(
    ('behind', 'shape'),
    [
        (POINTS.format(2, 1, 0), '[3, 3]'),
        ('0.5 0.5 1', '[1, 3]'),  # ultralytics#18891
        (' '.join(['0.5 0.5 2'] * 17), '[17, 3]'),
        (POINTS.format('', '', ''), '[3, 2]'),
        ('0.5 0.5 0.52 0.48 0 0 0.45 0.55 0.49 0.5', '[5, 2]'),
        ('0.52 0.48', '[1, 2]'),
        (POINTS.format(0.9, 0.81, 0.77), '[3, 3]'),  # scores, as a model writes them
    ],
)
def test_poses_without_their_shape_are_a_question(tmp_path, behind, shape):
    """ultralytics#3041, JSON2YOLO#94."""
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').glob('[0-9].txt'):
        path.write_text(f'0 0.5 0.5 0.2 0.2 {behind}\n1 0.49 0.51 0.2 0.2 {behind}\n')
    with rejects(re.escape(f'add kpt_shape: {shape} to data.yaml')):
        read(tmp_path)
    write(tmp_path, 'data.yaml', f'names: [bar, square]\nkpt_shape: {shape}\n')
    assert sum(boxes_of(read(tmp_path)).values()) == 20
    write(tmp_path, 'data.yaml', 'names: [bar, square]\nkpt_shape: [n, 3]\n')
    with rejects(re.escape(f'add kpt_shape: {shape} to data.yaml')):
        read(tmp_path)
    write(tmp_path, 'data.yaml', 'names: [bar, square]\nkpt_shape: [4, 3]\n')
    with rejects(r'lines are not .* \(20, the first'):
        read(tmp_path)


@pytest.mark.parametrize('points', [3, 4, 5, 8])
@pytest.mark.parametrize('dimensions', [2, 3])
def test_polygons_and_poses_are_told_apart(points, dimensions):
    generator = np.random.default_rng(points)
    size = generator.uniform(0.05, 0.4, (40, 2))
    middle = generator.uniform(size / 2, 1 - size / 2)
    inside = middle[:, None] + generator.uniform(-0.5, 0.5, (40, points, 2)) * size[:, None]
    seen = generator.uniform(0.3, 1, (40, points, dimensions - 2))
    poses = np.concatenate((inside, seen), axis=-1).reshape(40, -1)
    assert _dimensions(np.concatenate((middle, size, poses), axis=-1)) == dimensions
    angles = np.sort(generator.uniform(0, 2 * np.pi, (40, points)))
    around = np.stack((np.cos(angles), np.sin(angles)), axis=-1) * size[:, None] / 2
    assert _dimensions((middle[:, None] + around).reshape(40, -1)) == 0


@pytest.mark.parametrize(
    'polygon',
    [
        '0.2 0.2 0.6 0.2 0.6 0.6 0.2 0.6',  # a turned box of four corners
        '0.6 0.6 0.2 0.6 0.2 0.2 0.6 0.2',
        '0.4 0.2 0.6 0.3 0.6 0.5 0.4 0.6 0.2 0.5 0.2 0.3',
        '0.2 0.2 0.6 0.2 0.6 0.6 0.2 0.6 0.9',  # with a score
    ],
)
def test_outlines_of_equally_many_points_are_no_poses(tmp_path, polygon):
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').glob('[0-9].txt'):
        path.write_text(f'0 {polygon}\n1 {polygon}\n')
    assert set(boxes_of(read(tmp_path))) == {('bar', 13, 10, 38, 29), ('square', 13, 10, 38, 29)}


@pytest.mark.parametrize(
    ('line', 'kept'),
    [
        ('{c} {box} 0.9', 20),
        ('{c} {box} {i}', 20),  # the number of a track
        ('{c} 0.9 {box}', 20),  # a score before the box
        ('{c} {box} 0.9 {i}', 20),  # a score, and the number of a track
        ('{c} {box} 0.01 0.99', 'may be a box and two more values, or a polygon of three points'),
        ('{c} 0.8 0.2 0.7 0.6 0.8 0.9', 20),  # triangles that are no box within the image
    ],
)
def test_numbers_around_a_box_are_told_by_all_lines(tmp_path, line, kept):
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').glob('[0-9].txt'):
        rows = [row.split(maxsplit=1) for row in path.read_text().splitlines()]
        lines = (line.format(c=c, box=box, i=i + 2) for i, (c, box) in enumerate(rows))
        path.write_text('\n'.join(lines))
    if isinstance(kept, str):
        with rejects(kept):
            read(tmp_path)
        return
    found = boxes_of(read(tmp_path))
    assert found == WANTED if 'box' in line else sum(found.values()) == kept


def test_skeletons_of_two_kinds_are_no_polygons(tmp_path):
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').glob('[0-9].txt'):
        path.write_text(
            f'0 0.5 0.5 0.2 0.2{" 0.5 0.5 2" * 17}\n1 0.5 0.5 0.2 0.2{" 0.5 0.5 1" * 21}'
        )
    with rejects('a box and 17 or 21 keypoints .* remove what follows the box in each line'):
        read(tmp_path)


@pytest.mark.parametrize('other', ['traffic\u00a0light', ' traffic  light ', 'traffic\u200b light'])
def test_names_that_look_the_same_are_one_class(tmp_path, other):
    write_coco(tmp_path)
    text = (tmp_path / TRAIN).read_text().replace('"nothing"', '"traffic light"')
    (tmp_path / TRAIN).write_text(
        text.replace('"bar"', json.dumps(other)).replace('"category_id": 7', '"category_id": 1', 3)
    )
    assert read(tmp_path).classes == ('square', 'traffic light')


@pytest.mark.parametrize('name', ['ignored regions', '__ignore__', 'DontCare'])
def test_a_class_for_what_is_to_be_ignored_is_none(tmp_path, name):
    """VisDrone, LabelMe and KITTI."""
    write_coco(tmp_path)
    (tmp_path / TRAIN).write_text((tmp_path / TRAIN).read_text().replace('"bar"', f'"{name}"'))
    found = read(tmp_path)
    assert found.classes == ('square',)
    ignored = [one for photo in found.train for one in photo.instances if one.crowd]
    assert ignored
    assert {one.name for one in ignored} == {''}


def test_objects_without_a_class_are_an_error(tmp_path):
    labelme(tmp_path)
    for path in tmp_path.rglob('*.json'):
        path.write_text(path.read_text().replace('"label": "bar"', '"label": " "'))
    with rejects('objects have no class'):
        read(tmp_path)


def test_run_lengths_by_rows_of_a_square_image(tmp_path):
    """Their box lies near the right one, mirrored at the diagonal."""
    record = ImageRecord(Path('a.png'), size=(64, 64))
    mask = np.zeros((64, 64), np.uint8)
    mask[10:30, 20:44] = 1
    for order, kept in (('F', 1), ('C', 0)):
        ends = np.flatnonzero(np.diff(mask.flatten(order), prepend=0, append=0))
        counts = np.diff([0, *ends, 4096]).tolist()
        segmentation = dict(size=[64, 64], counts=counts)
        record.instances = [Instance('a', (20, 10, 24, 20), segmentation)]
        findings = Findings(skip_invalid=True)
        check_instances([record], findings, with_masks=True)
        assert len(record.instances) == kept
        assert (not kept) == any('read by rows' in what for what, _ in findings.wrong)


@pytest.mark.parametrize('encoding', ['gb2312', 'GBK', 'gb18030', 'utf-16'])
def test_voc_in_the_encoding_that_it_says(tmp_path, encoding):
    write_voc(tmp_path)
    for path in tmp_path.rglob('*.xml'):
        text = path.read_text().replace('bar', '条')
        path.write_bytes(f'<?xml version="1.0" encoding="{encoding}"?>{text}'.encode(encoding))
    assert read(tmp_path).classes == ('square', '条')


def test_voc_in_chinese_that_says_no_encoding_shows_what_it_may_be(tmp_path):
    path = write_voc(tmp_path) / 'Annotations/000.xml'
    path.write_bytes(path.read_text().replace('bar', '方块').encode('gbk'))
    with rejects(r"000\.xml' is not UTF-8, and may have .*方块.*gb18030"):
        read(tmp_path)


def scenes_as(folder: Path, place: str) -> list[tuple[str, list]]:
    """Images in a folder, and the corners of their boxes with names."""
    found = []
    for i in range(8):
        boxes = [('bar', (4, 6, 24, 30)), ('square', (34, 10, 60 - i, 40))]
        save(folder, f'{place}/{i}.png', np.full((48, 64, 3), 20 * i, np.uint8))
        found.append((f'{i}.png', boxes))
    return found


LISTED = Counter(
    box for i in range(8) for box in (('bar', 4, 6, 24, 30), ('square', 34, 10, 60 - i, 40))
)


def bdd(folder: Path) -> None:
    rows = [
        dict(
            name=name,
            labels=[
                dict(category=kind, box2d=dict(zip(('x1', 'y1', 'x2', 'y2'), box, strict=True)))
                for kind, box in boxes
            ]
            + [dict(category='lane', poly2d=[])],
        )
        for name, boxes in scenes_as(folder, 'images/100k/train')
    ]
    write(folder, 'labels/bdd100k_labels_images_train.json', json.dumps(rows))


def hugging_face(folder: Path) -> None:
    rows = [
        dict(
            file_name=name,
            objects=dict(
                bbox=[
                    [left, top, right - left, bottom - top]
                    for _, (left, top, right, bottom) in boxes
                ],
                category=[kind for kind, _ in boxes],
            ),
        )
        for name, boxes in scenes_as(folder, 'train')
    ]
    write(folder, 'train/metadata.jsonl', '\n'.join(map(json.dumps, rows)))


def open_images(folder: Path) -> None:
    lines = ['ImageID,Source,LabelName,XMin,XMax,YMin,YMax,IsGroupOf']
    for name, boxes in scenes_as(folder, 'train'):
        for kind, (left, top, right, bottom) in boxes:
            shares = f'{left / 64},{right / 64},{top / 48},{bottom / 48}'
            lines.append(f'{Path(name).stem},xclick,/m/{kind[:1]},{shares},0')
    write(folder, 'train-annotations-bbox.csv', '\n'.join(lines))
    write(folder, 'class-descriptions-boxable.csv', '/m/b,bar\n/m/s,square')


def datumaro(folder: Path) -> None:
    names = ['bar', 'square']
    items = []
    for name, boxes in scenes_as(folder, 'images/default'):
        shapes = [
            dict(id=i, type='bbox', label_id=names.index(label), bbox=[x, y, right - x, bottom - y])
            for i, (label, (x, y, right, bottom)) in enumerate(boxes)
        ]
        first = shapes[0]
        left, top, width, height = first.pop('bbox')
        around = [left, top, left + width, top, left + width, top + height, left, top + height]
        shapes[0] = dict(first, type='polygon', points=around)
        shapes.append(dict(id=2, type='polyline', label_id=0, points=around))
        image = dict(path=Path(name).name, size=[48, 64])
        items.append(dict(id=Path(name).stem, annotations=shapes, attr={}, image=image))
    labels = [dict(name=name, parent='', attributes=[]) for name in names]
    content = dict(info={}, categories=dict(label=dict(labels=labels)), items=items)
    write(folder, 'annotations/default.json', json.dumps(content))


def tensorflow(folder: Path) -> None:
    lines = ['sep=;', 'filename;width;height;class;xmin;ymin;xmax;ymax']
    for name, boxes in scenes_as(folder, 'images'):
        lines += [f'{name};64;48;{kind};{";".join(map(str, box))}' for kind, box in boxes]
    write(folder, 'train_labels.csv', '\n'.join(lines))


LISTS = {
    bdd: 'BDD100K',
    datumaro: 'Datumaro',
    hugging_face: 'Hugging Face',
    open_images: 'Open Images',
    tensorflow: 'a table',
}


@pytest.mark.parametrize('write_form', LISTS)
def test_lists_of_images_have_the_same_boxes(tmp_path, write_form):
    write_form(tmp_path)
    found = read(tmp_path)
    assert found.form == LISTS[write_form]
    assert found.classes == ('bar', 'square')
    assert boxes_of(found) == LISTED
    left_out = notes_of(found)
    assert (('objects without a box left out', 8) in left_out) == (write_form in (bdd, datumaro))


def test_a_table_has_a_box_column_or_no_classes(tmp_path):
    """The boxes of wheat on Kaggle, and an image without a box as VinBigData has it."""
    scenes_as(tmp_path, 'train')
    rows = [f'{i},64,48,"[4.0, 6, 20.0, 24]"' if i else f'{i},64,48,' for i in range(8)]
    write(tmp_path, 'train.csv', '\n'.join(['image_id,width,height,bbox', *rows]))
    found = read(tmp_path)
    assert found.classes == ('object',)
    assert sum(boxes_of(found).values()) == 7
    write(tmp_path, 'train.csv', (tmp_path / 'train.csv').read_text().replace('64,48', '99,48'))
    with rejects('images have another size than their annotation says'):
        read(tmp_path)


def test_boxes_in_what_is_held_out_alone_are_nothing_to_train_on(tmp_path):
    scenes_as(tmp_path, 'train')
    write(tmp_path, 'train.csv', 'image_id,bbox\n0,\n1,"[4, 6, 20, 24]"')
    with rejects('to train on has a box'):
        read(tmp_path)


def test_a_table_beside_other_boxes_is_left_out(tmp_path):
    """Of xml_to_csv, which many tutorials have, and JSON with two keys of Datumaro's."""
    write_voc(tmp_path)
    write(tmp_path, 'shop.json', '{"items": [{}], "categories": ["a"]}')
    write(tmp_path, 'train_labels.csv', 'filename,class,xmin,ymin,xmax,ymax\n000.png,a,1,1,9,9')
    assert ('files left out, .csv', 1) in [row[:2] for row in read(tmp_path).findings.rows()]


def test_properties_of_unequal_length_are_an_error(tmp_path):
    hugging_face(tmp_path)
    path = tmp_path / 'train/metadata.jsonl'
    path.write_text(path.read_text().replace('["bar", "square"]', '["bar"]', 1))
    with rejects(r'jsonl.* an image or a box that is not complete'):
        read(tmp_path)
    path.write_text('[1]\n{')
    with rejects('is not an object of JSON on each line'):
        read(tmp_path)


def as_createml(names, boxes):
    """The same as ``coco_json`` in another form."""
    return json.dumps(
        [
            dict(image=name, annotations=[dict(label=kind, bbox=[1, 2, 30, 20]) for kind, _ in own])
            for name, own in zip(names, boxes, strict=True)
        ]
    )


@pytest.mark.parametrize('form', [coco_json, as_createml])
def test_folders_of_images_say_the_part_where_the_file_of_all_does_not(tmp_path, form):
    names = [f'{"train" if i < 6 else "val" if i < 8 else "test"}/{i}.jpg' for i in range(10)]
    for name, (image, _) in zip(names, scenes(10), strict=True):
        save(tmp_path, f'images/{name}', image)
    write(tmp_path, 'all.json', form(names, [boxes for _, boxes in scenes(10)]))
    assert [len(part) for part in read(tmp_path).parts.values()] == [6, 2, 2]


def in_batches(folder, *batches):
    """A COCO file for each of some ranges of the ten scenes."""
    found = list(scenes(10))
    for i, (image, _) in enumerate(found):
        save(folder, f'images/{i}.jpg', image)
    for number, batch in enumerate(batches):
        names = [f'{i}.jpg' for i in batch]
        write(folder, f'job_{number}.json', coco_json(names, [found[i][1] for i in batch]))


@pytest.mark.parametrize('second', [range(4, 10), range(2, 10)])
def test_files_of_one_part_are_united(tmp_path, second):
    in_batches(tmp_path, range(4), second)
    assert boxes_of(read(tmp_path)) == WANTED


def test_files_of_one_part_that_say_different_things_of_an_image_are_an_error(tmp_path):
    in_batches(tmp_path, range(10), range(5))
    change(tmp_path / 'job_1.json', '"square"', '"star"')
    with rejects(r'have two files of labels.*job_0.*job_1'):
        read(tmp_path)


def test_null_is_no_name(tmp_path):
    in_batches(tmp_path, range(10))
    change(tmp_path / 'job_0.json', '"square"', 'null')
    with rejects('objects have no class'):
        read(tmp_path)


def test_images_of_lvis_have_a_url_in_place_of_a_name(tmp_path):
    in_batches(tmp_path, range(10))
    change(tmp_path / 'job_0.json', '"file_name": "', '"coco_url": "http://images.org/train2017/')
    assert boxes_of(read(tmp_path)) == WANTED


def test_names_in_yaml_and_in_a_text_agree(tmp_path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'data.yaml', 'names: [square, bar]\n')
    with rejects(r'data\.yaml.*classes\.txt.*in another order'):
        read(tmp_path)


def test_a_number_that_yaml_leaves_out_is_no_class(tmp_path):
    labelimg_yolo(tmp_path)
    (tmp_path / 'labels/classes.txt').unlink()
    write(tmp_path, 'data.yaml', 'names: {1: bar, 2: square}\n')
    with rejects('does not name .*class 0, .*count from 0'):
        read(tmp_path)


def test_parts_of_objects_are_left_out_and_named(tmp_path):
    cvat_voc(tmp_path)
    part = '<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part></object>'
    for file in tmp_path.glob('Annotations/*.xml'):
        file.write_text(file.read_text().replace('</object>', part))
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert ('parts of objects left out', sum(WANTED.values())) in notes_of(found)


@pytest.mark.parametrize(
    ('column', 'words'),
    [('split', ('train', 'test')), ('is_test', (0, 1)), ('Usage', ('Training', 'PublicTest'))],
)
def test_a_table_of_boxes_may_say_the_part(tmp_path, column, words):
    rows = [f'{column},file,class,xmin,ymin,xmax,ymax']
    for i, (image, boxes) in enumerate(scenes(10)):
        save(tmp_path, f'images/{i}.png', image)
        rows += [f'{words[i > 7]},{i}.png,{name},{str(box)[1:-1]}' for name, box in boxes]
    write(tmp_path, 'boxes.csv', '\n'.join(rows))
    assert [photo.path.stem for photo in read(tmp_path).parts['test']] == ['8', '9']


def test_an_object_may_be_all_of_an_image_of_one_pixel(tmp_path):
    """A box of 1 x 1 pixels is no share of the image then."""
    for i in range(4):
        save(tmp_path, f'images/{i}.png', np.full((1, 1, 3), 50 * i, np.uint8))
        write(tmp_path, f'labels/{i}.txt', '0 0.5 0.5 1 1')
    write(tmp_path, 'classes.txt', 'dot')
    assert boxes_of(read(tmp_path)) == {('dot', 0, 0, 1, 1): 4}


def test_voc_in_utf_8_that_says_gb2312(tmp_path):
    write_voc(tmp_path)
    for path in tmp_path.rglob('*.xml'):
        text = path.read_text().replace('bar', '方块')
        path.write_text(f'\n<?xml version="1.0" encoding="gb2312"?>{text}', encoding='utf-8')
    found = read(tmp_path)
    assert found.classes == ('square', '方块')
    assert any('say another encoding, read as UTF-8' in row[0] for row in found.findings.rows())
