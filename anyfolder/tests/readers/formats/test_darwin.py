"""V7 Darwin's JSON of an image."""

from pathlib import Path

import pytest

from anyfolder.readers.formats.darwin import darwin_image, is_darwin, parse_darwin

FILE = Path('0.json')
BOX = dict(name='a', bounding_box=dict(x=4, y=6, w=20, h=24))
TRIANGLE = [dict(x=4, y=6), dict(x=24, y=6), dict(x=24, y=30)]


def content(*rows) -> dict:
    slot = dict(slot_name='0', type='image', width=64, height=48)
    return dict(version='2.0', item=dict(name='0.png', path='/', slots=[slot]), annotations=[*rows])


def test_darwin_files_have_an_item_with_slots():
    assert is_darwin(content(), FILE)
    assert not is_darwin(dict(item='a', annotations=[]), FILE)
    assert not is_darwin(dict(images=[], annotations=[]), FILE)  # COCO
    assert darwin_image(content()) == '0.png'


def test_boxes_and_polygons_of_several_parts():
    row = dict(BOX, polygon=dict(paths=[TRIANGLE, TRIANGLE[::-1]]))
    [image] = parse_darwin(content(BOX, row), FILE).images
    box, polygon = image.objects
    assert image.stated_size == (64, 48)
    assert (box.name, box.form, box.box) == ('a', 'xywh', [4, 6, 20, 24])
    assert polygon.segmentation == [[4, 6, 24, 6, 24, 30], [24, 30, 24, 6, 4, 6]]


def test_tags_and_lines_are_left_out_and_reported():
    parsed = parse_darwin(content(BOX, dict(name='b', tag={}), dict(name='c', line={})), FILE)
    assert len(parsed.images[0].objects) == 1
    assert parsed.faults == [
        ('objects without a box left out', 'b of 0.json', ''),  # '': no remedy, only a note
        ('objects without a box left out', 'c of 0.json', ''),
    ]


@pytest.mark.parametrize(
    'wrong', [dict(bounding_box=BOX['bounding_box']), dict(BOX, bounding_box=dict(x=1))]
)
def test_incomplete_annotations_raise(wrong):
    with pytest.raises(KeyError):  # `rejecting_malformed` makes a sentence of it
        parse_darwin(content(wrong), FILE)
