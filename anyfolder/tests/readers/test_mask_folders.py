"""Folders of images and masks, as several programs write them."""

import json
import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from foreign_data import MASKS, coco_json, save, ultralytics_yolo, write
from image_folders import scenes, write_masks
from listings import notes_of, sizes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.drawn_masks import class_map
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.mask_folders import read_mask_folder
from anyfolder.readers.mask_pairs import has_masks
from anyfolder.readers.mask_values import probe_mask


def read(folder, **options) -> Listing:
    return read_mask_folder(Tree(folder), **options)


def photograph(path, seed: int) -> None:
    """Save noise, which is not taken for a mask."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(60, 140, (48, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.mark.parametrize('write_scenes', MASKS, ids=lambda write: write.__name__)
def test_every_format_has_the_same_masks(tmp_path, write_scenes):
    write_scenes(tmp_path)
    listing = read(tmp_path)
    assert listing.classes == ('background', 'bar', 'square')
    assert tuple(len(part) for part in listing.parts.values()) == MASKS[write_scenes]
    for record in listing.train:
        labels = class_map(listing, record)
        assert labels.dtype == np.uint8
        assert labels.shape == (48, 64)
        pixels = np.asarray(Image.open(record.path).convert('L')).astype(int)
        # JPEG and the drawing of polygons change pixels at the edges.
        assert (abs(pixels[labels == 2] - 255) < 60).mean() > 0.85
        assert (pixels[labels == 1] < 60).mean() > 0.75
        assert (abs(pixels[labels == 0] - 128) < 60).mean() > 0.97


def write_values(folder, values: list[int], names: str = '') -> None:
    """Masks with some rows of each value, and class names that are separated by blanks."""
    write_masks(folder)
    for i in range(6):
        mask = np.zeros((48, 64), np.uint8)
        for row, value in enumerate(values):
            mask[row * 48 // len(values) :] = value
        cv2.imwrite(str(folder / f'masks/{i}.png'), mask)
    if names:
        (folder / 'classes.txt').write_text(names.replace(' ', '\n'))


@pytest.mark.parametrize(
    ('values', 'names', 'numbers'),
    [
        ([0, 1, 2], '', {0: 0, 1: 1, 2: 2}),
        ([0, 1, 2, 255], '', {0: 0, 1: 1, 2: 2, 255: 255}),
        ([0, 1, 255], 'ground thing', {0: 0, 1: 1, 255: 255}),
        ([0, 255], '', {0: 0, 255: 1}),
        ([0, 255], 'ground thing', {0: 0, 255: 1}),
        ([0, 128], '', {0: 0, 128: 1}),
        ([0, 254], 'ground thing', {0: 0, 254: 1}),
        ([0, 128, 255], '', {0: 0, 128: 1, 255: 2}),
        ([0, 1, 3, 255], '', {0: 0, 1: 1, 3: 2, 255: 255}),
        ([1, 2], 'ground thing', {1: 0, 2: 1}),
        ([0, 15, 255], '', {0: 0, 15: 1, 255: 255}),
        ([0, 2], 'ground cat dog', {0: 0, 2: 2}),
    ],
)
def test_values_are_class_numbers_or_grays(tmp_path, values, names, numbers):
    """``numbers`` are the classes of the values; 255 is ignored."""
    write_values(tmp_path, values, names)
    listing = read(tmp_path)
    assert listing.masks.numbers == numbers
    assert np.unique(class_map(listing, listing.train[0])).tolist() == sorted({*numbers.values()})
    classes = {number for number in numbers.values() if number != 255}
    assert len(listing.classes) == (len(names.split()) or len(classes))


@pytest.mark.parametrize(
    ('values', 'names', 'words'),
    [
        ([0, 1, 2], 'a b', 'the masks have the values 0, 1, 2, but 2 classes have names'),
        ([0, 128], 'a b c', 'the masks have the values 0, 128, but 3 classes have names'),
        (
            [*range(0, 250, 10)],
            '',
            'have 25 values, up to 240, which are not class numbers; .* save masks as PNG',
        ),
        ([7], '', 'all pixels of all masks have the value 7'),
        ([0], 'a', 'all pixels of all masks have the value 0'),
    ],
)
def test_values_that_cannot_be_classes_raise(tmp_path, values, names, words):
    write_values(tmp_path, values, names)
    with rejects(words):
        read(tmp_path)


def test_photographs_in_place_of_masks_raise(tmp_path):
    """No value has a large region, which a comparison of the masks once took for granted."""
    for i in range(6):
        photograph(tmp_path / f'images/{i}.png', i)
        photograph(tmp_path / f'masks/{i}.png', 6 + i)
    with rejects('which are not class numbers'):
        read(tmp_path)


def test_classes_without_a_pixel_are_reported(tmp_path):
    write_values(tmp_path, [0, 2], 'ground cat dog')
    assert read(tmp_path).findings.rows()[-1:] == [
        ('classes without a pixel in any mask: no pixel of', 1, ['cat'])
    ]


def test_held_out_images_are_the_same_each_time(tmp_path):
    first, again = read(write_masks(tmp_path)), read(tmp_path)
    assert (sizes_of(first), first.held_out) == ([5, 1, 0], True)
    assert again == first


@pytest.mark.parametrize('outside', [True, False])
@pytest.mark.parametrize('test', ['test', 'Testing'])
def test_split_folders_may_be_outside_or_within(tmp_path, outside, test):
    for split, count in (('train', 3), ('valid', 2), (test, 1), ('unlabeled_backup', 1)):
        write_masks(tmp_path / split, count)
        if not outside:
            for name in ('images', 'masks'):
                (tmp_path / name).mkdir(exist_ok=True)
                (tmp_path / split / name).rename(tmp_path / name / split)
    listing = read(tmp_path)
    assert sizes_of(listing) == [3, 2, 1]
    assert not listing.held_out
    assert ('images left out, since they are in no folder or list of a split', 1) in notes_of(
        listing
    )


def test_images_may_have_several_suffixes(tmp_path):
    write_masks(tmp_path)
    Image.open(tmp_path / 'images/3.png').save(tmp_path / 'images/3.JPG')
    (tmp_path / 'images/3.png').unlink()
    (tmp_path / 'masks/3.png').rename(tmp_path / 'masks/3_mask.png')
    listing = read(tmp_path)
    assert {record.path.suffix for record in listing.train + listing.val} == {'.png', '.JPG'}


def test_classes_called_mask_are_not_masks(tmp_path):
    write_masks(tmp_path)
    assert has_masks(Tree(tmp_path))
    (tmp_path / 'images').rename(tmp_path / 'no_mask')
    (tmp_path / 'masks').rename(tmp_path / 'mask')
    assert not has_masks(Tree(tmp_path))


def test_class_with_the_name_of_a_mask_folder_is_not_masks(tmp_path):
    for number, name in enumerate(('images', 'labels', 'other')):
        for i in range(3):
            photograph(tmp_path / f'{name}/{i}.png', 3 * number + i)
    assert not has_masks(Tree(tmp_path))


def test_two_images_with_matching_names_are_not_image_and_mask(tmp_path):
    write_masks(tmp_path, 10)
    (tmp_path / 'masks/0.png').rename(tmp_path / 'images/0_label.png')
    (tmp_path / 'images').rename(tmp_path / 'cats')
    for path in (tmp_path / 'masks').iterdir():
        path.unlink()
    assert not has_masks(Tree(tmp_path))


def spoil_size(folder):
    cv2.imwrite(str(folder / 'masks/0.png'), np.zeros((3, 4), np.uint8))


def rotate(folder):
    """Give an image the EXIF orientation of a phone's, which its mask does not have."""
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.open(folder / 'images/0.png').save(folder / 'images/0.png', exif=exif)


