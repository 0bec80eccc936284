"""Folders of any structure are read as their layout file states."""

import json

import numpy as np
import pytest
from image_folders import write_panoptic
from listings import notes_of, sizes_of
from public_scene import Scene
from rejection import rejects

from anyfolder.layouts.find_layout import read_laid_out
from anyfolder.readers.image_tree import Tree


def read(scene, task, **options):
    listing, _ = read_laid_out(Tree(scene.folder), scene.folder, task, **options)
    return listing


def lay_out(scene, *lines):
    scene.text('anyfolder.yaml', *lines)


@pytest.fixture
def scene(tmp_path):
    return Scene(tmp_path)


def boxes_of(listing):
    """Class, left, top, width and height of the training objects, in whole pixels."""
    instances = (instance for record in listing.train for instance in record.instances)
    return {(instance.name, *map(round, instance.box)) for instance in instances}


def write_lines(scene, line, **keys):
    """Six images with the same line in each label file, and a layout with further keys."""
    for i in range(6):
        scene.images(f'pics/{i}.jpg')
        scene.text(f'notes/{i}.lbl', line)
    lay_out(
        scene,
        'format: table',
        'images: pics/{name}.jpg',
        'labels: notes/{name}.lbl',
        *(f'{key}: {value}' for key, value in keys.items()),
    )


@pytest.mark.parametrize(
    ('line', 'columns', 'units'),
    [
        ('cat 5 6 25 16', '[class, left, top, right, bottom]', 'pixels'),
        ('5;6;20;10;cat', '[left, top, width, height, class]', 'pixels'),
        ('cat 15 11 20 10', '[class, x, y, width, height]', 'center'),
        ('cat 0.375 0.36667 0.5 0.33333', '[class, x, y, width, height]', '[relative, center]'),
        ('cat 5 6 25 16', '[class, x, y, width, height]', 'size'),
        ('cat,"[5, 6, 25, 16]"', '[class, box]', 'corners'),
        ('cat 6 7 26 17', '[class, left, top, right, bottom]', 'from 1'),
        ('cat 5 6 25 6 25 16 5 16', '[class, points]', 'pixels'),
        ('cat 5 6 25 6 25 16 5 16', '[class, x1, y1, x2, y2, x3, y3, x4, y4]', 'pixels'),
        ('0.9 cat 5 6 20 10 7 8', '[_, class, left, top, width, height, ...]', 'pixels'),
    ],
)
def test_boxes_in_all_units_are_read(scene, line, columns, units):
    write_lines(scene, line, columns=columns, units=units)
    size = (25, 16) if units == 'size' else (20, 10)  # the same numbers, not read as a corner
    assert boxes_of(read(scene, 'detection')) == {('cat', 5, 6, *size)}


def write_corners(scene, units):
    """COCO with boxes of two corners; read as sizes, all of them would exceed their image."""
    images, objects = [], []
    for i in range(12):
        scene.images(f'pics/{i}.jpg')
        images.append(dict(id=i, file_name=f'{i}.jpg', width=40, height=30))
        for box in ([30, 20, 39, 28], [0, 16, 30, 26]):
            objects.append(dict(id=len(objects), image_id=i, category_id=1, bbox=box))
    categories = [dict(id=1, name='cat')]
    content = dict(images=images, annotations=objects, categories=categories)
    scene.text('boxes.json', json.dumps(content))
    lay_out(
        scene, 'format: coco', 'images: pics/{name}.jpg', 'labels: boxes.json', f'units: {units}'
    )


@pytest.mark.parametrize(
    ('units', 'boxes'),
    [
        ('corners', [(30, 20, 9, 8), (0, 16, 30, 10)]),
        ('[corners, from 1]', [(29, 19, 9, 8), (0, 15, 29, 10)]),
        ('size', [(30, 20, 10, 10), (0, 16, 30, 14)]),
    ],
)
def test_stated_units_are_not_questioned(scene, units, boxes):
    write_corners(scene, units)
    assert boxes_of(read(scene, 'detection')) == {('cat', *box) for box in boxes}


def test_single_class_needs_no_column(scene):
    write_lines(scene, '5 6 25 16', columns='[left, top, right, bottom]', classes='[cat]')
    assert boxes_of(read(scene, 'detection')) == {('cat', 5, 6, 20, 10)}


