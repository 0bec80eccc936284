"""Folders of images and masks, as several programs write them."""

import json
import re
import shutil

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


def read(folder, **options) -> Listing:
    return read_mask_folder(Tree(folder), **options)


def photograph(path, seed: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(60, 140, (48, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.mark.parametrize('write_form', MASKS, ids=lambda form: form.__name__)
def test_every_form_has_the_same_masks(tmp_path, write_form):
    write_form(tmp_path)
    found = read(tmp_path)
    assert found.classes == ('background', 'bar', 'square')
    assert tuple(len(part) for part in found.parts.values()) == MASKS[write_form]
    for photo in found.train:
        labels = class_map(found, photo)
        assert labels.dtype == np.uint8
        assert labels.shape == (48, 64)
        pixels = np.asarray(Image.open(photo.path).convert('L')).astype(int)
        # JPEG and the drawing of polygons change pixels at the edges.
        assert (abs(pixels[labels == 2] - 255) < 60).mean() > 0.85
        assert (pixels[labels == 1] < 60).mean() > 0.75
        assert (abs(pixels[labels == 0] - 128) < 60).mean() > 0.97


def write_values(folder, values: list[int], names: str = '') -> None:
    """Masks in which each of these values has some rows."""
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
def test_values_are_numbers_of_classes_or_grays(tmp_path, values, names, numbers):
    write_values(tmp_path, values, names)
    found = read(tmp_path)
    assert found.masks.numbers == numbers
    assert np.unique(class_map(found, found.train[0])).tolist() == sorted({*numbers.values()})
    classes = {number for number in numbers.values() if number != 255}
    assert len(found.classes) == (len(names.split()) or len(classes))


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
def test_values_that_cannot_be_classes_are_one_sentence(tmp_path, values, names, words):
    write_values(tmp_path, values, names)
    with rejects(words):
        read(tmp_path)


def test_a_class_without_a_pixel_is_named(tmp_path):
    write_values(tmp_path, [0, 2], 'ground cat dog')
    assert read(tmp_path).findings.rows()[-1:] == [
        ('classes without a pixel in any mask: no pixel of', 1, ['cat'])
    ]


def test_what_is_held_out_is_the_same_each_time(tmp_path):
    found, again = read(write_masks(tmp_path)), read(tmp_path)
    assert (sizes_of(found), found.held_out) == ([5, 1, 0], True)
    assert again == found


@pytest.mark.parametrize('outside', [True, False])
@pytest.mark.parametrize('test', ['test', 'Testing'])
def test_parts_are_folders_around_or_within(tmp_path, outside, test):
    for part, count in (('train', 3), ('valid', 2), (test, 1), ('unlabeled_backup', 1)):
        write_masks(tmp_path / part, count)
        for name in ('images', 'masks') if not outside else ():
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / part / name).rename(tmp_path / name / part)
    found = read(tmp_path)
    assert sizes_of(found) == [3, 2, 1]
    assert not found.held_out
    assert ('images left out, since they are in no folder or list of a split', 1) in notes_of(found)


def test_images_may_be_of_several_kinds(tmp_path):
    write_masks(tmp_path)
    Image.open(tmp_path / 'images/3.png').save(tmp_path / 'images/3.JPG')
    (tmp_path / 'images/3.png').unlink()
    (tmp_path / 'masks/3.png').rename(tmp_path / 'masks/3_mask.png')
    found = read(tmp_path)
    assert {photo.path.suffix for photo in found.train + found.val} == {'.png', '.JPG'}


def test_classes_called_mask_are_no_masks(tmp_path):
    write_masks(tmp_path)
    assert has_masks(Tree(tmp_path))
    (tmp_path / 'images').rename(tmp_path / 'no_mask')
    (tmp_path / 'masks').rename(tmp_path / 'mask')
    assert not has_masks(Tree(tmp_path))


def test_a_class_that_is_called_as_masks_are_makes_no_masks(tmp_path):
    for number, name in enumerate(('images', 'labels', 'other')):
        for i in range(3):
            photograph(tmp_path / f'{name}/{i}.png', 3 * number + i)
    assert not has_masks(Tree(tmp_path))


def test_two_images_of_one_name_are_no_image_and_mask(tmp_path):
    write_masks(tmp_path, 10)
    (tmp_path / 'masks/0.png').rename(tmp_path / 'images/0_label.png')
    (tmp_path / 'images').rename(tmp_path / 'cats')
    for path in (tmp_path / 'masks').iterdir():
        path.unlink()
    assert not has_masks(Tree(tmp_path))


def spoil_size(folder):
    cv2.imwrite(str(folder / 'masks/0.png'), np.zeros((3, 4), np.uint8))


def turn(folder):
    """A phone's image, with a mask drawn on the turned pixels or on the stored ones."""
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
        (turn, '0.png with 64 x 48 pixels, and .* with 48 x 64'),
    ],
)
def test_what_does_not_fit_is_one_sentence(tmp_path, spoil, words):
    spoil(write_masks(tmp_path))
    with rejects(words):
        read(tmp_path)


