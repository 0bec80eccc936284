"""Tables with a box in each row."""

from pathlib import Path

import pytest

from anyfolder.errors import InputError
from anyfolder.readers.formats.box_tables import is_box_table, is_open_images, parse_box_table

FILE = Path('boxes.csv')
OPEN_IMAGES = 'ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf'
TENSORFLOW = 'filename,width,height,class,xmin,ymin,xmax,ymax'


def rows(header: str, *lines: str) -> list[dict[str, str]]:
    return [dict(zip(header.split(','), line.split(','), strict=True)) for line in lines]


def parse(header: str, *lines: str):
    return parse_box_table(rows(header, *lines), FILE)


@pytest.mark.parametrize(
    ('header', 'fits'),
    [
        (TENSORFLOW, True),
        ('image_id,width,height,bbox', True),  # Kaggle's wheat heads
        ('Image_Name,x1,y1,x2,y2', True),
        ('file,x_min,y_min,x_max,y_max', True),
        (OPEN_IMAGES, True),
        ('filename,class', False),
        ('class,xmin,ymin,xmax,ymax', False),
        ('filename,xmin,ymin,xmax', False),
    ],
)
def test_box_tables_are_recognized_by_their_header(header, fits):
    empty_row = dict.fromkeys(header.split(','), '')
    assert is_box_table([empty_row], FILE) == fits
    assert is_open_images([empty_row], FILE) == (header == OPEN_IMAGES)


def test_empty_table_has_no_images():
    assert not is_box_table([], FILE)
    assert parse_box_table([], FILE).images == []


def test_corners_are_pixels_with_the_size_of_the_image():
    parsed = parse(TENSORFLOW, '0.png,64,48,bar,4,6,24,30', '0.png,64,48,square,1,2,3,4')
    [image] = parsed.images
    assert (image.name, image.stated_size) == ('0.png', (64, 48))
    bar, square = image.objects
    assert (bar.name, bar.form, bar.relative, bar.box) == ('bar', 'xyxy', False, [4, 6, 24, 30])
    assert square.name == 'square'
    assert bar.origin == '0.png in boxes.csv'


def test_boxes_are_relative_if_no_number_exceeds_1():
    lines = ['000a,x,/m/b,1,0.1,0.5,0.2,0.9,0', '000b,x,/m/b,1,0,1,0,1,1']
    parsed = parse(OPEN_IMAGES, *lines)
    single, group = (image.objects[0] for image in parsed.images)
    assert (single.form, single.relative, single.box) == ('xyxy', True, [0.1, 0.2, 0.5, 0.9])
    assert (single.crowd, group.crowd) == (False, True)
    in_pixels = parse(OPEN_IMAGES, *lines, '000c,x,/m/b,1,0,20,0,20,0')
    assert not any(found.relative for image in in_pixels.images for found in image.objects)


@pytest.mark.parametrize('title', ['Difficult', 'ignore', 'is_crowd', 'iscrowd'])
def test_flags_mark_objects_to_ignore(title):
    lines = ['0.png,a,4,6,24,30,1', '0.png,a,1,2,3,4,0', '0.png,a,5,6,7,8,']
    [image] = parse(f'file,class,xmin,ymin,xmax,ymax,{title}', *lines).images
    assert [found.crowd for found in image.objects] == [True, False, False]


def test_box_column_has_left_top_width_and_height():
    table = [dict(image_id='0', bbox='[4.0, 6, 20.0, 2.4e1]')]
    [found] = parse_box_table(table, FILE).images[0].objects
    assert (found.form, found.box, found.name) == ('xywh', [4, 6, 20, 24], 'object')


def test_row_without_a_box_is_an_image_without_objects():
    parsed = parse(TENSORFLOW, '0.png,64,48,,,,,', '1.png,64,48,bar,4,6,24,30')
    assert [len(image.objects) for image in parsed.images] == [0, 1]
    assert parsed.faults == [('objects without a box left out', '0.png in boxes.csv', '')]


@pytest.mark.parametrize(
    ('column', 'words', 'splits'),
    [
        ('split', ('train', 'test'), ['train', 'test']),
        ('is_test', ('0', '1'), ['train', 'test']),
        ('Usage', ('Training', 'PublicTest'), ['train', 'test']),
        ('source', ('a', 'b'), [None, None]),  # not a split column
    ],
)
def test_split_column_gives_the_split_of_each_image(column, words, splits):
    lines = [f'{word},{i}.png,bar,4,6,24,30' for i, word in enumerate(words)]
    parsed = parse(f'{column},file,class,xmin,ymin,xmax,ymax', *lines)
    assert [image.split for image in parsed.images] == splits


def test_split_column_with_unknown_names_raises():
    with pytest.raises(InputError, match="'split' of 'boxes.csv' has values such as 'a'"):
        parse('split,file,class,xmin,ymin,xmax,ymax', 'a,0.png,bar,4,6,24,30')


@pytest.mark.parametrize('words', [('train', 'test'), ('test', 'train')])
def test_image_of_two_splits_is_in_the_one_furthest_from_training(words):
    lines = [f'{word},0.png,bar,4,6,24,30' for word in (*words, '')]
    parsed = parse('split,file,class,xmin,ymin,xmax,ymax', *lines)
    assert [image.split for image in parsed.images] == ['test']
    assert parsed.faults == [
        ('images in several splits, left out of training', '0.png in boxes.csv', '')
    ]


def test_long_text_in_place_of_a_number_is_read_at_once():
    """It took a time that grew with the square of the length."""
    parsed = parse(TENSORFLOW, f'0.png,64,48,bar,{"e" * 200_000},,,')
    assert not parsed.images[0].objects