@pytest.mark.parametrize(
    ('classes', 'names'),
    [
        ('[cat, dog]', {'dog'}),
        ('{1: dog, 3: ~}', {'dog', ''}),
        ('{1-2: dog, "*": ~}', {'dog', ''}),
        ('names.txt', {'dog'}),
        ('{file: names.txt, 0: ~}', {'dog'}),
    ],
)
def test_classes_as_a_list_a_file_or_a_mapping(scene, classes, names):
    for i in range(6):
        scene.images(f'{i}.jpg')
        lines = ['01 5 6 25 16']
        if '3: ~' in classes or '*' in classes:
            lines.append('3 1 1 9 9')  # an ignored object
        scene.text(f'{i}.txt', *lines)
    scene.text('names.txt', 'cat', 'dog')
    lay_out(
        scene,
        'format: table',
        "images: '{name}.jpg'",
        "labels: '{name:\\d+}.txt'",
        'columns: [class, left, top, right, bottom]',
        f'classes: {classes}',
    )
    assert {name for name, *_ in boxes_of(read(scene, 'detection'))} == names


def test_classes_without_a_name_raise(scene):
    write_lines(scene, '7 5 6 25 16', columns='[class, left, top, right, bottom]', classes='[cat]')
    with rejects(r"have a class without a name \(6, the first is '7', line 1 of .*name it in clas"):
        read(scene, 'detection')


def test_lines_of_json_without_an_image_are_noted(scene):
    scene.images(*(f'{i}.jpg' for i in range(6)))
    rows = [f'{{"file": "{i}.jpg", "kind": "{"ab"[i % 2]}"}}' for i in range(6)]
    scene.text('labels.jsonl', *rows, '{"kind": "a"}')
    columns = 'columns: {image: file, class: kind}'
    lay_out(scene, 'format: table', 'labels: labels.jsonl', columns)
    listing = read(scene, 'classification')
    assert ('labels of labels.jsonl left out, since their image is missing', 1) in notes_of(listing)


def test_lines_without_the_stated_columns_raise(scene):
    write_lines(scene, 'cat 5 6 25 16', columns='[class, left, top, right, bottom]')
    scene.text('notes/3.lbl', 'cat 5 6 25 16', 'cat 5 6 25')
    with rejects(r'do not have the columns of the layout \(1, the first is line 2 of .*3.lbl'):
        read(scene, 'detection')


# The line `splits` of a layout by its line `images`. All of them state the same splits.
SPLITS = {
    "images: 'set{split}/*.jpg'": 'splits: {train: [A, B], val: C}',
    "images: 'set{split:A|B|C}/*.jpg'": 'splits: {train: [A, B], val: C}',
    'images: set*/*.jpg': "splits: {train: [lists/a.txt], val: 'lists/b*.txt', test: 'lists/no*'}",
    'images: "*/*.jpg"': "splits: {train: ['setA/**', 'setB/**'], val: 'setC/**'}",
    "images: '*/{name}.jpg'": 'splits: {train: [first], val: [second]}',
}


@pytest.mark.parametrize('images', SPLITS)
def test_splits_by_folders_lists_patterns_and_columns(scene, images):
    names = [f'set{part}/{part}{i}.jpg' for part in 'ABC' for i in range(2)]
    scene.images(*names)
    scene.text('lists/a.txt', *names[:3], 'B1', 'gone.jpg')  # B1 is the fourth name
    scene.text('lists/b1.txt', *(name.removesuffix('.jpg') for name in names[4:]))
    rows = [
        f'{name},{"xy"[i % 2]},{"first" if i < 4 else "second"}' for i, name in enumerate(names)
    ]
    scene.text('labels.csv', 'file,kind,part', *rows)
    columns = '{image: file, class: kind}'
    if 'first' in SPLITS[images]:  # values of a column
        columns = '{image: file, class: kind, split: part}'
    lay_out(
        scene, 'format: table', images, 'labels: labels.csv',
        f'columns: {{labels.csv: {columns}}}', SPLITS[images],
    )  # fmt: skip
    listing = read(scene, 'classification')
    assert (sizes_of(listing), listing.classes) == ([4, 2, 0], ('x', 'y'))
    left_out = ('lines of a.txt left out, since their image is missing', 1)
    assert (left_out in notes_of(listing)) == ('lists' in SPLITS[images])


