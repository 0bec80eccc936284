"""Columns of splits and of folds in tables of classes."""

from pathlib import Path

import pytest
from image_folders import write_flat
from listings import notes_of, sizes_of
from rejection import rejects

import anyfolder
from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing


def read(folder: Path) -> Listing:
    return read_class_folders(Tree(folder))


def write_split_column(folder: Path, column: str, first: object, second: object) -> None:
    """Twelve images of two classes, and a column with one value for eight and another for four."""
    write_flat(folder, 12, subfolder='images')
    rows = [f'{i}.jpg,{"ab"[i % 2]},{first if i < 8 else second}' for i in range(12)]
    (folder / 'labels.csv').write_text('\n'.join([f'file,label,{column}', *rows]))


@pytest.mark.parametrize(
    ('column', 'values', 'sizes'),
    [
        ('Usage', ('Training', 'PublicTest'), [6, 2, 4]),  # FER2013
        ('data set', ('train', 'valid'), [8, 4, 0]),
        ('partition', (0, 2), [6, 2, 4]),  # CelebA
        ('fold', (0, 1), [10, 2, 0]),
        ('is_valid', ('no', 'Yes'), [8, 4, 0]),
    ],
)
def test_splits_come_from_the_values_of_a_column(tmp_path, column, values, sizes):
    write_split_column(tmp_path, column, *values)
    assert sizes_of(read(tmp_path)) == sizes


@pytest.mark.parametrize(
    ('column', 'values', 'words'),
    [
        ('split', ('learn', 'check'), "column 'split' of .* such as 'learn', none of which is"),
        ('subset', (0, 2), 'use these, or rename the column'),
        ('is_test', ('n', 'y'), "column 'is_test' of .* such as 'n', none of which is"),
    ],
)
def test_split_columns_with_unknown_values_raise(tmp_path, column, values, words):
    write_split_column(tmp_path, column, *values)
    with rejects(words):
        read(tmp_path)


@pytest.mark.parametrize(
    ('columns', 'sizes'),
    [
        ('is_valid,is_test', [6, 4, 2]),
        ('is_test,is_valid', [6, 2, 4]),
        ('is_train,is_test', [4, 6, 2]),
        ('is_test,is_train', [2, 6, 4]),
    ],
)
def test_each_split_may_have_a_column_of_flags(tmp_path, columns, sizes):
    """Four images are marked in the first column, two in the second, and six in none."""
    write_flat(tmp_path, 12, subfolder='images')
    rows = [f'{i}.jpg,{"ab"[i % 2]},{int(i < 4)},{int(3 < i < 6)}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join([f'file,label,{columns}', *rows]))
    assert sizes_of(read(tmp_path)) == sizes


FOLDS = (
    'columns of folds, the first of which validates and the others are trained on; for another '
    'fold, use columns and splits of a layout'
)


@pytest.mark.parametrize('title', ['fold', 'kfold', 'Fold_ID'])
@pytest.mark.parametrize('cell', ['{}', '{}.0', 'fold{}', 'fold_{}'])
@pytest.mark.parametrize('first', [0, 1])
def test_first_fold_validates(tmp_path, title, cell, first):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{cell.format(first + i // 4)}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join([f'file,label,{title}', *rows]))
    listing = read(tmp_path)
    assert {int(record.path.stem) for record in listing.val} == {0, 1, 2, 3}
    assert sizes_of(listing) == [16, 4, 0]
    assert dict(notes_of(listing))[FOLDS] == 1


def test_another_fold_validates_with_a_layout(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{i // 4}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,fold', *rows]))
    lines = (
        'format: table', "images: 'train/*.jpg'", 'labels: labels.csv',
        'columns: {image: file, class: label, split: fold}',
        "splits: {train: ['0', '1', '2', '3'], val: ['4']}",
    )  # fmt: skip
    (tmp_path / 'anyfolder.yaml').write_text('\n'.join(lines))
    data = anyfolder.read(tmp_path)
    assert {int(image.path.stem) for image in data.splits['val']} == {16, 17, 18, 19}


@pytest.mark.parametrize('values', [('0', '0'), ('a', 'b'), ('-1', '0')])
def test_other_values_in_a_fold_column_are_ignored(tmp_path, values):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i // 2 % 2]},{values[i % 2]}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,fold', *rows]))
    listing = read(tmp_path)
    assert listing.held_out
    assert sizes_of(listing) == [18, 2, 0]


def test_two_folds_are_only_read_with_the_layout_of_the_note(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i // 2 % 2]},{i % 2}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,fold', *rows]))
    [note] = [note for note in anyfolder.read(tmp_path).notes if 'folds' in note.what]
    assert note.what.startswith('columns of two folds, not read')
    [example] = note.examples
    assert example.startswith("columns: {split: fold}, splits: {'train': ['1'], 'val': ['0']} of ")
    assert sizes_of(read(tmp_path)) == [18, 2, 0]
    lines = (
        'format: table', "images: 'train/*.jpg'", 'labels: labels.csv',
        'columns: {image: file, class: label, split: fold}', "splits: {train: ['1'], val: ['0']}",
    )  # fmt: skip
    (tmp_path / 'anyfolder.yaml').write_text('\n'.join(lines))
    data = anyfolder.read(tmp_path)
    assert [len(images) for images in data.splits.values()][:2] == [10, 10]


def test_two_folds_are_not_a_class_next_to_class_columns(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{i % 2},{1 - i % 2},{i // 2 % 2}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,cat,dog,fold', *rows]))
    assert read(tmp_path).classes == ('cat', 'dog')


def test_fold_column_is_not_a_class_column(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{i // 4}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,fold', *rows]))
    with rejects('has one class to train on'):
        read(tmp_path)