@pytest.mark.parametrize(
    ('spoil', 'words'),
    [
        (
            lambda folder: (folder / 'masks/3.png').unlink(),
            r'images have no mask of their name \(1, the first is .*3.png',
        ),
        (lambda folder: shutil.rmtree(folder / 'masks'), "a folder 'masks'"),
        (
            lambda folder: (folder / 'classes.txt').write_text('a\nb\n'),
            'have the values 0, 1, 2, but 2 classes have names',
        ),
        (lambda folder: (folder / 'masks/0.png').write_text('no'), 'masks cannot be read'),
        (spoil_size, '0.png with 4 x 3 pixels, and .* with 64 x 48'),
        (rotate, '0.png with 64 x 48 pixels, and .* with 48 x 64'),
    ],
)
def test_invalid_folders_raise(tmp_path, spoil, words):
    spoil(write_masks(tmp_path))
    with rejects(words):
        read(tmp_path)


def test_invalid_masks_can_be_left_out(tmp_path):
    spoil_size(write_masks(tmp_path))
    listing = read(tmp_path, skip_invalid=True)
    assert len(listing.train + listing.val) == 5


def test_boxes_without_polygons_raise(tmp_path):
    ultralytics_yolo(tmp_path)
    with rejects(r'objects have a box but no polygon \(10, '):
        read(tmp_path)


def test_polygons_in_two_formats_raise(tmp_path):
    ultralytics_yolo(tmp_path)
    write(tmp_path, 'all.json', coco_json([f'{i}.jpg' for i in range(6)], [[]] * 6))
    with rejects('has boxes as COCO and YOLO'):
        read(tmp_path)


def test_smaller_objects_are_in_front(tmp_path):
    boxes = [('bar', (10, 10, 20, 20)), ('square', (0, 0, 40, 40))]
    for i, (image, _) in enumerate(scenes(2)):
        save(tmp_path, f'{i}.png', image)
    write(tmp_path, 'all.json', coco_json(['0.png', '1.png'], [boxes, boxes]))
    listing = read(tmp_path)
    labels = class_map(listing, listing.train[0])
    assert [listing.classes[labels[y, x]] for y, x in ((15, 15), (30, 30), (45, 60))] == [
        'bar',
        'square',
        'background',
    ]


