"""CVAT's own XML of images and of videos."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from anyfolder.readers.formats.cvat import is_cvat, parse_cvat
from anyfolder.readers.geometry import box_around

FILE = Path('annotations.xml')
LABELS = ''.join(f'<label><name>{name}</name></label>' for name in 'ba')
META = f'<meta><task><labels>{LABELS}</labels></task></meta>'
BOX = (
    '<box label="a" xtl="3.5" ytl="4" xbr="20" ybr="22" occluded="0"{} />'  # {}: further attributes
)


def root_of(*nodes: str):
    return ElementTree.fromstring(f'<annotations>{META}{"".join(nodes)}</annotations>')


def image(*nodes: str, name: str = 'x/0.jpg') -> str:
    return f'<image id="0" name="{name}" width="48" height="40">{"".join(nodes)}</image>'


def test_shapes_of_images():
    polygon = '<polygon label="b" points="1,2;11.5,2;11,9" />'
    ellipse = '<ellipse label="b" cx="10" cy="12" rx="4" ry="5" />'
    root = root_of(image(BOX.format(''), polygon, ellipse), image(name='1.jpg'))
    assert is_cvat(root, FILE)
    parsed = parse_cvat(root, FILE)
    assert parsed.names == ['b', 'a']
    first, empty = parsed.images
    assert (first.name, first.stated_size, empty.objects) == ('x/0.jpg', (48, 40), [])
    box, outline, oval = first.objects
    assert (box.name, box.form, [*map(float, box.box)]) == ('a', 'xyxy', [3.5, 4, 20, 22])
    assert outline.segmentation == [[1, 2, 11.5, 2, 11, 9]]
    assert box_around(oval.segmentation) == pytest.approx((6, 7, 8, 10))


def test_rotated_and_difficult_boxes():
    flag = '<attribute name="difficult">true</attribute>'
    difficult = f'<box label="a" xtl="1" ytl="1" xbr="9" ybr="9">{flag}</box>'
    [found] = parse_cvat(root_of(image(BOX.format(' rotation="30"'), difficult)), FILE).images
    rotated, ignored = found.objects
    assert float(rotated.degrees) == 30
    assert not rotated.crowd
    assert ignored.crowd  # difficult objects are ignored regions, as COCO's crowds


def test_rotated_ellipses():
    ellipse = '<ellipse label="b" cx="10" cy="12" rx="4" ry="5" rotation="90.00" />'
    [found] = parse_cvat(root_of(image(ellipse)), FILE).images[0].objects
    assert box_around(found.segmentation) == pytest.approx((5, 8, 10, 8))


def test_subsets_of_a_project_are_splits():
    subsets = ('Train', 'Validation', 'default')
    texts = (image(BOX.format('')).replace(' id', f' subset="{subset}" id') for subset in subsets)
    images = parse_cvat(root_of(*texts), FILE).images
    assert [found.name for found in images] == ['x/0.jpg'] * 3
    assert [found.split for found in images] == ['train', 'val', None]
    assert [len(found.objects) for found in images] == [1, 1, 1]


def test_frames_of_a_video():
    """The box leaves the image in the last of three frames."""
    frames = ''.join(
        f'<box frame="{i}" outside="{int(i == 2)}" xtl="{i}" ytl="4" xbr="20" ybr="22" />'
        for i in range(3)
    )
    parsed = parse_cvat(root_of(f'<track id="0" label="a">{frames}</track>'), FILE)
    assert [frame.name for frame in parsed.images] == ['frame_000000', 'frame_000001']
    assert [float(frame.objects[0].box[0]) for frame in parsed.images] == [0, 1]


def test_points_are_reported_and_tags_are_not():
    parsed = parse_cvat(
        root_of(image('<points label="a" points="1,2" />', '<tag label="a" />')), FILE
    )
    assert [fault.what for fault in parsed.faults] == ['objects without a box left out']


def test_file_without_shapes_is_not_recognized():
    """It has no objects to read."""
    assert not is_cvat(root_of(), FILE)
    assert not is_cvat(root_of(image()), FILE)


def test_other_xml_is_rejected():
    assert not is_cvat(ElementTree.fromstring('<annotation><object /></annotation>'), FILE)
