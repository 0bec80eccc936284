"""Lists of the images of a part beside folders of classes."""

import json
import shutil

import pytest
from image_folders import write_digits
from listings import notes_of
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree

TESTED = ['digit 0/000', 'digit 1/001', 'digit 2/002']


@pytest.mark.parametrize(
    ('name', 'line'),
    [
        ('test.txt', '{}.png'),
        ('test.txt', 'images/{}.png'),
        ('testing_list.txt', '{}.png'),
        ('meta/test.txt', '{}'),  # as Food-101 has it
        ('test_list.lst', '/home/me/data/{}.png 3'),
        ('splits/test.csv', '{}.png,digit 0'),
        ('val.txt', '{}.png\t2'),
        ('testlist01.txt', '{}.png'),
    ],
)
def test_a_list_of_a_part_is_not_trained_on(tmp_path, name, line):
    write_digits(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('\n'.join(line.format(each) for each in TESTED))
    found = read_class_folders(Tree(tmp_path))
    part = found.parts['val' if 'val' in name else 'test']
    assert [found.name_of(photo).removesuffix('.png') for photo in part] == TESTED
    assert not {photo.path for photo in part} & {photo.path for photo in found.train}
    assert not any('files left out' in what for what, _, _ in found.findings.rows())


def test_images_on_no_list_are_left_out_where_one_names_those_to_train_on(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test.txt').write_text('\n'.join(TESTED))
    (tmp_path / 'train.txt').write_text(
        '\n'.join(f'digit {i}/{j:03d}' for i in range(3) for j in range(3))
    )
    found = read_class_folders(Tree(tmp_path))
    assert len(found.train + found.val) == 6
    assert ('images left out, in no folder or list of a part of the data set', 3) in notes_of(found)


def test_flags_of_the_birds(tmp_path):
    """CUB-200-2011."""
    write_digits(tmp_path / 'images')
    names = sorted(path.relative_to(tmp_path / 'images') for path in tmp_path.rglob('*.png'))
    (tmp_path / 'images.txt').write_text(''.join(f'{i} {name}\n' for i, name in enumerate(names)))
    (tmp_path / 'train_test_split.txt').write_text(
        ''.join(f'{i} {int(i % 4 != 3)}\n' for i in range(12))
    )
    found = read_class_folders(Tree(tmp_path))
    assert [photo.path.name for photo in found.parts['test']] == ['003.png'] * 3
    assert len(found.train + found.val) == 9


def test_words_in_texts_are_no_lists(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test_notes.txt').write_text('look at the digit 0 again\n')
    assert len(read_class_folders(Tree(tmp_path)).parts['test']) == 0


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('meta/test.json', {'digit 0': TESTED[:1], 'digit 1': TESTED[1:]}),  # Food-101
        ('splits.json', {f'{one}.png': 'test' for one in TESTED}),
        ('split_zhou.json', dict(train=[], test=[[f'{one}.png', 1, 'digit'] for one in TESTED])),
    ],
)
def test_lists_in_json(tmp_path, name, content):
    write_digits(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps(content))
    found = read_class_folders(Tree(tmp_path))
    tested = [found.name_of(photo).removesuffix('.png') for photo in found.parts['test']]
    assert tested == TESTED


def test_a_table_beside_folders_of_classes_says_the_part(tmp_path):
    """ArtBench's metadata."""
    write_digits(tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob('*.png'))]
    rows = [f'{name},{"test" if i % 4 == 0 else "train"}' for i, name in enumerate(names)]
    (tmp_path / 'metadata.csv').write_text('\n'.join(['name,split', *rows]))
    assert [photo.path.stem for photo in read_class_folders(Tree(tmp_path)).parts['test']] == (
        ['000'] * 3
    )


