"""Pascal VOC's XML, and what LabelImg, CVAT, roLabelImg and LabelMe in the browser write."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from anyfolder.readers.formats.voc import is_voc, parse_voc, voc_image

FILE = Path('001.xml')
BOX = '<bndbox><xmin>31</xmin><ymin>41</ymin><xmax>61</xmax><ymax>45</ymax></bndbox>'
SIZE = '<size><width>64</width><height>48</height></size>'


def parse(*objects: str, size: str = SIZE):
    nodes = ''.join(f'<object>{content}</object>' for content in objects)
    return parse_voc(ET.fromstring(f'<annotation>{size}{nodes}</annotation>'), FILE)


def test_annotations_are_recognized_by_their_root():
    assert is_voc(ET.fromstring('<annotation/>'), FILE)
    assert not is_voc(ET.fromstring('<annotations/>'), FILE)  # CVAT's format


def test_annotations_are_of_one_image_and_count_from_1():
    [image] = parse(f'<name> bar </name>{BOX}').images
    assert image.stated_size == (64, 48)
    [bar] = image.objects
    assert (bar.name, bar.form, bar.box, bar.from_1) == ('bar', 'xyxy', [31, 41, 61, 45], True)
    assert not bar.crowd


@pytest.mark.parametrize(('text', 'name'), [('<filename> 3.jpg </filename>', '3.jpg'), ('', '')])
def test_image_name_is_read_or_empty(text, name):
    assert voc_image(ET.fromstring(f'<annotation>{text}</annotation>')) == name


def test_coordinates_may_be_fractions():
    """PaddleLabel#81."""
    [bar] = parse(f'<name>bar</name>{BOX.replace("31", "31.25")}').images[0].objects
    assert bar.box[0] == 31.25


@pytest.mark.parametrize('names', ['x1 y1 x2 y2 x3 y3', 'x y x y x y'])
def test_polygons_may_replace_boxes(names):
    """As Labelbox writes them (convert2Yolo#16), and LabelMe in the browser."""
    points = ''.join(f'<{name}>{i}</{name}>' for i, name in enumerate(names.split()))
    text = f'<name>bar</name><polygon><username>me</username><pt>{points}</pt></polygon>'
    [bar] = parse(text).images[0].objects
    assert (bar.box, bar.segmentation, bar.from_1) == ((), [[0, 1, 2, 3, 4, 5]], True)


def test_polygons_next_to_boxes_are_read():
    """As Roboflow writes them."""
    names = ['x1', 'y1', 'x2', 'y2', 'x3', 'y3']
    points = ''.join(f'<{name}>{i}</{name}>' for i, name in enumerate(names))
    [bar] = parse(f'<name>bar</name>{BOX}<polygon>{points}</polygon>').images[0].objects
    assert (bar.box, bar.segmentation) == ([31, 41, 61, 45], [[0, 1, 2, 3, 4, 5]])


def test_parts_and_deleted_objects_are_left_out_and_reported():
    part = '<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>'
    parsed = parse(f'<name>bar</name>{BOX}{part}', '<name>x</name><deleted>1</deleted>')
    assert len(parsed.images[0].objects) == 1
    assert parsed.faults == [
        ('parts of objects left out', "'head' in 001.xml", ''),
        ('deleted objects left out', "'x' in 001.xml", ''),
    ]


@pytest.mark.parametrize(
    ('properties', 'crowd', 'degrees'),
    [
        ('<difficult>1</difficult>', True, None),
        ('<difficult>0</difficult>', False, None),
        (
            '<attributes><attribute><name>ignore</name><value>True</value></attribute></attributes>',
            True,
            None,
        ),
        (
            '<attributes><attribute><name>rotation</name><value>90.0</value></attribute>'
            '</attributes>',
            False,
            '90.0',
        ),
    ],
)
def test_flags_and_rotation_of_an_object_are_read(properties, crowd, degrees):
    [bar] = parse(f'<name>bar</name>{properties}{BOX}').images[0].objects
    assert (bar.crowd, bar.degrees) == (crowd, degrees)


def test_boxes_of_rolabelimg_have_a_center_and_radians():
    box = '<cx>31</cx><cy>30</cy><w>20</w><h>4</h><angle>1.570796</angle>'
    [bar] = parse(f'<name>bar</name><robndbox>{box}</robndbox>').images[0].objects
    assert (bar.form, bar.box, bar.from_1) == ('center', [31, 30, 20, 4], False)
    assert bar.degrees == pytest.approx(90, abs=1e-3)


@pytest.mark.parametrize(
    ('text', 'words'),
    [
        (BOX, 'it has no name'),
        (f'<name> </name>{BOX}', 'it has no name'),
        ('<name>bar</name>', 'it has no bndbox/xmin'),
        (f'<name>bar</name>{BOX.replace("xmin", "left")}', 'it has no bndbox/xmin'),
        (f'<name>bar</name>{BOX.replace("31", "a")}', 'could not convert'),
    ],
)
def test_incomplete_objects_raise(text, words):
    with pytest.raises(ValueError, match=words):
        parse(text)


def test_missing_and_zero_sizes_are_not_stated():
    assert parse(size='').images[0].stated_size == (0, 0)
    assert parse(size=SIZE.replace('64', '0')).images[0].stated_size == (0, 0)
