"""Pascal VOC's XML, and what LabelImg, CVAT, roLabelImg and LabelMe in the browser write."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from anyfolder.readers.formats.voc import is_voc, parse_voc, voc_image

FILE = Path('001.xml')
BOX = '<bndbox><xmin>31</xmin><ymin>41</ymin><xmax>61</xmax><ymax>45</ymax></bndbox>'
SIZE = '<size><width>64</width><height>48</height></size>'


def parse(*objects: str, more: str = SIZE):
    inner = ''.join(f'<object>{one}</object>' for one in objects)
    return parse_voc(ET.fromstring(f'<annotation>{more}{inner}</annotation>'), FILE)


def test_an_annotation_is_known_by_its_root():
    assert is_voc(ET.fromstring('<annotation/>'), FILE)
    assert not is_voc(ET.fromstring('<annotations/>'), FILE)  # of CVAT's own


def test_an_annotation_is_of_one_image_and_counts_from_1():
    [image] = parse(f'<name> bar </name>{BOX}').images
    assert image.stated == (64, 48)
    [bar] = image.objects
    assert (bar.name, bar.form, bar.box, bar.from_1) == ('bar', 'xyxy', [31, 41, 61, 45], True)
    assert not bar.crowd


@pytest.mark.parametrize(('text', 'name'), [('<filename> 3.jpg </filename>', '3.jpg'), ('', '')])
def test_the_name_of_the_image_is_in_it(text, name):
    assert voc_image(ET.fromstring(f'<annotation>{text}</annotation>')) == name


def test_numbers_need_not_be_whole():
    """PaddleLabel#81."""
    [bar] = parse(f'<name>bar</name>{BOX.replace("31", "31.25")}').images[0].objects
    assert bar.box[0] == 31.25


@pytest.mark.parametrize('names', ['x1 y1 x2 y2 x3 y3', 'x y x y x y'])
def test_polygons_in_place_of_boxes(names):
    """convert2Yolo#16: Labelbox writes them so, and LabelMe in the browser."""
    points = ''.join(f'<{name}>{i}</{name}>' for i, name in enumerate(names.split()))
    text = f'<name>bar</name><polygon><username>me</username><pt>{points}</pt></polygon>'
    [bar] = parse(text).images[0].objects
    assert (bar.box, bar.segmentation, bar.from_1) == ((), [[0, 1, 2, 3, 4, 5]], True)


def test_parts_and_deleted_objects_are_left_out_and_named():
    part = '<part><name>head</name><bndbox><xmin>9</xmin></bndbox></part>'
    found = parse(f'<name>bar</name>{BOX}{part}', '<name>x</name><deleted>1</deleted>')
    assert len(found.images[0].objects) == 1
    assert found.faults == [
        ('parts of objects left out', "'head' in 001.xml", ''),
        ('deleted objects left out', "'x' in 001.xml", ''),
    ]


@pytest.mark.parametrize(
    ('more', 'crowd', 'degrees'),
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
def test_what_is_said_of_an_object(more, crowd, degrees):
    [bar] = parse(f'<name>bar</name>{more}{BOX}').images[0].objects
    assert (bar.crowd, bar.degrees) == (crowd, degrees)


def test_boxes_of_rolabelimg_have_a_center_and_radians():
    [bar] = (
        parse(
            '<name>bar</name><robndbox><cx>31</cx><cy>30</cy><w>20</w><h>4</h>'
            '<angle>1.570796</angle></robndbox>'
        )
        .images[0]
        .objects
    )
    assert (bar.form, bar.box) == ('center', [31, 30, 20, 4])
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
def test_an_object_that_is_not_complete_raises(text, words):
    with pytest.raises(ValueError, match=words):
        parse(text)


def test_sizes_that_are_none_are_not_stated():
    assert parse(more='').images[0].stated == (0, 0)
    assert parse(more=SIZE.replace('64', '0')).images[0].stated == (0, 0)