def test_missing_lists_and_unknown_splits_raise(scene):
    scene.images('a/1.jpg', 'b/2.jpg', 'a/3.jpg', 'b/4.jpg')
    first_lines = 'format: folders', "images: '{class}/*'"
    lay_out(scene, *first_lines, 'splits: {train: train.txt}')
    with rejects("splits: train: 'train.txt' is not an existing list, a pattern of images"):
        read(scene, 'classification')
    lay_out(scene, 'format: folders', "images: '{split}/{class:\\d+}.jpg'")
    with rejects(r"the split 'a' is not train, val or test; add splits"):
        read(scene, 'classification')


def test_groups_stay_in_one_split(scene):
    rows = []
    for i in range(20):
        scene.images(f'{i}.jpg')
        rows.append(f'{i},{"cat" if i // 4 % 2 else "dog"},patient {i // 4}')
    scene.text('labels.csv', 'file,kind,who', *rows)
    first_lines = 'format: table', 'labels: labels.csv'
    lay_out(scene, *first_lines, 'columns: {image: file, class: kind, group: who}')
    listing = read(scene, 'classification')
    train, val = ({record.group for record in part} for part in (listing.train, listing.val))
    assert len(val) == 2
    assert not train & val
    scene.text('val.txt', '0')
    columns = 'columns: {labels.csv: {image: file, class: kind, group: who}}'
    lay_out(scene, *first_lines, columns, 'splits: {val: val.txt}')
    with rejects(r"images of one group are in several splits \(3, the first is 'patient 0'"):
        read(scene, 'classification')


def test_groups_of_several_fields_stay_in_one_split(scene):
    scene.images(
        *(f'{name}/{name}{track}_{i}.jpg' for name in 'ab' for track in 'xyz' for i in '12')
    )
    lay_out(scene, 'format: folders', "images: '{class}/{group_kind:[ab]}{group_track}_{_}.jpg'")
    listing = read(scene, 'classification')
    train, val = (sorted(record.group for record in part) for part in (listing.train, listing.val))
    assert len(val) == 4
    assert {group[0] for group in val} == {'a', 'b'}
    assert {group[1:] for group in val} <= {'/x', '/y', '/z'}
    assert not {*train} & {*val}


def test_images_may_have_several_classes(scene):
    rows = ['a b', 'b', '', 'a', 'b a', 'a']
    scene.images(*(f'{i}.jpg' for i in range(6)))
    scene.text('labels.csv', 'file,tags', *(f'{i}.jpg,{tags}' for i, tags in enumerate(rows)))
    lay_out(scene, 'format: table', 'labels: labels.csv', 'columns: {image: file, classes: tags}')
    listing = read(scene, 'classification')
    assert listing.multi_label
    labels = {
        record.path.stem: set(record.labels) for part in listing.parts.values() for record in part
    }
    assert labels == {str(i): set(tags.split()) for i, tags in enumerate(rows)}


def test_classes_of_masks_may_be_values_and_colors(scene):
    colors = np.zeros((30, 40, 3), np.uint8)
    colors[:9], colors[9:20] = (255, 0, 0), (7, 7, 7)
    for i in range(4):
        scene.images(f'x/{i}.jpg')
        scene.array(f'y/{i}-z.png', colors)
    first_lines = 'format: masks', "images: 'x/{name}.jpg'", "labels: 'y/{name}-z.png'"
    lay_out(scene, *first_lines, "classes: {'#ff0000': red, 7 7 7: gray, 0: ~}")
    listing = read(scene, 'segmentation')
    assert listing.classes == ('red', 'gray')
    assert listing.masks.by_color
    assert listing.masks.numbers[0] == 255  # ignored
    lay_out(scene, *first_lines, "classes: {'#ff0000': red, 0: ~}")
    with rejects(r"names no class for the mask value 7; name it in classes, or all others by '\*'"):
        read(scene, 'segmentation')


def write_object_masks(scene, mask_name='{}', **keys):
    """Four images with a mask of the values 0, 1 and 7 each, and a layout with further keys."""
    values = np.zeros((30, 40), np.uint8)
    values[5:9, 10:20], values[15:20, 4:10] = 1, 7
    for i in range(4):
        scene.images(f'x/{i}.jpg')
        scene.array(f'y/{mask_name.format(i)}.png', values)
    lay_out(
        scene,
        'format: objects',
        "images: 'x/{name}.jpg'",
        "labels: 'y/{name}.png'",
        *(f'{key}: {value}' for key, value in keys.items()),
    )