def test_voc_folders_of_labelme_are_read(tmp_path):
    """The first name stands for pixels without a class, and a further folder has pictures of the
    masks (mmsegmentation#2146).
    """
    write_masks(tmp_path)
    (tmp_path / 'images').rename(tmp_path / 'JPEGImages')
    (tmp_path / 'masks').rename(tmp_path / 'SegmentationClassPNG')
    (tmp_path / 'SegmentationClassVisualization').mkdir()
    for i in range(6):
        Image.new('RGB', (64, 48)).save(tmp_path / f'SegmentationClassVisualization/{i}.jpg')
    (tmp_path / 'class_names.txt').write_text('__ignore__\n_background_\nbar\nsquare\n')
    listing = read(tmp_path)
    assert listing.classes == ('_background_', 'bar', 'square')
    assert len(listing.train + listing.val) == 6


def test_names_of_unused_classes_are_reported(tmp_path):
    """Their scores would be NaN: mmsegmentation#2081."""
    write_values(tmp_path, [0, 1], 'back valve extinguisher handle')
    assert read(tmp_path).findings.rows()[-1:] == [
        ('classes without a pixel in any mask: no pixel of', 2, ['extinguisher', 'handle'])
    ]


def test_masks_saved_as_jpeg_raise(tmp_path):
    """JPEG adds values around those of 255: mmsegmentation#2111."""
    write_masks(tmp_path, 12)
    for i in range(12):
        mask = cv2.imread(str(tmp_path / f'masks/{i}.png'), cv2.IMREAD_GRAYSCALE)
        cv2.imwrite(
            str(tmp_path / f'masks/{i}.jpg'),
            255 * (mask > 0).astype(np.uint8),
            [cv2.IMWRITE_JPEG_QUALITY, 30],
        )
        (tmp_path / f'masks/{i}.png').unlink()
    with rejects('is a JPEG file, which changes the values of masks at edges'):
        read(tmp_path)


@pytest.mark.parametrize(
    ('images', 'masks'),
    [('{}', '{}annot'), ('{}', '{}_labels'), ('{}', '{}_masks'), ('{}_images', '{}_masks')],
)
def test_folder_names_may_state_the_split_and_the_content(tmp_path, images, masks):
    """As in CamVid, Carvana and others on Kaggle."""
    for split, count in (('train', 3), ('val', 2)):
        write_masks(tmp_path / 'in', count)
        (tmp_path / 'in/images').rename(tmp_path / images.format(split))
        (tmp_path / 'in/masks').rename(tmp_path / masks.format(split))
        shutil.rmtree(tmp_path / 'in')
    assert [len(part) for part in read(tmp_path).parts.values()] == [3, 2, 0]


def write_renamed(folder, image: str, mask: str) -> None:
    """The images and masks of :func:`write_masks`; ``{}`` in the new names is the original stem."""
    write_masks(folder)
    for subfolder, name in (('images', image), ('masks', mask)):
        for path in [*(folder / subfolder).iterdir()]:
            path.rename(path.with_name(name.format(path.stem) + path.suffix))


@pytest.mark.parametrize(
    ('image', 'mask'),
    [('{}', '{}.png'), ('img_{}', 'mask_{}'), ('{}_sat', '{}_mask'), ('{}_training', '{}_manual1')],
)
def test_names_of_images_and_masks_may_differ_by_common_words(tmp_path, image, mask):
    write_renamed(tmp_path, image, mask)
    listing = read(tmp_path)
    records = listing.train + listing.val
    assert len(records) == 6
    for record in records:
        number, mask_number = (
            re.search(r'\d', path.stem)[0] for path in (record.path, record.mask)
        )
        assert number == mask_number


def test_images_without_a_mask_of_their_name_raise(tmp_path):
    write_renamed(tmp_path, '{}', '1{}')
    with rejects(r'images have no mask of their name \(6, the first is'):
        read(tmp_path)


def test_class_names_come_from_a_table_of_colors(tmp_path):
    write_masks(tmp_path)
    for path in (tmp_path / 'masks').iterdir():
        colors = np.zeros((*np.array(Image.open(path)).shape, 3), np.uint8)
        colors[:, 4:] = 64, 128, 64
        Image.fromarray(colors).save(path)
    (tmp_path / 'class_dict.csv').write_text('name,r,g,b\nroad, 64, 128, 64\nvoid, 0, 0, 0\n')
    assert set(read(tmp_path).classes) == {'road', 'void'}


def test_negative_values_are_not_taken_for_large_ones(tmp_path):
    """In eight bits, -2 would lie between 0 and -1."""
    values = np.repeat(np.array([[0, -2, -1]], np.float32), 8, axis=1).repeat(24, axis=0)
    Image.fromarray(values).save(tmp_path / '0.tif')
    _, probe = probe_mask(tmp_path / '0.tif')
    assert probe.counts == {0: 192, -2: 192, -1: 192}
    assert not probe.parts


def test_columns_without_values_at_the_end_of_a_table_are_ignored(tmp_path):
    write_masks(tmp_path)
    (tmp_path / 'class_dict.csv').write_text('id,name,note,\n0,void\n1,road,wide\n2,car')
    assert read(tmp_path).classes == ('void', 'road', 'car')


