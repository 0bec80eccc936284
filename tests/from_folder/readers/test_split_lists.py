"""Lists of the images of a part beside folders of classes."""

import pytest
from image_folders import write_digits

from vit_plugin.from_folder.readers.class_folders import read_class_folders
from vit_plugin.from_folder.readers.image_tree import Tree

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
    assert ('images left out, in no folder or list of a part of the data set', 3) in [
        row[:2] for row in found.findings.rows()
    ]


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
