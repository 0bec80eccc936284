"""Lists of images in JSON: CreateML, BDD100K and Hugging Face."""

from pathlib import Path

import pytest

from anyfolder.readers.formats.image_lists import is_list, parse_list

FILE = Path('labels.json')
CENTER = dict(coordinates=dict(x=14, y=18, width=20, height=24))
CREATEML = [dict(image='0.png', annotations=[dict(label='bar', **CENTER)])]
CORNERS = dict(box2d=dict(x1=4, y1=6, x2=24, y2=30))
BDD = [dict(name='0.png', labels=[dict(category='bar', **CORNERS), dict(category='lane')])]
HUGGING_FACE = dict(
    frames=[
        dict(
            file_name='0.png',
            split='validation',
            width=64,
            height=48,
            objects=dict(bbox=[[4, 6, 20, 24], [1, 2, 3, 4]], category=['bar', None], id=[0, 1]),
        )
    ]
)


@pytest.mark.parametrize(
    ('content', 'key', 'fits'),
    [
        (CREATEML, 'annotations', True),
        (CREATEML, 'labels', False),
        (BDD, 'labels', True),
        (dict(frames=BDD), 'labels', True),
        (HUGGING_FACE, 'objects', True),
        ([dict(name='a', labels=[dict(category='lane', poly2d=[])])], 'labels', False),
        ([dict(image='a', annotations=[])], 'annotations', False),
        (['a', 3], 'annotations', False),
        (dict(annotations=3), 'annotations', False),
        (None, 'annotations', False),
    ],
)
def test_image_lists_are_recognized_by_a_box(content, key, fits):
    assert is_list(content, FILE, key) == fits


@pytest.mark.parametrize(
    ('content', 'key', 'form', 'box'),
    [
        (CREATEML, 'annotations', 'center', [14, 18, 20, 24]),
        (BDD, 'labels', 'xyxy', [4, 6, 24, 30]),
        (HUGGING_FACE, 'objects', 'xywh', [4, 6, 20, 24]),
    ],
)
def test_boxes_keep_the_form_of_their_list(content, key, form, box):
    [image] = parse_list(content, FILE, key).images
    bar = image.objects[0]
    assert (image.name, bar.name, bar.form, bar.box) == ('0.png', 'bar', form, box)
    assert bar.origin == '0.png in labels.json'


def test_an_image_may_state_its_size_and_split():
    [image] = parse_list(HUGGING_FACE, FILE, 'objects').images
    assert (image.stated_size, image.split) == ((64, 48), 'val')
    assert [found.name for found in image.objects] == ['bar', '']
    assert parse_list(BDD, FILE, 'labels').images[0].split is None


def test_objects_without_a_box_are_left_out_and_reported():
    parsed = parse_list(BDD, FILE, 'labels')
    assert len(parsed.images[0].objects) == 1
    assert parsed.faults == [('objects without a box left out', '0.png in labels.json', '')]


@pytest.mark.parametrize('key', ['image', 'imagefilename', 'file_name', 'name'])
def test_image_name_is_read_from_several_keys(key):
    [image] = parse_list([{key: 'a.jpg'}], FILE, 'annotations').images
    assert image.name == 'a.jpg'


@pytest.mark.parametrize(
    ('content', 'key'),
    [
        ([dict(objects=dict(bbox=[[1, 2, 3, 4]], category=[]))], 'objects'),
        ([dict(path='a.jpg')], 'annotations'),
        ([dict(image='a', annotations=[dict(coordinates=dict(x=1), label='a')])], 'annotations'),
        ([dict(image='a', annotations=[CENTER])], 'annotations'),
    ],
)
def test_incomplete_images_raise(content, key):
    with pytest.raises((KeyError, ValueError)):
        parse_list(content, FILE, key)
