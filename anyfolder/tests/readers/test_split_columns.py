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


@pytest.mark.parametrize(
    ('column', 'words', 'counts'),
    [
        ('Usage', ('Training', 'PublicTest'), [6, 2, 4]),  # FER2013
        ('data set', ('train', 'valid'), [8, 4, 0]),
        ('split', ('learn', 'check'), "column 'split' of .* such as 'learn', none of which is"),
        ('subset', (0, 2), 'use these, or rename the column'),
        ('partition', (0, 2), [6, 2, 4]),  # CelebA
        ('fold', (0, 1), [10, 2, 0]),
    ],
)
def test_parts_are_known_by_the_values_of_a_column(tmp_path, column, words, counts):
    write_flat(tmp_path, 12, place='images')
    rows = [f'{i}.jpg,{"ab"[i % 2]},{words[i > 7]}' for i in range(12)]
    (tmp_path / 'labels.csv').write_text('\n'.join([f'file,label,{column}', *rows]))
    if isinstance(counts, str):
        with rejects(counts):
            read(tmp_path)
        return
    assert [len(part) for part in read(tmp_path).parts.values()] == counts


FOLDS = (
    'columns of folds, the first of which validates and the others are trained on; for another '
    'fold, use columns and splits of a layout'
)


@pytest.mark.parametrize('title', ['fold', 'kfold', 'Fold_ID'])
@pytest.mark.parametrize('cell', ['{}', '{}.0', 'fold{}', 'fold_{}'])
@pytest.mark.parametrize('first', [0, 1])
def test_the_first_fold_validates(tmp_path, title, cell, first):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{cell.format(first + i // 4)}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join([f'file,label,{title}', *rows]))
    found = read(tmp_path)
    assert {int(one.path.stem) for one in found.val} == {0, 1, 2, 3}
    assert sizes_of(found) == [16, 4, 0]
    assert dict(notes_of(found))[FOLDS] == 1


def test_another_fold_validates_by_the_lines_of_the_note(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i % 2]},{i // 4}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,fold', *rows]))
    lines = (
        'format: table', "images: 'train/*.jpg'", 'labels: labels.csv',
        'columns: {image: file, class: label, split: fold}',
        "splits: {train: ['0', '1', '2', '3'], val: ['4']}",
    )  # fmt: skip
    (tmp_path / 'anyfolder.yaml').write_text('\n'.join(lines))
    found = anyfolder.read(tmp_path)
    assert {int(one.path.stem) for one in found.splits['val']} == {16, 17, 18, 19}


@pytest.mark.parametrize('values', [('0', '0'), ('a', 'b'), ('-1', '0')])
def test_what_is_no_fold_says_no_split(tmp_path, values):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i // 2 % 2]},{values[i % 2]}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,fold', *rows]))
    found = read(tmp_path)
    assert found.held_out
    assert sizes_of(found) == [18, 2, 0]


def test_two_folds_are_not_read_but_by_the_lines_of_the_note(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{"ab"[i // 2 % 2]},{i % 2}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,label,fold', *rows]))
    [note] = [note for note in anyfolder.read(tmp_path).notes if 'folds' in note.what]
    assert note.what.startswith('columns of two folds, not read')
    said = "columns: {split: fold}, splits: {'train': ['1'], 'val': ['0']} of "
    assert [example.startswith(said) for example in note.examples] == [True]
    assert sizes_of(read(tmp_path)) == [18, 2, 0]
    lines = (
        'format: table', "images: 'train/*.jpg'", 'labels: labels.csv',
        'columns: {image: file, class: label, split: fold}', "splits: {train: ['1'], val: ['0']}",
    )  # fmt: skip
    (tmp_path / 'anyfolder.yaml').write_text('\n'.join(lines))
    found = anyfolder.read(tmp_path)
    assert [len(images) for images in found.splits.values()][:2] == [10, 10]


def test_two_folds_are_no_class_beside_columns_of_classes(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{i % 2},{1 - i % 2},{i // 2 % 2}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,cat,dog,fold', *rows]))
    assert read(tmp_path).classes == ('cat', 'dog')


def test_a_column_of_folds_is_no_column_of_classes(tmp_path):
    write_flat(tmp_path, 20)
    rows = [f'{i}.jpg,{i // 4}' for i in range(20)]
    (tmp_path / 'labels.csv').write_text('\n'.join(['file,fold', *rows]))
    with rejects('has one class to train on'):
        read(tmp_path)
