"""Folders of patients or videos, with the classes of their images in a table next to them."""

import json
import shutil
from collections.abc import Sequence

import pytest
from listings import notes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree

PATIENTS = [f'p{i:02}' for i in range(6)]
ANIMALS = ['cat', 'dog', 'fox', 'owl', 'ant', 'bee']


def write_folders(folder, names: Sequence[str] = PATIENTS) -> list[str]:
    """Write three images into each of these folders, and return their paths."""
    paths = [f'{name}/{i}{j}.png' for i, name in enumerate(names) for j in range(3)]
    for i, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(folder / path)
    return paths


def write_table(folder, header: str, rows) -> None:
    (folder / 'meta.csv').write_text('\n'.join([header, *rows]))


def class_of(path: str) -> str:
    """The class of an image of :data:`PATIENTS`, which alternates from patient to patient."""
    return ('benign', 'malignant')[int(path[1:3]) % 2]


def read(folder):
    return read_class_folders(Tree(folder))


def test_possible_class_columns_next_to_numbered_folders_raise(tmp_path):
    paths = write_folders(tmp_path)
    rows = [f'{path},{class_of(path)},{40 + i}' for i, path in enumerate(paths)]
    write_table(tmp_path, 'file,diagnosis,age', rows)
    with rejects(r"'p00' and 'p01' have numbers for names, and .*meta.csv' may have .* diagnosis;"):
        read(tmp_path)


def test_class_of_several_numbered_folders_raises(tmp_path):
    paths = write_folders(tmp_path)
    rows = [f'{path},{class_of(path)}' for path in paths]
    write_table(tmp_path, 'file,label', rows)
    with rejects(r"meta.csv' has the class 'benign' for .*, which is in the folder 'p00'; if the"):
        read(tmp_path)
    # the remedy in the error
    (tmp_path / 'images').mkdir()
    for folder in tmp_path.glob('p*'):
        folder.rename(tmp_path / 'images' / folder.name)
    assert read(tmp_path).classes == ('benign', 'malignant')


@pytest.mark.parametrize('as_json', [True, False])
def test_rows_may_label_all_images_of_a_folder(tmp_path, as_json):
    write_folders(tmp_path / 'images')
    labels = {patient: class_of(patient) for patient in PATIENTS}
    if as_json:
        (tmp_path / 'labels.json').write_text(json.dumps(labels))
    else:
        write_table(tmp_path, 'patient,label', map(','.join, labels.items()))
    listing = read(tmp_path)
    assert listing.classes == ('benign', 'malignant')
    train, val = (
        {record.path.parent.name for record in part} for part in (listing.train, listing.val)
    )
    assert (len(train), len(val)) == (4, 2)
    assert not train & val


@pytest.mark.parametrize(
    ('header', 'row'),
    [
        ('file,kind', '{path},{group}'),  # not a label column, and the folders have names
        ('file,label', '{path},{group}'),  # a class of several folders
        ('file,label', '{path},{folder}'),
        ('file,label', '{path},{number}'),  # another name for each folder
        ('file,width', '{path},8'),
    ],
)
def test_tables_that_agree_with_the_folders_are_left_out(tmp_path, header, row):
    rows = []
    for path in write_folders(tmp_path, ANIMALS):
        folder = path.partition('/')[0]
        group = 'insect' if folder in ('ant', 'bee') else 'animal'
        number = ANIMALS.index(folder) + 5
        rows.append(row.format(path=path, folder=folder, group=group, number=number))
    write_table(tmp_path, header, rows)
    listing = read(tmp_path)
    assert listing.classes == tuple(sorted(ANIMALS))
    agree = 'tables left out, since they agree with the folders of classes, maybe renamed'
    assert notes_of(listing) == [(agree if 'label' in header else 'files left out, .csv', 1)]


@pytest.mark.parametrize('title', ['ClassId', 'shown'])
def test_table_with_the_numbers_of_the_folders_agrees(tmp_path, title):
    """GTSRB."""
    paths = write_folders(tmp_path, [f'{i:05}' for i in range(6)])
    write_table(tmp_path, f'width,{title},file', [f'8,{int(path[:5])},{path}' for path in paths])
    assert len(read(tmp_path).classes) == 6


def test_table_with_names_for_the_folders_agrees(tmp_path):
    write_folders(tmp_path, [f'n{i:04}' for i in range(6)])
    write_table(tmp_path, 'id,name', [f'n{i:04},kind {i}' for i in range(6)])
    assert len(read(tmp_path).classes) == 6


@pytest.mark.parametrize(
    ('header', 'are_words'), [('', True), ('file,kind', True), ('file,age', False)]
)
def test_words_in_the_only_column_are_classes_whatever_its_title(tmp_path, header, are_words):
    paths = write_folders(tmp_path, ['alpha', 'beta', 'gamma', 'delta', 'eta', 'theta'])
    values = ('cat', 'dog') if are_words else ('40', '50')
    rows = [f'{path},{values[i % 2]}' for i, path in enumerate(paths)]
    if not header:
        header, *rows = rows
    write_table(tmp_path, header, rows)
    if are_words:
        with rejects(r"meta.csv' has the class .* which is in the folder 'alpha'"):
            read(tmp_path)
    else:
        assert len(read(tmp_path).classes) == 6