def test_masks_that_number_objects_are_read(scene):
    write_object_masks(scene, classes='{0: ~, 1: cat, 7: dog}')
    assert boxes_of(read(scene, 'detection')) == {('cat', 10, 5, 10, 4), ('dog', 4, 15, 6, 5)}


def test_values_of_object_masks_without_a_name_raise(scene):
    write_object_masks(scene, classes='{0: ~, 1: cat}')
    words = (
        r'masks have values without a class \(4, the first is .*0\.png \(.*names no class for the '
        r'mask value 7; .*name them in classes, or leave'
    )
    with rejects(words):
        read(scene, 'detection')


def test_object_masks_without_an_image_raise(scene):
    write_object_masks(scene, 'other {}', classes='{0: ~, 1: cat, 7: dog}')
    with rejects('none to train on'):
        read(scene, 'detection')


def test_tables_may_name_depth_maps(scene):
    rows = []
    for i in range(4):
        scene.images(f'frames/{i}.jpg')
        scene.array(f'maps/m{i}.png', np.full((30, 40), 2000 + i, np.uint16))
        rows.append(f'data/frames/{i}.jpg,data/maps/m{i}.png')
    scene.text('pairs.csv', *rows)
    lay_out(
        scene, 'task: depth', 'format: table', "images: '**/*.jpg'", 'labels: pairs.csv',
        'columns: [image, mask]', 'units: millimeters',
    )  # fmt: skip
    listing, depths = read_laid_out(Tree(scene.folder), scene.folder, 'depth')
    assert (sizes_of(listing), round(depths.farthest, 3)) == ([3, 1, 0], 2.003)


def test_layout_may_be_in_another_folder(scene, tmp_path_factory):
    scene.images('a/1.jpg', 'b/2.jpg', 'a/3.jpg', 'b/4.jpg')
    file = tmp_path_factory.mktemp('elsewhere') / 'mine.yaml'
    file.write_text("format: folders\nimages: '{class}/*'\n")
    assert read(scene, 'classification', layout=file).form == 'mine'
    with rejects('there is no file'):
        read(scene, 'classification', layout='nowhere.yaml')
    with rejects("there is no file ''"):  # such as that of a variable that is not set
        read(scene, 'classification', layout='')


def test_missing_label_file_raises(scene):
    scene.images('a/1.jpg')
    lay_out(scene, 'format: coco', 'images: a/*', 'labels: instances.json')
    with rejects(r"has no file 'instances.json'. Correct labels in .*anyfolder.yaml"):
        read(scene, 'detection')


def test_error_for_another_task_names_the_one_that_fits(scene):
    scene.images('a/1.jpg')
    lay_out(scene, 'format: folders', "images: '{class}/*'")
    words = (
        "whose labels are classes of images, not for task='detection'; give task='classification'"
    )
    with rejects(words):
        read(scene, 'detection')


def test_without_a_layout_nothing_is_read(scene):
    scene.images('a/1.jpg')
    assert read_laid_out(Tree(scene.folder), scene.folder, 'classification') is None


def test_layout_of_the_working_folder_is_read(scene, monkeypatch):
    """Paths below ``.`` begin without it."""
    scene.images('a/1.jpg', 'b/2.jpg', 'a/3.jpg', 'b/4.jpg')
    lay_out(scene, 'format: folders', "images: '{class}/*.jpg'")
    monkeypatch.chdir(scene.folder)
    listing, _ = read_laid_out(Tree('.'), '.', 'classification')
    assert (sizes_of(listing), listing.classes) == ([2, 2, 0], ('a', 'b'))


def test_images_with_an_empty_class_are_left_out(scene):
    """Only the column ``classes`` can state that an image has none."""
    scene.images(*(f'{i}.jpg' for i in range(6)))
    rows = [f'{i}.jpg,{kind}' for i, kind in enumerate(('x', 'y', 'x', 'y', 'x', ''))]
    scene.text('labels.csv', 'file,kind', *rows)
    lay_out(scene, 'format: table', 'labels: labels.csv', 'columns: {image: file, class: kind}')
    listing = read(scene, 'classification')
    assert (sum(sizes_of(listing)), listing.classes) == (5, ('x', 'y'))
    assert ('images left out, since they have no label by the layout', 1) in notes_of(listing)