COLORS = (0, 0, 0), (64, 128, 64), (255, 0, 0)  # of void, road and car


def write_colored(folder):
    """The scenes of :func:`write_masks`, with :data:`COLORS` in place of the values 0, 1 and 2."""
    write_masks(folder)
    for path in (folder / 'masks').iterdir():
        Image.fromarray(np.array(COLORS, np.uint8)[np.array(Image.open(path))]).save(path)


@pytest.mark.parametrize(
    ('name', 'table'),
    [
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\nroad,64,128,64\ncar,255,0,0'),
        ('class_dict.csv', 'id,name,r,g,b\n0,void,0,0,0\n1,road,64,128,64\n2,car,255,0,0'),
        ('class_dict.csv', 'r,g,b,id,class\n0,0,0,0,void\n64,128,64,1,road\n255,0,0,2,car'),
        (
            'class_dict.csv',
            'name,r,g,b,hex\nvoid,0,0,0,#000000\nroad,64,128,64,#408040\ncar,255,0,0,#ff0000',
        ),
        (
            'class_dict.csv',
            'id,name,color,hex\n0,void,black,#000000\n1,road,green,#408040\n2,car,red,#ff0000',
        ),
        ('class_dict.csv', 'name;Red;Green;Blue\nvoid;0;0;0\nroad;64;128;64\ncar;255;0;0'),
        ('class_dict.csv', 'name\thex\nvoid\t#000000\nroad\t408040\ncar\t#FF0000'),
        ('colors.csv', 'label,color\nvoid,"0,0,0"\nroad,"(64, 128, 64)"\ncar,[255 0 0]'),
        ('class_dict_seg.csv', 'name, r, g, b\nvoid, 0, 0, 0\nroad, 64, 128, 64\ncar, 255, 0, 0'),
        ('labelmap.txt', '# label:color_rgb\nvoid:0,0,0::\nroad:64,128,64::\ncar:255,0,0::'),
        ('label_colors.txt', '0 0 0\tvoid\n64 128 64\troad\n255 0 0\tcar'),  # CamVid
        (
            'class_dict.csv',
            'sep=;\nlabel_id;label;hex_color\n0;void;#000\n1;road;#408040\n2;car;red',
        ),
        (
            'c.tsv',
            '# made by hand\nClass Name\tR\tG\tB\nvoid\t0\t0\t0\nroad\t64\t128\t64\ncar\t255\t0\t0',
        ),
    ],
)
def test_tables_of_colors_in_many_styles_are_read(tmp_path, name, table):
    """Semantic-Segmentation-Suite#187."""
    write_colored(tmp_path)
    (tmp_path / name).write_text(table)
    listing = read(tmp_path)
    assert listing.classes == ('void', 'road', 'car')
    record = listing.train[0]
    pixels = np.asarray(Image.open(record.mask))
    numbers = class_map(listing, record)
    for number, color in enumerate(COLORS):
        assert (numbers[(pixels == color).all(-1)] == number).all()


@pytest.mark.parametrize(
    ('name', 'table', 'words'),
    [
        ('class_dict.csv', 'name,r,g,b\nroad,64,128,64\ncar,255,0,0', ' 0, which .* not name'),
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\ncar,255,0,0', '#408040, which .* not name'),
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\nroad,64,128,x', 'is not a color; write three'),
        pytest.param(
            'class_dict.csv',
            'name,r,g,b\nvoid,0,0,' + '9' * 5000,
            'is not a color; write three',
            id='5000 digits',
        ),
        ('class_dict.csv', 'name,hex\nvoid,#00000g\n', 'is not a color; write three numbers'),
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\nroad,0,0,0', 'names the color .* twice'),
        ('labelmap.txt', 'road:64,128,64::\ncar:255,0,0::', ' 0, which .* not name'),
        ('_classes.csv', 'void\nroad\ncar', 'neither a value and a name on each line nor'),
        ('classes.txt', 'void\ncar\nroad', 'names without colors'),
        ('labelmap.txt', 'void\ncar\nroad', 'names without colors'),
        ('labelmap.txt', 'void:0,0,0::\nroad', 'is not a color; write three numbers'),
    ],
)
def test_incomplete_and_invalid_tables_of_colors_raise(tmp_path, name, table, words):
    write_colored(tmp_path)
    (tmp_path / name).write_text(table)
    with rejects(words):
        read(tmp_path)


@pytest.mark.parametrize(
    ('values', 'table', 'numbers'),
    [
        ([0, 7, 11], 'id,name\n0,void\n5,bike\n7,road\n11,car', {0: 0, 7: 2, 11: 3}),
        ([0, 1, 255], 'class;index\ncar;1\nvoid;0', {0: 0, 1: 1, 255: 255}),
        ([0, 128, 255], 'name,value\nvoid,0\nroad,128\ncar,255', {0: 0, 128: 1, 255: 2}),
        ([0, 1, 2], 'id,name,r,g,b\n0,void,0,0,0\n1,road,9,8,7\n2,car,8,8,9', {0: 0, 1: 1, 2: 2}),
        ([0, 255], 'id,name\n0,void\n1,car', {0: 0, 255: 1}),
    ],
)
def test_class_names_come_from_a_table_of_values(tmp_path, values, table, numbers):
    write_values(tmp_path, values)
    (tmp_path / 'classes.csv').write_text(table)
    listing = read(tmp_path)
    assert listing.masks.numbers == numbers
    assert {'void', 'car'} <= {*listing.classes}