def test_lines_without_their_image_are_named(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test.txt').write_text('elsewhere/900.jpg\n')
    rows = [row[:2] for row in read_class_folders(Tree(tmp_path)).findings.rows()]
    assert ('lines of test.txt left out, whose image is not there', 1) in rows


def imagenet(folder, line: str):
    """Folders of classes to train on, and images in none of them to validate."""
    write_digits(folder / 'train')
    (folder / 'val').mkdir()
    lines = []
    for i in range(3):
        (folder / f'train/digit {i}/003.png').rename(folder / f'val/image {i}.png')
        lines.append(line.format(i=i, wnid=f'digit {i}', other=(i + 1) % 3, next=i + 1))
    (folder / 'val.txt').write_text('\n'.join(lines))


@pytest.mark.parametrize(
    ('line', 'beside'),
    [
        ('image {i}.png {i}', ()),
        ('image {i},{i} 1 2 3', ()),
        # the numbers are those of this list, not of the folders in order
        (
            'image {i}.png {other}',
            ('train.txt', *(f'digit {i}/000.png {(i + 1) % 3}' for i in range(3))),
        ),
        ('image {i}.png {other}', ('wnids.txt', 'digit 2', 'digit 0', 'digit 1')),
    ],
)
def test_flat_images_to_validate_have_the_labels_of_a_list(tmp_path, line, beside):
    imagenet(tmp_path, line)
    if beside:
        (tmp_path / beside[0]).write_text('\n'.join(beside[1:]))
    found = read_class_folders(Tree(tmp_path))
    assert not found.held_out
    assert {photo.path.stem[-1]: photo.labels[0][-1] for photo in found.val} == {
        '0': '0', '1': '1', '2': '2'
    }  # fmt: skip


def test_labels_of_a_list_that_count_from_1_are_an_error(tmp_path):
    imagenet(tmp_path, 'image {i}.png {next}')
    with rejects("has .*'1' of .*; .* or count them from 0"):
        read_class_folders(Tree(tmp_path))


@pytest.mark.parametrize(('shown', 'fits'), [((1, 2, 10), True), ((0, 1, 2), False)])
def test_numbers_are_names_where_folders_have_numbers(tmp_path, shown, fits):
    imagenet(tmp_path, '')
    for i, name in enumerate((1, 2, 10)):
        (tmp_path / f'train/digit {i}').rename(tmp_path / f'train/{name}')
    lines = [f'image {i}.png {number}' for i, number in enumerate(shown)]
    (tmp_path / 'val.txt').write_text('\n'.join(lines))
    if not fits:
        with rejects('write the names of the folders'):
            read_class_folders(Tree(tmp_path))
        return
    found = read_class_folders(Tree(tmp_path))
    assert {photo.path.stem[-1]: photo.labels[0] for photo in found.val} == {
        '0': '1', '1': '2', '2': '10'
    }  # fmt: skip


@pytest.mark.parametrize('header', ['width,label,path', 'path,width,label', 'number,camera,path'])
def test_a_table_of_flat_images_says_their_class_in_its_column(tmp_path, header):
    """GTSRB's tables begin with the width, and another column than the labels' is no label."""
    write_digits(tmp_path / 'train')
    (tmp_path / 'test').mkdir()
    for i in range(3):
        shutil.copy(tmp_path / f'train/digit {i}/000.png', tmp_path / f'test/{i}.png')
    for part, names in (
        ('train', [f'train/digit {i}/{j:03d}.png' for i in range(3) for j in range(4)]),
        ('test', [f'test/{i}.png' for i in range(3)]),
    ):
        rows = [dict(path=name, width=8, number=1, camera=2) for name in names]
        for i, row in enumerate(rows):
            row['label'] = i * 3 // len(rows)
        lines = [','.join(str(row[key]) for key in header.split(',')) for row in rows]
        (tmp_path / f'{part}.csv').write_text('\n'.join([header, *lines]))
    tested = read_class_folders(Tree(tmp_path)).parts['test']
    wanted = [(f'{i}.png', f'digit {i}') for i in range(3)] if 'label' in header else []
    assert [(photo.path.name, *photo.labels) for photo in tested] == wanted