def test_table_that_swaps_the_folders_raises_unless_of_few_images(tmp_path):
    for i in range(10):
        path = tmp_path / ('cat', 'dog')[i % 2] / f'{i}.png'
        path.parent.mkdir(exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(path)
    write_table(tmp_path, 'file,label', [f'{i}.png,{("dog", "cat")[i % 2]}' for i in range(10)])
    with rejects(r"meta.csv' has the class 'dog' for .*cat.*, which is in the folder 'cat'"):
        read(tmp_path)
    write_table(tmp_path, 'file,label', [f'{i}.png,{("dog", "cat")[i % 2]}' for i in range(4)])
    notes = notes_of(read(tmp_path))
    assert any('tables left out, since their classes are not the' in what for what, _ in notes)
    assert not any(what.startswith('files left out') for what, _ in notes)


def test_folder_column_tells_frames_of_the_same_name_apart(tmp_path):
    rows = []
    for video in 'abcd':
        for i in range(3):
            path = tmp_path / f'frames/{video}/{i}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new('RGB', (8, 8), (50 * i, ord(video), 0)).save(path)
            classes = ('run', 'walk') if video in 'ab' else ('walk', 'run')
            rows.append(f'{video},{i}.png,{classes[i % 2]}')
    write_table(tmp_path, 'video,frame,label', rows)
    listing = read(tmp_path)
    assert listing.classes == ('run', 'walk')
    records = listing.train + listing.val
    labels = {f'{record.path.parent.name}/{record.path.stem}': record.labels for record in records}
    assert labels['a/0'] == labels['c/1'] == ('run',)
    train, val = (
        {record.path.parent.name for record in part} for part in (listing.train, listing.val)
    )
    assert not train & val
    what = 'folders that are not classes, since tables have other classes for their images'
    assert (what, 4) in notes_of(listing)
    for video in 'abcd':
        shutil.move(tmp_path / 'frames' / video, tmp_path / video)
    (tmp_path / 'frames').rmdir()
    with rejects(r"meta.csv' has the class '\w*' for .*, which is in the folder '\w'"):
        read(tmp_path)


def test_inaturalist_is_read(tmp_path):
    """Its folders are kingdoms and numbers; the classes are in JSON."""
    paths = [f'train_val2018/{("Aves", "Fungi")[i % 2]}/{i % 4}/{i}.png' for i in range(12)]
    for i, path in enumerate(paths):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(tmp_path / path)
    for split, numbers in (('train', range(8)), ('val', range(8, 12))):
        content = dict(
            images=[dict(id=i, file_name=paths[i], width=8, height=8) for i in numbers],
            annotations=[dict(id=i, image_id=i, category_id=i % 4) for i in numbers],
            categories=[dict(id=k, name=f'species {k}') for k in range(4)],
        )
        (tmp_path / f'{split}2018.json').write_text(json.dumps(content))
    listing = read(tmp_path)
    assert listing.classes == tuple(f'species {k}' for k in range(4))
    assert [len(part) for part in listing.parts.values()] == [8, 4, 0]


def test_table_without_classes_next_to_one_with_classes_is_reported(tmp_path):
    """ISIC 2019's metadata and ground truth."""
    for i in range(12):
        (tmp_path / 'images').mkdir(exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(tmp_path / f'images/{i:03}.png')
    rows = [f'{i:03},{float(i % 2)},{float(1 - i % 2)}' for i in range(12)]
    (tmp_path / 'GroundTruth.csv').write_text('\n'.join(['image,MEL,NV', *rows]))
    for header, row in (('age,sex', '{},male'), ('age', '{}')):
        rows = [f'{i:03},{row.format(40 + i)}' for i in range(12)]
        write_table(tmp_path, f'image,{header}', rows)
        listing = read(tmp_path)
        assert listing.classes == ('MEL', 'NV')
        what = 'tables left out, since they have no class column and another one has'
        assert (what, 1) in notes_of(listing)
        assert not any(words.startswith('files left out') for words, _ in notes_of(listing))
    (tmp_path / 'GroundTruth.csv').unlink()
    with rejects(r"column 'age' of .*meta.csv' has"):
        read(tmp_path)


def test_table_that_contradicts_the_folder_of_one_image_is_reported(tmp_path):
    write_folders(tmp_path, ANIMALS)
    write_table(tmp_path, 'file,label', ['cat/01.png,dog'])
    [(what, count)] = notes_of(read(tmp_path))
    assert what.startswith('tables left out, since their classes are not the folders')
    assert count == 1


@pytest.mark.parametrize(
    ('row', 'count'),
    [
        ('{path},1,2,5,7,{other}', 3),  # boxes of few images
        ('{path},1,2,5,7,{folder}', 18),  # boxes with the folder as the class
        ('{path},1,2,5', 18),
        ('{path},0.1,0.2,0.6,0.1,{other}', 18),  # a box would exceed its image
        ('{path},1,2,50,70,{other}', 18),
    ],
)
def test_folders_stay_classes_next_to_numbers_that_are_not_boxes(tmp_path, row, count):
    paths = write_folders(tmp_path, ANIMALS)
    rows = [
        row.format(path=path, folder=path.partition('/')[0], other='ab'[i % 2])
        for i, path in enumerate(paths[:count])
    ]
    (tmp_path / 'boxes.csv').write_text('\n'.join(rows))
    assert read(tmp_path).classes == tuple(sorted(ANIMALS))


@pytest.mark.parametrize('header', ['', 'file,x1,y1,x2,y2,class\n'])
def test_table_of_boxes_next_to_folders_raises(tmp_path, header):
    paths = write_folders(tmp_path)
    rows = [f'{path},1,2,5,7,{"ab"[i % 2]}' for i, path in enumerate(paths)]
    (tmp_path / 'boxes.csv').write_text(header + '\n'.join(rows))
    with rejects(r"boxes.csv' may have boxes of the images, as in 'p05/52.png, 1, 2, 5, 7, b'"):
        read(tmp_path)