@pytest.mark.parametrize('split', ['val', 'test'])
def test_class_without_training_masks_raises(tmp_path, split):
    write_masks(tmp_path / 'train')
    write_masks(tmp_path / split, 2)
    for path in (tmp_path / 'train/masks').iterdir():
        Image.fromarray(np.array(Image.open(path)) % 2).save(path)
    with rejects("has the class 'class 2', which has no training data"):
        read(tmp_path)


@pytest.mark.parametrize('values', [[0, 1, 2], [0, 60, 120], [0, 255]])
@pytest.mark.parametrize('quality', [60, 95])
def test_masks_saved_as_jpeg_do_not_gain_classes(tmp_path, values, quality):
    """Squares as large as JPEG's blocks: glasses-detector#23."""
    write_masks(tmp_path)
    generator = np.random.default_rng(0)
    for path in [*(tmp_path / 'masks').iterdir()]:
        mask = np.array(values, np.uint8)[generator.integers(0, len(values), (6, 8))]
        cv2.imwrite(str(path.with_suffix('.jpg')), np.kron(mask, np.ones((8, 8), np.uint8)),
                    [cv2.IMWRITE_JPEG_QUALITY, quality])  # fmt: skip
        path.unlink()
    if values == [0, 255]:  # blocks of black and white are kept
        assert len(read(tmp_path).classes) == 2
        return
    with rejects('is a JPEG file, which changes the values of masks'):
        read(tmp_path)


@pytest.mark.parametrize('file_format', ['JPEG', 'WebP', 'AVIF'])
def test_masks_in_lossy_formats_raise_whatever_their_suffix(tmp_path, file_format):
    write_masks(tmp_path)
    for path in (tmp_path / 'masks').iterdir():
        Image.open(path).save(path, file_format, quality=60)
    with rejects(f'is a {file_format}.* file, which changes the values of masks'):
        read(tmp_path)


def write_float_masks(folder, factor: float) -> None:
    """Masks with the values 0, 1 and 2 times a factor, as 32-bit floats."""
    write_masks(folder)
    for path in [*(folder / 'masks').iterdir()]:
        values = factor * np.asarray(Image.open(path))
        Image.fromarray(values.astype('float32')).save(path.with_suffix('.tif'))
        path.unlink()


def test_float_masks_of_integers_are_read(tmp_path):
    write_float_masks(tmp_path, 1)
    assert len(read(tmp_path).classes) == 3


def test_float_masks_of_fractions_raise(tmp_path):
    write_float_masks(tmp_path, 0.5)
    with rejects('masks cannot be read .*its values are not integers'):
        read(tmp_path)


@pytest.mark.parametrize('lines', ['2 cat|0 ground|1 dog', 'cat: 2|ground: 0|dog: 1'])
def test_text_may_have_names_with_numbers(tmp_path, lines):
    write_values(tmp_path, [0, 1, 2])
    (tmp_path / 'classes.txt').write_text(lines.replace('|', '\n'))
    assert read(tmp_path).classes == ('ground', 'dog', 'cat')


def test_images_and_masks_in_one_folder(tmp_path):
    """DeepGlobe's roads."""
    write_renamed(tmp_path, '{}_sat', '{}_mask')
    for path in (tmp_path / 'masks').iterdir():
        path.rename(tmp_path / 'images' / path.name)
    assert len(read(tmp_path).train) == 5


@pytest.mark.parametrize(
    ('names', 'are_masks'),
    [
        (['image', 'mask'], True),
        (['slice', 'GT'], True),
        (['r', 'l'], False),  # the right and the left one of two photographs
        (['bottle', 'label'], False),
    ],
)
def test_folder_of_each_case_has_an_image_and_its_mask(tmp_path, names, are_masks):
    write_masks(tmp_path / 'all')
    for i in range(6):
        for kind, name in zip(('images', 'masks'), names, strict=True):
            [source] = (tmp_path / f'all/{kind}').glob(f'{i}.*')
            (tmp_path / f'cases/p{i}').mkdir(parents=True, exist_ok=True)
            shutil.copy(source, tmp_path / f'cases/p{i}/{name}{source.suffix}')
    assert has_masks(Tree(tmp_path / 'cases')) == are_masks
    if are_masks:
        records = [*(listing := read(tmp_path / 'cases')).train, *listing.val]
        assert len(records) == 6
        assert all(record.mask.parent == Path(record.path).parent for record in records)


def test_lists_give_the_split_of_images_with_masks(tmp_path):
    write_masks(tmp_path)
    (tmp_path / 'splits').mkdir()
    (tmp_path / 'splits/test.txt').write_text('images/0.png masks/0.png\nimages/3.png\n')
    listing = read(tmp_path)
    assert [record.path.stem for record in listing.parts['test']] == ['0', '3']
    assert len(listing.train + listing.val) == 4


