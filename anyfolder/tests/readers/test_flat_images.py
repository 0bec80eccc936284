"""Validation images in one folder, with their classes in a list, as in ImageNet."""

from pathlib import Path

import pytest
from image_folders import write_digits
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree


@pytest.fixture
def folder(tmp_path) -> Path:
    """Training images in the folders n0, n1 and n2, and one of each as ``val/images/<n>.png``."""
    write_digits(tmp_path / 'train')
    (tmp_path / 'val/images').mkdir(parents=True)
    for label in range(3):
        class_folder = (tmp_path / f'train/digit {label}').rename(tmp_path / f'train/n{label}')
        (class_folder / '000.png').rename(tmp_path / f'val/images/{label}.png')
    return tmp_path


def write_list(folder: Path, labels: list[str]) -> None:
    lines = [f'{i}.png\t{label}\t0\t9\n' for i, label in enumerate(labels)]
    (folder / 'val/val_annotations.txt').write_text(''.join(lines))


def labels_of(folder: Path) -> list[str]:
    """The classes of the validation images, in the order of their numbers."""
    records = sorted(read_class_folders(Tree(folder)).val, key=lambda record: record.path)
    assert [record.path.stem for record in records] == ['0', '1', '2']
    return [record.labels[0] for record in records]


def test_labels_are_names_of_training_folders(folder):
    write_list(folder, ['n0', 'n1', 'n2'])
    assert labels_of(folder) == ['n0', 'n1', 'n2']


def test_numbers_count_the_sorted_folders_from_0(folder):
    write_list(folder, ['1', '0', '2'])
    assert labels_of(folder) == ['n1', 'n0', 'n2']


def test_numbers_follow_a_file_with_the_names_of_the_folders(folder):
    write_list(folder, ['1', '0', '2'])
    (folder / 'classes.txt').write_text('n2\nn1\nn0\n')
    assert labels_of(folder) == ['n1', 'n2', 'n0']


def test_a_label_without_a_training_folder_raises(folder):
    write_list(folder, ['n0', 'n1', 'n9'])
    with rejects(r"no training folder has .*'n9\b.* of .*2\.png in .*val_annotations\.txt"):
        read_class_folders(Tree(folder))