def test_what_does_not_fit_can_be_left_out(tmp_path):
    spoil_size(write_masks(tmp_path))
    found = read(tmp_path, skip_invalid=True)
    assert len(found.train + found.val) == 5


def test_boxes_are_no_polygons(tmp_path):
    ultralytics_yolo(tmp_path)
    with rejects(r'objects have a box but no polygon \(10, '):
        read(tmp_path)


def test_polygons_of_two_forms_are_not_guessed_about(tmp_path):
    ultralytics_yolo(tmp_path)
    write(tmp_path, 'all.json', coco_json([f'{i}.jpg' for i in range(6)], [[]] * 6))
    with rejects('has boxes as COCO and YOLO'):
        read(tmp_path)


def test_smaller_objects_are_in_front(tmp_path):
    boxes = [('bar', (10, 10, 20, 20)), ('square', (0, 0, 40, 40))]
    for i, (image, _) in enumerate(scenes(2)):
        save(tmp_path, f'{i}.png', image)
    write(tmp_path, 'all.json', coco_json(['0.png', '1.png'], [boxes, boxes]))
    found = read(tmp_path)
    labels = class_map(found, found.train[0])
    assert [found.classes[labels[y, x]] for y, x in ((15, 15), (30, 30), (45, 60))] == [
        'bar',
        'square',
        'background',
    ]


def test_what_labelme_exports_as_voc(tmp_path):
    """mmsegmentation#2146: the first name is of pixels without a class; pictures of masks are in
    another folder.
    """
    write_masks(tmp_path)
    (tmp_path / 'images').rename(tmp_path / 'JPEGImages')
    (tmp_path / 'masks').rename(tmp_path / 'SegmentationClassPNG')
    (tmp_path / 'SegmentationClassVisualization').mkdir()
    for i in range(6):
        Image.new('RGB', (64, 48)).save(tmp_path / f'SegmentationClassVisualization/{i}.jpg')
    (tmp_path / 'class_names.txt').write_text('__ignore__\n_background_\nbar\nsquare\n')
    found = read(tmp_path)
    assert found.classes == ('_background_', 'bar', 'square')
    assert len(found.train + found.val) == 6


def test_names_for_more_classes_than_the_masks_have(tmp_path):
    """mmsegmentation#2081: most rows of the table of scores are nan."""
    write_values(tmp_path, [0, 1], 'back valve extinguisher handle')
    assert read(tmp_path).findings.rows()[-1:] == [
        ('classes without a pixel in any mask: no pixel of', 2, ['extinguisher', 'handle'])
    ]


def test_masks_saved_as_jpeg_are_named(tmp_path):
    """mmsegmentation#2111: a gray of 255 with the values of JPEG around it."""
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
def test_folders_that_say_the_part_and_the_kind(tmp_path, images, masks):
    """As CamVid, Carvana and others on Kaggle have them."""
    for part, count in (('train', 3), ('val', 2)):
        write_masks(tmp_path / 'in', count)
        (tmp_path / 'in/images').rename(tmp_path / images.format(part))
        (tmp_path / 'in/masks').rename(tmp_path / masks.format(part))
        shutil.rmtree(tmp_path / 'in')
    assert [len(part) for part in read(tmp_path).parts.values()] == [3, 2, 0]


def renamed(folder, image: str, mask: str) -> None:
    """Images and masks with other names, in which {} is that of today."""
    write_masks(folder)
    for place, name in (('images', image), ('masks', mask)):
        for path in [*(folder / place).iterdir()]:
            path.rename(path.with_name(name.format(path.stem) + path.suffix))