def set_orientation(path, value: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = value
    image = Image.open(path)
    image.load()
    image.save(path, exif=exif)


@pytest.mark.parametrize(
    ('orientation', 'square', 'folders', 'is_reported'),
    [
        (6, True, ['images'], True),
        (8, True, ['images'], True),
        (3, False, ['images'], True),
        (2, False, ['images'], True),
        (6, True, ['images', 'masks'], False),
        (6, False, ['images', 'masks'], False),
        (1, True, ['images'], False),
        (6, True, ['masks'], True),
    ],
)
def test_different_orientations_of_image_and_mask_are_reported(
    tmp_path, orientation, square, folders, is_reported
):
    """The sizes agree if an image is square, rotated by 180 degrees or mirrored."""
    write_masks(tmp_path)
    for path in tmp_path.rglob('*.png'):
        if square:
            Image.open(path).resize((48, 48), Image.Resampling.NEAREST).save(path)
        if path.parent.name in folders:
            set_orientation(path, orientation)
    listing = read(tmp_path)
    notes = [what for what, _, _ in listing.findings.rows()]
    assert any('without the EXIF orientation' in what for what in notes) == is_reported
    if 'masks' in folders and 'images' in folders:
        record = listing.train[0]
        stored = np.array(Image.open(record.mask))
        assert (class_map(listing, record) == np.rot90(stored, -1)).all()


def test_images_do_not_take_masks_of_another_split(tmp_path):
    """coco-minitrain#13."""
    write_masks(tmp_path / 'train')
    write_masks(tmp_path / 'val', 4)
    (tmp_path / 'train/masks/5.png').unlink()
    (tmp_path / 'val/images/3.png').unlink()
    with rejects(r'no mask of their name \(1, the first is .*train.*5'):
        read(tmp_path)
    listing = read(tmp_path, skip_invalid=True)
    records = listing.train + listing.val
    assert len(records) == 5 + 3
    assert all(record.path.parts[-3] == record.mask.parts[-3] for record in records)


def test_two_masks_of_an_image_raise(tmp_path):
    write_masks(tmp_path)
    shutil.copytree(tmp_path / 'masks', tmp_path / 'masks_old')
    shutil.copytree(tmp_path / 'masks', tmp_path / 'gt')
    cv2.imwrite(str(tmp_path / 'gt/0.png'), np.zeros((48, 64), np.uint8))
    with rejects(r'which maps are the labels of .*: .*gt/0.png. or .*masks/0.png.\? Keep'):
        read(tmp_path)
    shutil.rmtree(tmp_path / 'masks_old')
    with rejects(r'images have two label files \(1, .*0\.png and'):
        read(tmp_path)
    shutil.copytree(tmp_path / 'masks', tmp_path / 'masks_old')
    shutil.rmtree(tmp_path / 'gt')
    assert {record.mask.parent.name for record in read(tmp_path).train} == {'masks'}


def test_transparent_pixels_are_black_whatever_their_hidden_color(tmp_path):
    write_masks(tmp_path)
    for i, path in enumerate(sorted((tmp_path / 'masks').iterdir())):
        values = np.array(Image.open(path))
        colors = np.array([[40 * i, 9, 9, 0], [255, 0, 0, 255], [0, 255, 0, 255]], np.uint8)
        Image.fromarray(colors[values]).save(path)
    assert read(tmp_path).classes == ('class 0', 'class #00ff00', 'class #ff0000')


def test_palettes_that_disagree_raise_without_a_table_of_colors(tmp_path):
    write_masks(tmp_path)
    for i, path in enumerate(sorted((tmp_path / 'masks').iterdir())):
        mask = Image.open(path)
        red, green = (255, 0, 0), (0, 255, 0)
        colors = (red, green) if i else (green, red)
        mask.putpalette([0, 0, 0, *colors[0], *colors[1]])
        mask.save(path)
    with rejects(r'different colors for one number .*0\.png and .*1\.png'):
        read(tmp_path)
    table = 'name,r,g,b\nvoid,0,0,0\nroad,255,0,0\ncar,0,255,0\n'
    (tmp_path / 'class_dict.csv').write_text(table)  # so colors count, not numbers
    assert read(tmp_path).classes == ('void', 'road', 'car')


def test_splits_with_different_class_names_raise(tmp_path):
    """Roboflow writes a table into the folder of each split."""
    write_masks(tmp_path)
    for split, names in (('train', ('void', 'road', 'car')), ('valid', ('void', 'car', 'road'))):
        (tmp_path / split).mkdir()
        rows = [f'{i}, {name}' for i, name in enumerate(names)]
        (tmp_path / split / '_classes.csv').write_text('\n'.join(['Pixel Value, Class', *rows]))
    with rejects(r'train/_classes\.csv.*valid/_classes\.csv.* order'):
        read(tmp_path)


def test_masks_that_number_their_objects_are_reported(tmp_path):
    """Penn-Fudan."""
    write_masks(tmp_path)
    for i, path in enumerate((tmp_path / 'masks').iterdir()):
        Image.fromarray(np.array(Image.open(path)).clip(0, i % 3)).save(path)
    assert 'count from 0' in str(read(tmp_path).findings.rows())


@pytest.mark.parametrize(
    ('images', 'masks'),
    [('img', 'masks_machine'), ('images_png', 'masks_png'), ('JPEGImages', 'SegmentationClassAug')],
)
def test_folder_names_of_supervisely_and_public_data_sets(tmp_path, images, masks):
    write_masks(tmp_path)
    (tmp_path / 'images').rename(tmp_path / images)
    (tmp_path / 'masks').rename(tmp_path / masks)
    assert len(read(tmp_path).train) == 5


def test_training_list_leaves_the_validation_folder_alone(tmp_path):
    write_masks(tmp_path)
    for folder in (tmp_path / 'images', tmp_path / 'masks'):
        (folder / 'val').mkdir()
        (folder / '5.png').rename(folder / 'val/5.png')
    (tmp_path / 'train.txt').write_text(''.join(f'{i}\n' for i in range(4)))
    listing = read(tmp_path)
    assert sizes_of(listing) == [4, 1, 0]


@pytest.mark.parametrize(('interpolated', 'area_value'), [(True, 0), (True, 1), (False, 1)])
def test_interpolated_values_at_edges_are_reported(tmp_path, interpolated, area_value):
    """Between the classes 0 and 2 there is a 1 at edges, in an area of its own, or in both."""
    for i in range(8):
        mask = np.zeros((24, 32), np.uint8)
        mask[4:16, 8 : 20 + i] = 2
        method = cv2.INTER_LINEAR if interpolated else cv2.INTER_NEAREST
        mask = cv2.resize(mask, (64, 48), interpolation=method)
        mask[40:, :20] = area_value
        save_map(tmp_path / f'images/{i}.png', np.full((48, 64, 3), 20 * i, np.uint8))
        save_map(tmp_path / f'masks/{i}.png', mask)
    listing = read(tmp_path)
    assert listing.classes == ('class 0', 'class 1', 'class 2')
    reported = [examples for what, _, examples in listing.findings.rows() if 'at edges' in what]
    assert reported == ([['1']] if interpolated else [])


def region(shape: tuple[int, int], seed: int) -> np.ndarray:
    """A mask (H, W) with a rectangle at a random position."""
    mask = np.zeros(shape, np.uint8)
    top, left = np.random.default_rng(seed).integers(0, 24, 2)
    mask[top : top + 16, left : left + 24] = 255
    return mask


def save_map(path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


# A camera's field of view, which is the same in all images.
FIELD = np.zeros((48, 64), np.uint8)
FIELD[4:-4, 6:-6] = 255


def write_retina(folder, labels: str, count: int = 8) -> None:
    """Photographs, their labels, and the camera's field of view, as in DRIVE and HRF."""
    for i in range(count):
        photograph(folder / f'images/{i:02}_test.tif', i)
        save_map(folder / f'{labels}/{i:02}_manual1.gif', region((48, 64), i))
        save_map(folder / f'mask/{i:02}_test_mask.gif', np.roll(FIELD, i % 2, 1))


@pytest.mark.parametrize('labels', ['1st_manual', 'manual1', 'vessels'])
def test_field_of_view_is_not_taken_for_labels(tmp_path, labels):
    """BCDU-Net#7, VGN#15."""
    write_retina(tmp_path / 'training', labels)
    write_retina(tmp_path / 'test', labels, count=3)
    shutil.rmtree(tmp_path / 'test' / labels)  # DRIVE's test labels are not published
    assert has_masks(Tree(tmp_path))
    listing = read(tmp_path)
    assert {record.mask.parent.name for record in listing.train + listing.val} == {labels}
    assert sizes_of(listing) == [7, 1, 0]
    notes = dict(notes_of(listing))
    assert notes['images to test without masks, left out'] == 3
    assert any('nearly the same for all images' in what for what in notes)


def test_masks_that_are_nearly_the_same_for_all_images_are_reported(tmp_path):
    write_retina(tmp_path, 'vessels')
    shutil.rmtree(tmp_path / 'vessels')
    what = 'masks that are nearly the same for all images, like a field of view'
    assert (what, 1) in notes_of(read(tmp_path))


def test_object_maps_next_to_class_maps_raise(tmp_path):
    """As in KITTI: objects have different numbers, and their class one."""
    for i in range(6):
        photograph(tmp_path / f'image_2/{i}.jpg', i)
        save_map(tmp_path / f'semantic/{i}.png', region((48, 64), i) // 255)
        save_map(tmp_path / f'instance/{i}.png', region((48, 64), i) // 255 * (i + 1))
    with rejects(r'which maps are the labels of .*instance/0.png. or .*semantic/0'):
        read(tmp_path)


def test_several_maps_of_an_image_raise_unless_they_repeat(tmp_path):
    for i in range(6):
        photograph(tmp_path / f'rgb/{i}.jpg', i)
        save_map(tmp_path / f'semantic/{i}.png', region((48, 64), i))
        save_map(tmp_path / f'instance/{i}.png', region((48, 64), i + 50))
    with rejects(r'which maps are the labels of .*rgb/0.jpg.: .*instance/0.png. or .*semantic/0'):
        read(tmp_path)
    shutil.rmtree(tmp_path / 'instance')
    for i in range(6):  # the same maps in colors
        colors = np.stack([region((48, 64), i)] * 3, -1) // [1, 2, 3]
        save_map(tmp_path / f'semantic_rgb/{i}.png', colors.astype(np.uint8))
    listing = read(tmp_path)
    assert {record.mask.parent.name for record in listing.train} == {'semantic'}
    what = 'maps left out, since they repeat the others'
    assert (what, 6) in notes_of(listing)


@pytest.mark.parametrize(
    ('image', 'mask', 'frames'),
    [
        ('PNGImages/FudanPed0000{i}.png', 'PedMasks/FudanPed0000{i}_mask.png', 1),
        ('701_StillsRaw_full/0001TP_00{i}.png', 'LabeledApproved_full/0001TP_00{i}_L.png', 1),
        ('RGB/clip{i}/00{j}.png', 'GroundTruths/clip{i}/00{j}.png', 2),
    ],
)
def test_masks_in_folders_of_unknown_names_are_recognized_by_pixels(tmp_path, image, mask, frames):
    for i in range(6):
        for j in range(frames):
            photograph(tmp_path / image.format(i=i, j=j), 2 * i + j)
            save_map(tmp_path / mask.format(i=i, j=j), region((48, 64), i))
    assert has_masks(Tree(tmp_path))
    assert len(read(tmp_path).classes) == 2


def test_classes_with_files_of_the_same_names_are_not_images_and_masks(tmp_path):
    for name in ('cat', 'dog', 'mask'):
        for i in range(4):
            photograph(tmp_path / f'{name}/{i}.png', ord(name[0]) + i)
    assert not has_masks(Tree(tmp_path))


def test_images_with_several_maps_have_masks(tmp_path):
    """CelebAMask-HQ."""
    for i in range(6):
        photograph(tmp_path / f'CelebA-HQ-img/{i}.jpg', i)
        for part in ('hair', 'skin'):
            save_map(tmp_path / f'mask-anno/{i // 3}/{i:05}_{part}.png', region((48, 64), i))
    assert has_masks(Tree(tmp_path))


def test_voc_is_divided_by_the_lists_of_segmentation(tmp_path):
    """VOC 2012 has masks of some images, and lists of all images in ImageSets/Main."""
    for i in range(6):
        photograph(tmp_path / f'JPEGImages/{i}.jpg', i)
        if i < 4:
            save_map(tmp_path / f'SegmentationClass/{i}.png', region((48, 64), i))
    lists = {
        'Main/train': range(4),
        'Main/val': range(4, 6),
        'Segmentation/train': range(3),
        'Segmentation/val': range(3, 4),
    }
    for name, numbers in lists.items():
        file = tmp_path / f'ImageSets/{name}.txt'
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(''.join(f'{i}\n' for i in numbers))
    assert sizes_of(read(tmp_path)) == [3, 1, 0]


@pytest.mark.parametrize(('split', 'purpose'), [('valid', 'validate'), ('test', 'test')])
def test_images_of_a_split_without_any_mask_are_left_out(tmp_path, split, purpose):
    """DeepGlobe publishes masks of its training images only."""
    for i in range(8):
        photograph(tmp_path / f'train/{i}_sat.jpg', i)
        save_map(tmp_path / f'train/{i}_mask.png', region((48, 64), i))
    for i in range(3):
        photograph(tmp_path / f'{split}/{i + 20}_sat.jpg', i + 20)
    listing = read(tmp_path)
    assert sizes_of(listing) == [7, 1, 0]
    assert dict(notes_of(listing))[f'images to {purpose} without masks, left out'] == 3


@pytest.mark.parametrize(
    'labels', [dict(background=0, road=1, tree=2), {'0': 'background', '1': 'road', '2': 'tree'}]
)
def test_class_names_of_nnunet_are_read(tmp_path, labels):
    for i in range(8):
        photograph(tmp_path / f'imagesTr/case_{i:03}_0000.png', i)
        save_map(tmp_path / f'labelsTr/case_{i:03}.png', region((48, 64), i) // 255 * (1 + i % 2))
    (tmp_path / 'dataset.json').write_text(json.dumps(dict(labels=labels, numTraining=8)))
    listing = read(tmp_path)
    assert listing.classes == ('background', 'road', 'tree')
    assert 'files left out, .json' not in dict(notes_of(listing))


def test_numbers_of_classes_end_at_254(tmp_path):
    """The names of 300 classes are no fault if masks have pixels of the first ones only."""
    write_values(tmp_path, [0, 1, 2], ' '.join(f'n{i}' for i in range(300)))
    assert len(read(tmp_path).classes) == 300
    mask = np.zeros((48, 64), np.uint16)
    mask[24:] = 299
    cv2.imwrite(str(tmp_path / 'masks/0.png'), mask)
    with rejects("pixels of 'n299', which is class 299 of .*classes.txt.* end at 254"):
        read(tmp_path)
