"""Folders of Pascal VOC and COCO on the disk."""

import json

import numpy as np
import pytest
from image_folders import write_coco, write_voc

from vit_plugin.data.annotated import read_annotated_folder
from vit_plugin.errors import ConfigError


def test_voc_with_its_lists(tmp_path):
    found = read_annotated_folder(write_voc(tmp_path))
    assert (found.form, found.classes, found.held_out) == ('voc', ('bar', 'square'), False)
    assert found.train.listing == '000\n001\n002\n003\n'
    assert found.val.listing == '004\n005\n'
    assert [path.name for path in found.val.images] == ['004.jpg', '005.jpg']
    np.testing.assert_allclose(found.train.boxes[:2], [[16 / 64, 16 / 64], [30 / 64, 4 / 64]])


def test_names_in_voc_may_have_spaces(tmp_path):
    write_voc(tmp_path)
    for old, new in (('000', 'img 0'), ('001', 'an image')):
        for place in ('Annotations/{}.xml', 'JPEGImages/{}.jpg'):
            (tmp_path / place.format(old)).rename(tmp_path / place.format(new))
    (tmp_path / 'ImageSets/Main/train.txt').write_text('img 0\nan image  1\n002 -1\n003\n')
    assert read_annotated_folder(tmp_path).train.listing == 'img 0\nan image\n002\n003\n'


@pytest.mark.parametrize('remove', [['val'], ['val', 'train']])
def test_voc_without_lists_holds_a_tenth_out(tmp_path, remove):
    write_voc(tmp_path, train=20, val=0)
    for name in remove:
        (tmp_path / f'ImageSets/Main/{name}.txt').unlink()
    found = read_annotated_folder(tmp_path)
    assert found.held_out
    parts = [part.listing.split() for part in (found.train, found.val)]
    assert [len(part) for part in parts] == [18, 2]
    assert sorted(parts[0] + parts[1]) == [f'{i:03d}' for i in range(20)]
    assert read_annotated_folder(tmp_path).val.listing == found.val.listing


def test_coco_with_two_files(tmp_path):
    write_coco(tmp_path, count=3)
    write_coco(tmp_path, count=2, name='instances_val2017')
    (tmp_path / 'annotations/captions_train2017.json').write_text('{}')
    found = read_annotated_folder(tmp_path)
    assert (found.form, found.classes, found.held_out) == ('coco', ('square', 'bar'), False)
    assert found.train.file == (tmp_path / 'annotations/instances_train2017.json').as_posix()
    assert (found.train.folder, found.train.listing) == ('train2017', None)
    assert len(found.val.images) == 2


def test_coco_with_one_file_holds_a_tenth_out(tmp_path):
    found = read_annotated_folder(write_coco(tmp_path, count=20))
    assert found.held_out
    images, annotations = ([json.loads(part.listing)[key] for part in (found.train, found.val)]
                           for key in ('images', 'annotations'))
    assert [len(part) for part in images] == [18, 2]
    for part, boxes in zip(images, annotations, strict=True):
        assert {box['image_id'] for box in boxes} == {image['id'] for image in part}


def change(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.parametrize(('spoil', 'words'), [
    (lambda f: (f / 'Annotations').rename(f / 'labels'), 'has neither Annotations'),
    (lambda f: (f / 'JPEGImages/001.jpg').unlink(), r'there is no .*001\.jpg'),
    (lambda f: (f / 'Annotations/001.xml').write_text('<annotation>'), r'001\.xml. is not an annotation of Pascal VOC'),
    (lambda f: [change(f / 'Annotations/001.xml', text, '>0<') for text in ('>64<', '>48<')], 'its size is 0'),
    (lambda f: change(f / 'Annotations/001.xml', 'xmin', 'left'), r'001\.xml. is not an annotation of Pascal VOC'),
    (lambda f: change(f / 'Annotations/004.xml', '>bar<', '>rod<'), "have boxes of the class 'rod'"),
    (lambda f: [change(f / f'Annotations/{i:03d}.xml', 'object', 'thing') for i in range(4)], 'to train on has a box'),
])
def test_what_is_wrong_in_voc_is_one_sentence(tmp_path, spoil, words):
    spoil(write_voc(tmp_path))
    with pytest.raises(ConfigError, match=words):
        read_annotated_folder(tmp_path)


@pytest.mark.parametrize(('name', 'old', 'new', 'words'), [
    ('train', '"images"', '"pictures"', r"instances_train2017.json' is not a file of COCO .*'images'"),
    ('train', '"width"', '"breadth"', "has an image or a box that is not complete in the format of COCO .*'width'"),
    ('train', '"width": 64', '"width": 0', r'has the size \(0, 48\)'),
    ('train', '"height": 48', '"height": -1', r'has the size \(64, -1\)'),
    ('train', '30, 4]', '30]', 'is not 4 finite numbers'),
    ('train', '30, 4]', '30, "4"]', 'is not 4 finite numbers'),
    ('train', '30, 4]', 'NaN, 4]', 'is not 4 finite numbers'),
    ('train', '[30, 40, 30, 4]', '"1234"', "bbox '1234' is not 4 finite numbers"),
    ('train', '0.jpg', 'x.jpg', "the image 'x.jpg' of .* is in none of the folders train2017, images/train2017"),
    ('val', '"bar"', '"rod"', 'have different lists of categories'),
    ('val', '"category_id": 7', '"category_id": 1', "have boxes of the class 'nothing'"),
])
def test_what_is_wrong_in_coco_is_one_sentence(tmp_path, name, old, new, words):
    write_coco(tmp_path, count=2)
    write_coco(tmp_path, count=2, name='instances_val2017')
    change(tmp_path / f'annotations/instances_{name}2017.json', old, new)
    with pytest.raises(ConfigError, match=words):
        read_annotated_folder(tmp_path)