BOX_TITLES = 'left: a, top: b, right: c, bottom: d'


def test_objects_with_an_empty_class_raise(scene):
    scene.images(*(f'{i}.jpg' for i in range(4)))
    rows = [f'{i}.jpg,{"cat" if i else ""},5,6,25,16' for i in range(4)]
    scene.text('boxes.csv', 'file,kind,a,b,c,d', *rows)
    columns = f'columns: {{image: file, class: kind, {BOX_TITLES}}}'
    lay_out(scene, 'format: table', 'labels: boxes.csv', columns)
    with rejects(r'objects have no class \(1, the first is line 2 of .*boxes.csv\); name it'):
        read(scene, 'detection')
    lay_out(scene, 'format: table', 'labels: boxes.csv', columns, "classes: {'*': thing}")
    assert boxes_of(read(scene, 'detection')) == {('thing', 5, 6, 20, 10)}


def test_rows_may_have_a_polygon_or_only_a_box(scene):
    scene.images(*(f'{i}.jpg' for i in range(4)))
    rows = [f'{i}.jpg,cat,5,6,25,16,' for i in range(3)]
    rows.append('3.jpg,cat,0,0,9,9,5 6 25 6 25 16 5 16')
    scene.text('boxes.csv', 'file,kind,a,b,c,d,outline', *rows)
    columns = f'columns: {{image: file, class: kind, {BOX_TITLES}, points: outline}}'
    lay_out(scene, 'format: table', 'labels: boxes.csv', columns)
    assert boxes_of(read(scene, 'detection')) == {('cat', 5, 6, 20, 10)}


def test_single_corner_next_to_a_box_is_not_needed(scene):
    write_lines(scene, 'cat 5 6 25 16 7', columns='[class, left, top, right, bottom, x1]')
    assert boxes_of(read(scene, 'detection')) == {('cat', 5, 6, 20, 10)}


def test_joined_rows_count_once_for_an_image_of_several_rows(scene):
    scene.images(*(f'{i}.jpg' for i in range(4)))
    scene.text('names.csv', *(f'n{i // 2},{i // 2}.jpg,cat' for i in range(8)))
    scene.text('boxes.csv', *(f'n{i},5,6,20,10' for i in range(4)))
    lay_out(
        scene, 'format: table', 'labels: [names.csv, boxes.csv]',
        'columns: {names.csv: [id, image, class], boxes.csv: [id, left, top, width, height]}',
    )  # fmt: skip
    listing = read(scene, 'detection')
    assert boxes_of(listing) == {('cat', 5, 6, 20, 10)}
    assert not any('same box twice' in what for what, _ in notes_of(listing))


def test_masks_of_more_than_255_classes_raise(scene):
    """Class 255 would be pixels without a class, and 256 does not fit into 8 bits."""
    for i in range(4):
        scene.images(f'x/{i}.jpg')
        scene.array(f'y/{i}.png', np.arange(1200, dtype=np.uint16).reshape(30, 40))
    lay_out(
        scene, 'format: masks', "images: 'x/{name}.jpg'", "labels: 'y/{name}.png'",
        "classes: {'*': '*'}",
    )  # fmt: skip
    with rejects(r".png' has a pixel of '\d+', after 255 other classes, .*; name fewer in clas"):
        read(scene, 'segmentation')


def test_note_of_panoptic_data_is_reported(tmp_path):
    write_panoptic(tmp_path)
    (tmp_path / 'anyfolder.yaml').write_text(
        "format: panoptic\nimages: '*/*.jpg'\nlabels: annotations/*.json\nnote: Mine.\n"
    )
    listing, _ = read_laid_out(Tree(tmp_path), tmp_path, 'panoptic')
    assert ('read as anyfolder.yaml unpacks', 1, ['Mine.']) in listing.findings.rows()


def test_value_of_a_split_that_is_not_there_is_noted(scene):
    """Some downloads of a data set may be missing, unless other images lack a split."""
    scene.images(*(f'set{part}/{kind}{i}.jpg' for part in 'AB' for kind in 'xy' for i in range(2)))
    first_lines = 'format: folders', "images: 'set{split}/{class:[xy]}*.jpg'"
    lay_out(scene, *first_lines, 'splits: {train: A, val: B, test: C-dev}')
    listing = read(scene, 'classification')
    assert sizes_of(listing) == [4, 4, 0]
    assert ('values of splits that no labeled image has', 1) in notes_of(listing)
    lay_out(scene, *first_lines, 'splits: {train: A, val: C-dev}')
    with rejects("splits: val: 'C-dev' is not an existing list"):
        read(scene, 'classification')


