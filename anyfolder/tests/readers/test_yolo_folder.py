"""YOLO's folders: labels, class names, and the paths of the splits."""

import json
from pathlib import Path

import pytest
from box_scenes import EXPECTED_BOXES
from foreign_data import cvat_yolo, labelimg_yolo, roboflow_yolo, save, write
from image_folders import scenes
from listings import boxes_of, notes_of, sizes_of
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing
from anyfolder.readers.yolo_folder import label_files


def read(folder: Path, **options) -> Listing:
    return read_annotated_folder(Tree(folder), **options)


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_images_without_labels_have_no_object(tmp_path):
    roboflow_yolo(tmp_path)
    (tmp_path / 'train/labels/1_jpg.rf.abc.txt').unlink()
    write(tmp_path, 'train/labels/stray.txt', '0 0.5 0.5 0.1 0.1\n')
    write(tmp_path, 'train/stray.txt', '0 0.5 0.5 0.1 0.1\n')
    listing = read(tmp_path)
    assert len(listing.train) == 6
    notes = dict(notes_of(listing))
    assert notes['images without a label file, taken as empty'] == 1
    assert notes['label files left out, since no image has their name'] == 2
    assert notes['images without an object'] == 1


def test_captions_next_to_images_are_not_labels(tmp_path):
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').iterdir():
        path.write_text('a bright square\n')
        path.rename(tmp_path / 'images' / path.name)
    (tmp_path / 'images/classes.txt').unlink()
    assert label_files(Tree(tmp_path)) == {}


def test_notes_in_an_unknown_encoding_are_left_out(tmp_path):
    labelimg_yolo(tmp_path)
    (tmp_path / 'README.txt').write_bytes('两类'.encode('gb18030'))
    listing = read(tmp_path)
    assert boxes_of(listing) == EXPECTED_BOXES
    assert notes_of(listing) == [('files left out, .txt', 1)]


def test_labels_next_to_images_are_recognized_by_their_lines(tmp_path):
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').iterdir():
        path.rename(tmp_path / 'images' / path.name)
    (tmp_path / 'images/classes.txt').rename(tmp_path / 'images/voc.names')
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES
    (tmp_path / 'images/voc.names').unlink()
    with rejects('no file with the names of the classes'):
        read(tmp_path)


def test_folder_may_lie_within_a_folder_called_labels(tmp_path):
    folder = tmp_path / 'labels/images'
    folder.mkdir(parents=True)
    labelimg_yolo(folder)
    assert boxes_of(read(folder)) == EXPECTED_BOXES


@pytest.mark.parametrize(
    ('name', 'old', 'new', 'words'),
    [
        ('train/labels/1_jpg.rf.abc.txt', '1 0.', '7 0.', 'have a class that data.yaml does not'),
        (
            'train/labels/1_jpg.rf.abc.txt',
            '1 0.',
            '1 x 0.',
            'lines are neither a class and 4 numbers',
        ),
        ('train/labels/1_jpg.rf.abc.txt', '1 0.', '1 70.', 'values beyond 0 to 1'),
        ('data.yaml', "['bar', 'square']", '3', 'must be a list of the classes'),
        ('data.yaml', 'names:', 'names: [', 'is not YAML'),
    ],
)
def test_invalid_labels_and_settings_raise(tmp_path, name, old, new, words):
    roboflow_yolo(tmp_path)
    replace(tmp_path / name, old, new)
    with rejects(words):
        read(tmp_path)


def test_classes_must_have_names(tmp_path):
    labelimg_yolo(tmp_path)
    (tmp_path / 'labels/classes.txt').unlink()
    with rejects('no file with the names of the classes; add data.yaml'):
        read(tmp_path)


@pytest.mark.parametrize(
    ('number', 'proposed'),
    [('7', 8), ('2000000', 1000), pytest.param('9' * 5000, 2, id='5000 digits')],
)
def test_names_are_proposed_for_few_classes(tmp_path, number, proposed):
    """A class number of an untrusted file is no reason to make as many names."""
    labelimg_yolo(tmp_path)
    (tmp_path / 'labels/classes.txt').unlink()
    write(tmp_path, 'labels/1.txt', f'{number} 0.5 0.5 0.1 0.1\n')
    with rejects('no file with the names of the classes') as error:
        read(tmp_path)
    assert len(error.value.answer['classes']) == proposed