@pytest.mark.parametrize(
    ('image', 'mask'),
    [('{}', '{}.png'), ('img_{}', 'mask_{}'), ('{}_sat', '{}_mask'), ('{}_training', '{}_manual1')],
)
def test_names_of_masks_differ_by_what_all_have(tmp_path, image, mask):
    renamed(tmp_path, image, mask)
    found = read(tmp_path)
    numbers = [
        tuple(re.search(r'\d', path.stem)[0] for path in (photo.path, photo.mask))
        for photo in found.train + found.val
    ]
    assert len(numbers) == 6
    assert all(number == other for number, other in numbers)


def test_images_and_masks_of_other_names_are_named(tmp_path):
    renamed(tmp_path, '{}', '1{}')
    with rejects(r'images have no mask of their name \(6, the first is'):
        read(tmp_path)


def test_a_table_names_the_colors(tmp_path):
    write_masks(tmp_path)
    for path in (tmp_path / 'masks').iterdir():
        colors = np.zeros((*np.array(Image.open(path)).shape, 3), np.uint8)
        colors[:, 4:] = 64, 128, 64
        Image.fromarray(colors).save(path)
    (tmp_path / 'class_dict.csv').write_text('name,r,g,b\nroad, 64, 128, 64\nvoid, 0, 0, 0\n')
    assert set(read(tmp_path).classes) == {'road', 'void'}


COLORED = {0: (0, 0, 0), 1: (64, 128, 64), 2: (255, 0, 0)}


def write_colored(folder, colors=COLORED):
    write_masks(folder)
    for path in (folder / 'masks').iterdir():
        table = np.array([colors[value] for value in range(3)], np.uint8)
        Image.fromarray(table[np.array(Image.open(path))]).save(path)