def write_via_table(scene, attributes):
    """VIA's table of four images with a rectangle each."""
    scene.images(*(f'{i}.jpg' for i in range(4)))
    shape = '{""name"":""rect"",""x"":5,""y"":6,""width"":20,""height"":10}'
    cells = ['{}', *[attributes] * 3]
    rows = [f'{i}.jpg,"{shape}","{cell}"' for i, cell in enumerate(cells)]
    scene.text('via.csv', 'filename,region_shape_attributes,region_attributes', *rows)
    lay_out(scene, 'format: via', 'labels: via.csv')


def test_tables_of_via_are_read(scene):
    write_via_table(scene, '{}')
    assert boxes_of(read(scene, 'detection')) == {('object', 5, 6, 20, 10)}


def test_annotated_objects_without_a_class_raise(scene):
    write_via_table(scene, '{""fruit"":""apple""}')
    with rejects(r'objects have no class \(1, the first is .*via.csv\); name it'):
        read(scene, 'detection')


def test_image_in_two_label_files_has_the_split_furthest_from_training(scene):
    scene.images(*(f'pics/{i}.jpg' for i in range(6)))
    for split, numbers in (('test', range(2)), ('train', range(6))):
        images = [dict(id=i, file_name=f'{i}.jpg', width=40, height=30) for i in numbers]
        objects = [dict(id=i, image_id=i, category_id=1, bbox=[5, 6, 20, 10]) for i in numbers]
        content = dict(images=images, annotations=objects, categories=[dict(id=1, name='cat')])
        scene.text(f'{split}.json', json.dumps(content))
    lay_out(scene, 'format: coco', 'images: pics/*', "labels: '{split}.json'")
    listing = read(scene, 'detection')
    assert sizes_of(listing) == [3, 1, 2]
    assert {record.path.stem for record in listing.parts['test']} == {'0', '1'}


@pytest.mark.parametrize('splits', ['test train', 'train test'])
def test_image_in_two_rows_has_the_split_furthest_from_training(scene, splits):
    scene.images(*(f'{i}.jpg' for i in range(6)))
    rows = [f'{i}.jpg,{"xy"[i % 2]},train' for i in range(1, 6)]
    rows += [f'0.jpg,x,{split}' for split in splits.split()]
    scene.text('labels.csv', 'file,kind,part', *rows)
    columns = 'columns: {image: file, class: kind, split: part}'
    lay_out(scene, 'format: table', 'labels: labels.csv', columns)
    assert [record.path.stem for record in read(scene, 'classification').parts['test']] == ['0']


def test_image_with_two_maps_in_a_table_raises(scene):
    for i in range(3):
        scene.images(f'frames/{i}.jpg')
        scene.array(f'maps/m{i}.png', np.full((30, 40), i, np.uint8))
    rows = [f'{i}.jpg,m{i}.png' for i in range(3)]
    scene.text('pairs.csv', *rows, '0.jpg,m1.png')
    lay_out(
        scene, 'format: table', "images: '**/*.jpg'", 'labels: pairs.csv',
        'columns: [image, mask]', "classes: {'*': '*'}",
    )  # fmt: skip
    with rejects(
        r'images have two maps by the layout \(1, the first is .*0.jpg: .*m0.png and .*m1'
    ):
        read(scene, 'segmentation')


def test_ignored_objects_may_be_marked_by_words(scene):
    columns = '[class, left, top, right, bottom, ignored]'
    write_lines(scene, 'cat 5 6 25 16 False', columns=columns)
    for i in range(6):
        scene.text(f'notes/{i}.lbl', 'cat 5 6 25 16 False', 'cat 0 0 9 9 True')
    objects = [found for record in read(scene, 'detection').train for found in record.instances]
    assert {(round(found.box[0]), found.crowd) for found in objects} == {(5, False), (0, True)}


def test_names_in_a_list_that_are_numbers_count_from_0(scene):
    for i in range(6):
        scene.images(f'pics/{i}.jpg')
        scene.text(f'notes/{i}.txt', '0 0.375 0.36667 0.5 0.33333')
    lay_out(
        scene, 'format: yolo', "images: 'pics/{name}.jpg'", "labels: 'notes/{name}.txt'",
        "classes: ['1', '0']",
    )  # fmt: skip
    assert boxes_of(read(scene, 'detection')) == {('1', 5, 6, 20, 10)}