@pytest.mark.parametrize(
    ('settings', 'classes'),
    [
        ('names: [no, 007]', ('no', '007')),
        ('names: [bar, square, bar]', ('bar', 'square')),
        ('names: {1: square, "0": bar}', ('bar', 'square')),
    ],
)
def test_class_names_are_text_and_repeated_names_are_one_class(tmp_path, settings, classes):
    labelimg_yolo(tmp_path)
    (tmp_path / 'labels/classes.txt').unlink()
    write(tmp_path, 'data.yaml', settings)
    listing = read(tmp_path)
    assert listing.classes == classes
    numbers = [row['id'] for row in json.loads(listing.as_coco(listing.train))['categories']]
    assert numbers == [1, 2]
    repeated = ('categories with the same name, taken as one class', 1) in notes_of(listing)
    assert repeated == (settings.count('bar') == 2)


def test_class_number_without_a_name_raises(tmp_path):
    labelimg_yolo(tmp_path)
    (tmp_path / 'labels/classes.txt').unlink()
    write(tmp_path, 'data.yaml', 'names: {1: bar, 2: square}\n')
    with rejects('does not name .*class 0, .*count from 0'):
        read(tmp_path)


@pytest.mark.parametrize('form', ['{} {}', '{}: {}', '{},{}'])
def test_numbered_class_names_are_in_the_order_of_their_numbers(tmp_path, form):
    labelimg_yolo(tmp_path)
    known = read(tmp_path).classes
    lines = [form.format(i, name) for i, name in enumerate(known)]
    write(tmp_path, 'labels/classes.txt', '\n'.join(reversed(lines)))
    assert read(tmp_path).classes == known


def test_class_names_in_latin_1_are_decoded(tmp_path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'labels/classes.txt', 'bär\nsquare\n', encoding='latin-1')
    listing = read(tmp_path)
    assert listing.classes == ('bär', 'square')
    [(what, _, [example])] = listing.findings.rows()
    assert 'read as Windows-1252' in what
    assert example.startswith("'bär' in ")


@pytest.mark.parametrize('names', ['old.yaml', 'images/classes.txt', 'data.yaml'])
def test_files_with_different_class_names_raise(tmp_path, names):
    labelimg_yolo(tmp_path)
    if names == 'old.yaml':
        write(tmp_path, 'data.yaml', 'names: [bar, square]')
    write(tmp_path, names, 'square\nbar\n' if names.endswith('txt') else 'names: [square, bar]')
    with rejects('name different classes, or in a different order'):
        read(tmp_path)


def test_files_may_have_the_same_class_names_in_two_forms(tmp_path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'data.yaml', 'names: [bar, square]\n')
    write(tmp_path, 'ultralytics.yaml', 'names:\n  0: bar\n  1: square\n')
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES


def test_kpt_shape_tells_boxes_from_polygons(tmp_path):
    """A visibility of 2 is not a fraction: ultralytics#20138."""
    roboflow_yolo(tmp_path)
    for path in tmp_path.rglob('labels/*.txt'):
        lines = path.read_text().splitlines()
        path.write_text('\n'.join(f'{line} 0.5 0.5 2.0 0.1 0.2 2.0' for line in lines))
    with rejects(r'add kpt_shape: \[2, 3\] to data.yaml'):
        read(tmp_path)
    with open(tmp_path / 'data.yaml', 'a') as file:
        file.write('kpt_shape: [2, 3]\n')
    assert boxes_of(read(tmp_path)) == EXPECTED_BOXES
    replace(tmp_path / 'data.yaml', '[2, 3]', '[4, 3]')
    with rejects(r'lines are neither .* \(20, the first'):
        read(tmp_path)


def test_scores_before_boxes_are_reported(tmp_path):
    labelimg_yolo(tmp_path)
    for path in (tmp_path / 'labels').glob('[0-9].txt'):
        rows = [row.split(maxsplit=1) for row in path.read_text().splitlines()]
        path.write_text('\n'.join(f'{label} 0.9 {box}' for label, box in rows))
    listing = read(tmp_path)
    assert boxes_of(listing) == EXPECTED_BOXES
    what = 'lines with a score before the box, read as class, score, x, y, width, height'
    assert (what, 20) in notes_of(listing)