@pytest.mark.parametrize(
    ('name', 'table'),
    [
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\nroad,64,128,64\ncar,255,0,0'),
        ('class_dict.csv', 'id,name,r,g,b\n0,void,0,0,0\n1,road,64,128,64\n2,car,255,0,0'),
        ('class_dict.csv', 'r,g,b,id,class\n0,0,0,0,void\n64,128,64,1,road\n255,0,0,2,car'),
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
def test_tables_of_colors_as_people_write_them(tmp_path, name, table):
    """Semantic-Segmentation-Suite#187."""
    write_colored(tmp_path)
    (tmp_path / name).write_text(table)
    found = read(tmp_path)
    assert found.classes == ('void', 'road', 'car')
    photo = found.train[0]
    seen = np.asarray(Image.open(photo.mask))
    numbers = class_map(found, photo)
    assert all((numbers[(seen == COLORED[i]).all(-1)] == i).all() for i in range(3))


@pytest.mark.parametrize(
    ('name', 'table', 'words'),
    [
        ('class_dict.csv', 'name,r,g,b\nroad,64,128,64\ncar,255,0,0', ' 0, which .* not name'),
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\ncar,255,0,0', '#408040, which .* not name'),
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\nroad,64,128,x', 'is not a color; write three'),
        ('class_dict.csv', 'name,hex\nvoid,#00000g\n', 'is not a color; write three numbers'),
        ('class_dict.csv', 'name,r,g,b\nvoid,0,0,0\nroad,0,0,0', 'names the color .* twice'),
        ('labelmap.txt', 'road:64,128,64::\ncar:255,0,0::', ' 0, which .* not name'),
        ('_classes.csv', 'void\nroad\ncar', 'neither a value and a name on each line nor'),
        ('classes.txt', 'void\ncar\nroad', 'names without colors'),
    ],
)
def test_tables_that_do_not_name_the_colors_are_one_sentence(tmp_path, name, table, words):
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
def test_a_table_names_the_numbers(tmp_path, values, table, numbers):
    write_values(tmp_path, values)
    (tmp_path / 'classes.csv').write_text(table)
    found = read(tmp_path)
    assert found.masks.numbers == numbers
    assert {'void', 'car'} <= {*found.classes}


@pytest.mark.parametrize('part', ['val', 'test'])
def test_a_class_that_is_only_validated_or_tested_is_an_error(tmp_path, part):
    write_masks(tmp_path / 'train')
    write_masks(tmp_path / part, 2)
    for path in (tmp_path / 'train/masks').iterdir():
        Image.fromarray(np.array(Image.open(path)) % 2).save(path)
    with rejects("has the class 'class 2', which has no training data"):
        read(tmp_path)


@pytest.mark.parametrize('values', [[0, 1, 2], [0, 60, 120], [0, 255]])
@pytest.mark.parametrize('quality', [60, 95])
def test_masks_saved_as_jpeg_never_gain_a_class(tmp_path, values, quality):
    """glasses-detector#23."""
    write_masks(tmp_path)
    generator = np.random.default_rng(0)
    for path in [*(tmp_path / 'masks').iterdir()]:
        mask = np.array(values, np.uint8)[generator.integers(0, len(values), (6, 8))]
        cv2.imwrite(str(path.with_suffix('.jpg')), np.kron(mask, np.ones((8, 8), np.uint8)),
                    [cv2.IMWRITE_JPEG_QUALITY, quality])  # fmt: skip
        path.unlink()
    if values == [0, 255]:  # blocks of JPEG have no edges
        assert len(read(tmp_path).classes) == 2
        return
    with rejects('is a JPEG file, which changes the values of masks'):
        read(tmp_path)


@pytest.mark.parametrize('kind', ['JPEG', 'WebP', 'AVIF'])
def test_masks_that_are_no_png_by_their_content_are_named(tmp_path, kind):
    write_masks(tmp_path)
    for path in (tmp_path / 'masks').iterdir():
        Image.open(path).save(path, kind, quality=60)
    with rejects(f'is a {kind}.* file, which changes the values of masks'):
        read(tmp_path)


@pytest.mark.parametrize(('share', 'fits'), [(1, True), (0.5, False)])
def test_masks_of_fractions_are_no_classes(tmp_path, share, fits):
    write_masks(tmp_path)
    for path in [*(tmp_path / 'masks').iterdir()]:
        values = share * np.asarray(Image.open(path))
        Image.fromarray(values.astype('float32')).save(path.with_suffix('.tif'))
        path.unlink()
    if fits:
        assert len(read(tmp_path).classes) == 3
        return
    with rejects('masks cannot be read .*its values are not integers'):
        read(tmp_path)


@pytest.mark.parametrize('lines', ['2 cat|0 ground|1 dog', 'cat: 2|ground: 0|dog: 1'])
def test_names_have_numbers_in_a_text(tmp_path, lines):
    write_values(tmp_path, [0, 1, 2])
    (tmp_path / 'classes.txt').write_text(lines.replace('|', '\n'))
    assert read(tmp_path).classes == ('ground', 'dog', 'cat')


def test_images_and_masks_in_one_folder(tmp_path):
    """DeepGlobe's roads."""
    renamed(tmp_path, '{}_sat', '{}_mask')
    for path in (tmp_path / 'masks').iterdir():
        path.rename(tmp_path / 'images' / path.name)
    assert len(read(tmp_path).train) == 5


def test_lists_say_the_part_of_images_with_masks(tmp_path):
    write_masks(tmp_path)
    (tmp_path / 'splits').mkdir()
    (tmp_path / 'splits/test.txt').write_text('images/0.png masks/0.png\nimages/3.png\n')
    found = read(tmp_path)
    assert [photo.path.stem for photo in found.parts['test']] == ['0', '3']
    assert len(found.train + found.val) == 4


def with_orientation(path, value: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = value
    image = Image.open(path)
    image.load()
    image.save(path, exif=exif)


@pytest.mark.parametrize(
    ('orientation', 'square', 'masks', 'said'),
    [
        (6, True, False, True),
        (8, True, False, True),
        (3, False, False, True),
        (2, False, False, True),
        (6, True, True, False),
        (6, False, True, False),
        (1, True, False, False),
        (6, True, None, True),  # of the masks alone
    ],
)
def test_what_no_size_can_tell_is_compared_by_exif(tmp_path, orientation, square, masks, said):
    write_masks(tmp_path)
    for path in tmp_path.rglob('*.png'):
        if square:
            Image.open(path).resize((48, 48), Image.Resampling.NEAREST).save(path)
        if masks or (path.parent.name == 'images') == (masks is not None):
            with_orientation(path, orientation)
    found = read(tmp_path)
    notes = [what for what, _, _ in found.findings.rows()]
    assert any('without the EXIF orientation' in what for what in notes) == said
    if masks:  # both are turned
        photo = found.train[0]
        stored = np.array(Image.open(photo.mask))
        assert (class_map(found, photo) == np.rot90(stored, -1)).all()


def test_no_image_has_the_mask_of_another_part(tmp_path):
    """coco-minitrain#13."""
    write_masks(tmp_path / 'train')
    write_masks(tmp_path / 'val', 4)
    (tmp_path / 'train/masks/5.png').unlink()
    (tmp_path / 'val/images/3.png').unlink()
    with rejects(r'no mask of their name \(1, the first is .*train.*5'):
        read(tmp_path)
    found = read(tmp_path, skip_invalid=True)
    photos = found.train + found.val
    assert len(photos) == 5 + 3
    assert all(photo.path.parts[-3] == photo.mask.parts[-3] for photo in photos)


def test_two_masks_of_an_image_are_named(tmp_path):
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
    assert {photo.mask.parent.name for photo in read(tmp_path).train} == {'masks'}


def test_transparent_pixels_are_black_whatever_their_hidden_color(tmp_path):
    write_masks(tmp_path)
    for i, path in enumerate(sorted((tmp_path / 'masks').iterdir())):
        values = np.array(Image.open(path))
        colors = np.array([[40 * i, 9, 9, 0], [255, 0, 0, 255], [0, 255, 0, 255]], np.uint8)
        Image.fromarray(colors[values]).save(path)
    assert read(tmp_path).classes == ('class 0', 'class #00ff00', 'class #ff0000')


def test_palettes_that_give_one_number_two_colors_are_an_error(tmp_path):
    write_masks(tmp_path)
    for i, path in enumerate(sorted((tmp_path / 'masks').iterdir())):
        mask = Image.open(path)
        mask.putpalette([0, 0, 0, *((255, 0, 0, 0, 255, 0) if i else (0, 255, 0, 255, 0, 0))])
        mask.save(path)
    with rejects(r'different colors for one number .*0\.png and .*1\.png'):
        read(tmp_path)
    colors = 'name,r,g,b\nvoid,0,0,0\nroad,255,0,0\ncar,0,255,0\n'
    (tmp_path / 'class_dict.csv').write_text(colors)  # then these count, not the numbers
    assert read(tmp_path).classes == ('void', 'road', 'car')


def test_names_of_two_parts_agree(tmp_path):
    """Roboflow writes a table into the folder of each part."""
    write_masks(tmp_path)
    for part, names in (('train', 'road car'), ('valid', 'car road')):
        (tmp_path / part).mkdir()
        rows = [f'{i}, {name}' for i, name in enumerate(['void', *names.split()])]
        (tmp_path / part / '_classes.csv').write_text('\n'.join(['Pixel Value, Class', *rows]))
    with rejects(r'train/_classes\.csv.*valid/_classes\.csv.* order'):
        read(tmp_path)


def test_masks_that_number_their_objects_are_named(tmp_path):
    """Penn-Fudan."""
    write_masks(tmp_path)
    for i, path in enumerate((tmp_path / 'masks').iterdir()):
        Image.fromarray(np.array(Image.open(path)).clip(0, i % 3)).save(path)
    assert 'count from 0' in str(read(tmp_path).findings.rows())


@pytest.mark.parametrize(
    ('images', 'masks'),
    [('img', 'masks_machine'), ('images_png', 'masks_png'), ('JPEGImages', 'SegmentationClassAug')],
)
def test_folders_of_supervisely_and_of_public_sets(tmp_path, images, masks):
    write_masks(tmp_path)
    (tmp_path / 'images').rename(tmp_path / images)
    (tmp_path / 'masks').rename(tmp_path / masks)
    assert len(read(tmp_path).train) == 5


def test_a_list_of_images_to_train_on_says_nothing_of_another_part(tmp_path):
    write_masks(tmp_path)
    for kind in ('images', 'masks'):
        (tmp_path / kind / 'val').mkdir()
        (tmp_path / kind / '5.png').rename(tmp_path / kind / 'val/5.png')
    (tmp_path / 'train.txt').write_text(''.join(f'{i}\n' for i in range(4)))
    found = read(tmp_path)
    assert sizes_of(found) == [4, 1, 0]


@pytest.mark.parametrize(('interpolated', 'own'), [(True, 0), (True, 1), (False, 1)])
def test_values_at_edges_alone_are_named(tmp_path, interpolated, own):
    """Of two classes 0 and 2 that were resized; or of a third one with pixels of its own."""
    for i in range(8):
        mask = np.zeros((24, 32), np.uint8)
        mask[4:16, 8 : 20 + i] = 2
        method = cv2.INTER_LINEAR if interpolated else cv2.INTER_NEAREST
        mask = cv2.resize(mask, (64, 48), interpolation=method)
        mask[40:, :20] = own
        for place, pixels in (('images', np.full((48, 64, 3), 20 * i, np.uint8)), ('masks', mask)):
            (tmp_path / place).mkdir(exist_ok=True)
            cv2.imwrite(str(tmp_path / f'{place}/{i}.png'), pixels)
    found = read_mask_folder(Tree(tmp_path))
    assert found.classes == ('class 0', 'class 1', 'class 2')
    said = [(what, examples) for what, _, examples in found.findings.rows() if 'at edges' in what]
    assert [examples for _, examples in said] == [['1']] * interpolated


def region(shape: tuple[int, int], seed: int) -> np.ndarray:
    """A mask (H, W) of one region somewhere."""
    mask = np.zeros(shape, np.uint8)
    top, left = np.random.default_rng(seed).integers(0, 24, 2)
    mask[top : top + 16, left : left + 24] = 255
    return mask


def save_map(path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


FIELD = np.zeros((48, 64), np.uint8)
FIELD[4:-4, 6:-6] = 255


def retina(folder, labels: str, count: int = 8) -> None:
    """Photographs, their labels, and the camera's field of view, as DRIVE and HRF have them."""
    for i in range(count):
        photograph(folder / f'images/{i:02}_test.tif', i)
        save_map(folder / f'{labels}/{i:02}_manual1.gif', region((48, 64), i))
        save_map(folder / f'mask/{i:02}_test_mask.gif', np.roll(FIELD, i % 2, 1))


@pytest.mark.parametrize('labels', ['1st_manual', 'manual1', 'vessels'])
def test_a_field_of_view_is_not_what_is_learned(tmp_path, labels):
    """BCDU-Net#7, VGN#15."""
    retina(tmp_path / 'training', labels)
    retina(tmp_path / 'test', labels, 3)
    shutil.rmtree(tmp_path / 'test' / labels)  # as DRIVE is published today
    assert has_masks(Tree(tmp_path))
    found = read(tmp_path)
    assert {one.mask.parent.name for one in found.train + found.val} == {labels}
    assert sizes_of(found) == [7, 1, 0]
    notes = dict(notes_of(found))
    assert notes['images to test without masks, left out'] == 3
    assert any('nearly the same for all images' in what for what in notes)


def test_masks_that_are_nearly_the_same_for_all_images_are_named(tmp_path):
    retina(tmp_path, 'vessels')
    shutil.rmtree(tmp_path / 'vessels')
    what = 'masks that are nearly the same for all images, like a field of view'
    assert (what, 1) in notes_of(read(tmp_path))


def test_maps_of_objects_are_not_those_of_classes(tmp_path):
    """KITTI: an object of each image has another number."""
    for i in range(6):
        photograph(tmp_path / f'image_2/{i}.jpg', i)
        save_map(tmp_path / f'semantic/{i}.png', region((48, 64), i) // 255)
        save_map(tmp_path / f'instance/{i}.png', region((48, 64), i) // 255 * (i + 1))
    with rejects(r'which maps are the labels of .*instance/0.png. or .*semantic/0'):
        read(tmp_path)


def test_which_of_several_maps_are_the_labels_is_a_question(tmp_path):
    for i in range(6):
        photograph(tmp_path / f'rgb/{i}.jpg', i)
        for place, seed in (('semantic', i), ('instance', i + 50)):
            save_map(tmp_path / f'{place}/{i}.png', region((48, 64), seed))
    with rejects(r'which maps are the labels of .*rgb/0.jpg.: .*instance/0.png. or .*semantic/0'):
        read(tmp_path)
    shutil.rmtree(tmp_path / 'instance')
    for i in range(6):  # the same in colors
        colors = np.stack([region((48, 64), i)] * 3, -1) // [1, 2, 3]
        save_map(tmp_path / f'semantic_rgb/{i}.png', colors.astype(np.uint8))
    found = read(tmp_path)
    assert {one.mask.parent.name for one in found.train} == {'semantic'}
    what = 'maps left out, since they repeat the others'
    assert (what, 6) in notes_of(found)


@pytest.mark.parametrize(
    ('image', 'mask'),
    [
        ('PNGImages/FudanPed0000{}.png', 'PedMasks/FudanPed0000{}_mask.png'),
        ('701_StillsRaw_full/0001TP_00{}.png', 'LabeledApproved_full/0001TP_00{}_L.png'),
        ('RGB/clip{}/000.png', 'GroundTruths/clip{}/000.png'),
    ],
)
def test_maps_are_known_by_their_pixels_where_no_name_says_it(tmp_path, image, mask):
    for i in range(6):
        for j in range(2) if 'clip' in image else (0,):
            photograph(tmp_path / image.replace('000.', f'00{j}.').format(i), 2 * i + j)
            save_map(tmp_path / mask.replace('000.', f'00{j}.').format(i), region((48, 64), i))
    assert has_masks(Tree(tmp_path))
    found = read(tmp_path)
    assert len(found.classes) == 2
    assert all(re.findall(r'\d+', str(one.path))[-1:] for one in found.train)


def test_classes_with_files_of_the_same_names_are_no_images_and_masks(tmp_path):
    for name in ('cat', 'dog', 'mask'):
        for i in range(4):
            photograph(tmp_path / f'{name}/{i}.png', ord(name[0]) + i)
    assert not has_masks(Tree(tmp_path))


def test_several_maps_of_an_image_are_images_and_masks(tmp_path):
    """CelebAMask-HQ."""
    for i in range(6):
        photograph(tmp_path / f'CelebA-HQ-img/{i}.jpg', i)
        for part in ('hair', 'skin'):
            save_map(tmp_path / f'mask-anno/{i // 3}/{i:05}_{part}.png', region((48, 64), i))
    assert has_masks(Tree(tmp_path))


def test_the_lists_of_segmentation_count_in_voc(tmp_path):
    """VOC 2012 has masks of some images, and lists of all in ImageSets/Main."""
    for i in range(6):
        photograph(tmp_path / f'JPEGImages/{i}.jpg', i)
        if i < 4:
            save_map(tmp_path / f'SegmentationClass/{i}.png', region((48, 64), i))
    for name, numbers in (('Main', (4, 2)), ('Segmentation', (3, 1))):
        (tmp_path / 'ImageSets' / name).mkdir(parents=True)
        train, val = numbers
        for split, group in (('train', range(train)), ('val', range(train, train + val))):
            file = tmp_path / f'ImageSets/{name}/{split}.txt'
            file.write_text(''.join(f'{i}\n' for i in group))
    assert sizes_of(read(tmp_path)) == [3, 1, 0]


@pytest.mark.parametrize(('split', 'purpose'), [('valid', 'validate'), ('test', 'test')])
def test_images_of_a_split_without_any_mask_are_left_out(tmp_path, split, purpose):
    """DeepGlobe publishes masks of the images to train on alone."""
    for i in range(8):
        photograph(tmp_path / f'train/{i}_sat.jpg', i)
        save_map(tmp_path / f'train/{i}_mask.png', region((48, 64), i))
    for i in range(3):
        photograph(tmp_path / f'{split}/{i + 20}_sat.jpg', i + 20)
    found = read(tmp_path)
    assert sizes_of(found) == [7, 1, 0]
    assert dict(notes_of(found))[f'images to {purpose} without masks, left out'] == 3


@pytest.mark.parametrize(
    'labels', [dict(background=0, road=1, tree=2), {'0': 'background', '1': 'road', '2': 'tree'}]
)
def test_names_of_nnunet(tmp_path, labels):
    for i in range(8):
        photograph(tmp_path / f'imagesTr/case_{i:03}_0000.png', i)
        save_map(tmp_path / f'labelsTr/case_{i:03}.png', region((48, 64), i) // 255 * (1 + i % 2))
    (tmp_path / 'dataset.json').write_text(json.dumps(dict(labels=labels, numTraining=8)))
    found = read(tmp_path)
    assert found.classes == ('background', 'road', 'tree')
    assert 'files left out, .json' not in dict(notes_of(found))