def test_several_files_of_classes_must_agree(scene):
    columns = '[class, left, top, right, bottom]'
    write_lines(scene, '0 5 6 25 16', columns=columns, classes="'*.names'")
    scene.text('a.names', 'cat', 'dog')
    scene.text('b.names', 'cat', 'dog', 'cow')
    assert boxes_of(read(scene, 'detection')) == {('cat', 5, 6, 20, 10)}
    scene.text('b.names', 'dog')
    with rejects("a.names' and .*b.names' name the class '0' differently, 'cat' and 'dog'; keep"):
        read(scene, 'detection')


def test_code_of_a_class_with_two_names_raises(scene):
    columns = '{notes/*: [class, left, top, right, bottom], names.csv: {code: n, name: word}}'
    write_lines(scene, '0 5 6 25 16', columns=columns, classes='names.csv')
    scene.text('names.csv', 'n,word', '0,cat', '0,dog')
    with rejects(r"have two names \(1, the first is '0': 'cat' and 'dog', line 3 of .*names.csv"):
        read(scene, 'detection')


def test_image_of_two_groups_raises(scene):
    scene.images(*(f'{i}.jpg' for i in range(6)))
    rows = [f'{i}.jpg,{"xy"[i % 2]},p{i}' for i in range(6)]
    scene.text('labels.csv', 'file,kind,who', *rows, '0.jpg,x,p9')
    columns = 'columns: {image: file, class: kind, group: who}'
    lay_out(scene, 'format: table', 'labels: labels.csv', columns)
    words = r"rows give an image two groups \(1, the first is 'p0' and 'p9', line 8 of .*labels.csv"
    with rejects(words):
        read(scene, 'classification')


def test_groups_in_the_names_of_tables_are_kept(scene):
    for who in range(10):
        names = [f'{who}_{i}.jpg' for i in range(2)]
        scene.images(*(f'pics/{name}' for name in names))
        scene.text(f'w{who}.csv', 'file,kind', *(f'{name},{"xy"[who % 2]}' for name in names))
    lay_out(
        scene, 'format: table', 'images: pics/*', "labels: 'w{group_who}.csv'",
        'columns: {image: file, class: kind}',
    )  # fmt: skip
    listing = read(scene, 'classification')
    train, val = ({record.group for record in part} for part in (listing.train, listing.val))
    assert train | val == {*'0123456789'}
    assert not train & val


def test_pattern_of_a_split_without_images_is_noted(scene):
    scene.images(*(f'a/{kind}{i}.jpg' for kind in 'xy' for i in range(4)))
    splits = "splits: {train: 'a/*', val: 'b/*'}"
    lay_out(scene, 'format: folders', "images: '*/{class:[xy]}*.jpg'", splits)
    found = notes_of(read(scene, 'classification'))
    assert ('patterns of splits that match no image and no list', 1) in found


def test_suffix_and_folder_tell_decomposed_names_apart(scene):
    names = 'e\u0301.jpg', 'e\u0301.png', 'u\u0308/1.jpg', 'v/1.jpg'
    scene.images(*names)
    scene.text(
        'labels.csv', 'file,kind', *(f'{name},{"xy"[i % 2]}' for i, name in enumerate(names))
    )
    lay_out(scene, 'format: table', 'labels: labels.csv', 'columns: {image: file, class: kind}')
    assert sum(sizes_of(read(scene, 'classification'))) == 4


def test_image_in_no_split_does_not_count_in_its_group(scene):
    """It is left out, since other images are assigned to training."""
    scene.images(*(f'{i}.jpg' for i in range(8)))
    rows = [f'{i}.jpg,{"xy"[i % 2]},patient {i // 2}' for i in range(8)]
    scene.text('labels.csv', 'file,kind,who', *rows)
    scene.text('train.txt', *'0123')
    scene.text('val.txt', *'456')
    columns = 'columns: {labels.csv: {image: file, class: kind, group: who}}'
    splits = 'splits: {train: train.txt, val: val.txt}'
    lay_out(scene, 'format: table', 'labels: labels.csv', columns, splits)
    assert sizes_of(read(scene, 'classification')) == [4, 3, 0]