def test_object_may_cover_an_image_of_one_pixel(tmp_path):
    """Its box has the same numbers in pixels and in fractions."""
    for i, (image, _) in enumerate(scenes(4)):
        save(tmp_path, f'images/{i}.png', image[:1, :1] // (i + 1))
        write(tmp_path, f'labels/{i}.txt', '0 0.5 0.5 1 1')
    write(tmp_path, 'classes.txt', 'dot')
    assert boxes_of(read(tmp_path)) == {('dot', 0, 0, 1, 1): 4}


# Paths of the splits.


def test_images_are_held_out_if_both_splits_are_the_same(tmp_path):
    """As in coco128."""
    labelimg_yolo(tmp_path)
    write(tmp_path, 'data.yaml', 'train: images\nval: images\nnames: [bar, square]\n')
    listing = read(tmp_path)
    assert (sizes_of(listing), listing.held_out) == ([9, 1, 0], True)
    assert ('images listed in two splits, assigned to the first', 10) in notes_of(listing)


def test_path_of_a_split_may_be_the_folder_itself(tmp_path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'data.yaml', 'train: .\nval: ./\nnames: [bar, square]\n')
    listing = read(tmp_path)
    assert (sizes_of(listing), listing.held_out) == ([9, 1, 0], True)
    assert ('images listed in two splits, assigned to the first', 10) in notes_of(listing)
    assert not any('do not exist' in what for what, _ in notes_of(listing))


def write_two_folders(folder: Path, path: object) -> None:
    """Scenes in folders whose names are not those of splits, and settings with their path."""
    labelimg_yolo(folder)
    (folder / 'images/b').mkdir()
    for name in ('1.png', '2.png', '3.png'):
        (folder / 'images' / name).rename(folder / 'images/b' / name)
    sources = 'train: images\nval: images/b\ntest: list.txt\n'
    write(folder, 'settings/data.yaml', f'path: {path}\n{sources}names: [bar, square]\n')


def test_path_of_a_data_set_may_lead_up(tmp_path):
    write_two_folders(tmp_path, '..')
    write(tmp_path, 'list.txt', 'images/4.png\n')
    listing = read(tmp_path)
    assert (sizes_of(listing), listing.held_out) == ([6, 3, 1], False)
    assert ('files left out, .txt', 1) in notes_of(listing)  # classes.txt, not the list


def test_paths_of_a_copy_do_not_lead_to_the_original(tmp_path):
    copy, original = tmp_path / 'copy', tmp_path / 'original'
    write_two_folders(copy, original)
    write(original, 'list.txt', 'images/4.png\n')
    (original / 'images/b').mkdir(parents=True)
    listing = read(copy)
    assert (sizes_of(listing), listing.held_out) == ([7, 3, 0], False)
    assert ('paths in data.yaml that lead out of the folder', 1) in notes_of(listing)


def test_lists_give_the_splits(tmp_path):
    """As darknet and CVAT write them, without a YAML file."""
    cvat_yolo(tmp_path)
    lines = (tmp_path / 'train.txt').read_text().splitlines()
    write(tmp_path, 'train.txt', '\n'.join(lines[:7]))
    write(tmp_path, 'valid.txt', '\n'.join(lines[7:]))
    listing = read(tmp_path)
    assert (sizes_of(listing), listing.held_out) == ([7, 3, 0], False)
    assert notes_of(listing) == [('files left out, .data', 1)]


@pytest.mark.parametrize('names', ['data.yaml', 'classes.txt'])
def test_lists_give_the_splits_if_settings_do_not(tmp_path, names):
    labelimg_yolo(tmp_path)
    text = 'names: [bar, square]\n' if names == 'data.yaml' else 'bar\nsquare\n'
    write(tmp_path, names, text)
    write(tmp_path, 'test_list.txt', 'images/1.jpg\nimages/2.jpg\n')
    assert sizes_of(read(tmp_path)) == [7, 1, 2]


def test_paths_of_another_machine_are_matched_and_missing_ones_reported(tmp_path):
    labelimg_yolo(tmp_path)
    settings = (
        'train: /home/me/ds/images\nval: D:\\ds\\list.txt\ntest: ../none\nnames: [bar, square]'
    )
    write(tmp_path, 'data.yaml', settings)
    write(tmp_path, 'list.txt', '/home/me/ds/images/1.jpg\n/home/me/ds/images/x.jpg\n')
    listing = read(tmp_path)
    assert (sizes_of(listing), listing.held_out) == ([9, 1, 0], False)
    notes = notes_of(listing)
    assert ('lines of list.txt left out, since their image is missing', 1) in notes
    assert ('paths in data.yaml that do not exist', 1) in notes
    assert ('images listed in two splits, assigned to the last', 1) in notes


@pytest.mark.parametrize('path', ['{a: 1}', '[[a]]'])
def test_split_paths_that_are_not_text_raise(tmp_path, path):
    labelimg_yolo(tmp_path)
    write(tmp_path, 'data.yaml', f'train: {path}\nnames: [bar, square]')
    with rejects('train of .* must be a folder or a list of images'):
        read(tmp_path)
