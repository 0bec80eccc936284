"""Folders of classes on the disk: lists, held-out images, and what is rejected."""

import shutil
from pathlib import Path

import pytest
from image_folders import write_digits

from vit_plugin.data.folders import read_image_folder
from vit_plugin.errors import ConfigError


def test_a_tenth_of_each_class_is_held_out(tmp_path):
    write_digits(tmp_path, per_class=30)
    (tmp_path / 'digit 1/more').mkdir()
    (tmp_path / 'digit 1/000.png').rename(tmp_path / 'digit 1/more/deeper.PNG')
    for name in ('digit 0/._000.png', 'digit 0/notes.txt', '.hidden/x.png', 'cover.jpg'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = read_image_folder(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert (found.held_out, found.unseen, found.outside) == (True, (), 1)
    for label in range(3):
        assert [sum(at == label for _, at in part) for part in (found.train, found.val)] == [27, 3]
    paths = [path for path, _ in found.train + found.val]
    assert len({*paths}) == 90
    assert 'digit 1/more/deeper.PNG' in paths
    assert all((tmp_path / path).is_file() for path in paths)
    assert found == read_image_folder(str(tmp_path))
    again = write_digits(tmp_path / 'more', per_class=30, classes=2)
    assert read_image_folder(again).val != found.val


def test_another_class_leaves_the_images_that_are_held_out(tmp_path):
    write_digits(tmp_path, per_class=20)
    held = {path for path, _ in read_image_folder(tmp_path).val}
    (tmp_path / 'a new class').mkdir()
    (tmp_path / 'a new class/0.png').touch()
    assert {path for path, _ in read_image_folder(tmp_path).val} == held


def test_links_lead_to_no_image_twice(tmp_path):
    write_digits(tmp_path / 'data', per_class=3)
    write_digits(tmp_path / 'more', per_class=2, classes=1)
    for name, goal in (('loop', '.'), ('up', '..'), ('other', tmp_path / 'more'), ('other again', tmp_path / 'more')):
        (tmp_path / 'data/digit 1' / name).symlink_to(goal, target_is_directory=True)
    found = read_image_folder(tmp_path / 'data')
    assert len(found.train + found.val) == 9 + 2


def test_small_classes_keep_an_image_to_train_on(tmp_path):
    write_digits(tmp_path, per_class=2)
    (tmp_path / 'digit 2/001.png').unlink()
    found = read_image_folder(tmp_path)
    assert [label for _, label in found.train] == [0, 1, 2]
    assert [label for _, label in found.val] == [0, 1]
    assert found.unseen == ('digit 2', )


@pytest.mark.parametrize('name', ['val', 'valid', 'test'])
def test_train_and_val_are_taken_as_they_are(tmp_path, name):
    write_digits(tmp_path / 'train', per_class=3)
    write_digits(tmp_path / name, per_class=1, classes=2)
    found = read_image_folder(tmp_path)
    assert not found.held_out
    assert len(found.train) == 9
    assert found.val == [(f'{name}/digit 0/000.png', 0), (f'{name}/digit 1/000.png', 1)]
    assert found.unseen == ('digit 2', )


@pytest.mark.parametrize('run', ['.', 'mine', 'digit 1/run'])
@pytest.mark.parametrize('part', ['', 'train', 'val'])
def test_no_run_lies_among_the_classes(tmp_path, part, run):
    for name in {part, 'train' if part else ''}:
        write_digits(tmp_path / name)
    with pytest.raises(ConfigError, match='^--work-dir: .* lies in .*, where each folder is a class; give another'):
        read_image_folder(tmp_path, tmp_path / part / run)


def test_earlier_runs_are_no_class(tmp_path):
    write_digits(tmp_path)
    before = read_image_folder(tmp_path)
    write_digits(tmp_path / 'work_dirs/old')
    assert read_image_folder(tmp_path, tmp_path / 'work_dirs/new') == before
    write_digits(tmp_path / 'work_dirs/old/train')
    read_image_folder(tmp_path / 'work_dirs/old/train', tmp_path / 'work_dirs/new')


def test_only_train_is_divided(tmp_path):
    write_digits(tmp_path / 'train', per_class=3)
    found = read_image_folder(tmp_path)
    assert (len(found.train), len(found.val), found.held_out) == (6, 3, True)
    assert found.val[0][0].startswith('train/digit 0/')


def empty(folder: Path) -> None:
    shutil.rmtree(folder / 'digit 1')
    (folder / 'digit 1').mkdir()


def flat(folder: Path) -> None:
    for label in range(3):
        (folder / f'digit {label}/000.png').rename(folder / f'{label}.png')
        shutil.rmtree(folder / f'digit {label}')


def only_val(folder: Path) -> None:
    (folder / 'val').mkdir()
    for label in range(3):
        (folder / f'digit {label}').rename(folder / f'val/digit {label}')


def foreign_class(folder: Path) -> None:
    only_val(folder)
    shutil.copytree(folder / 'val', folder / 'train')
    shutil.rmtree(folder / 'train/digit 2')


def no_val(folder: Path) -> None:
    only_val(folder)
    shutil.copytree(folder / 'val', folder / 'train')
    shutil.rmtree(folder / 'val')
    (folder / 'val').mkdir()


@pytest.mark.parametrize(('spoil', 'words'), [
    (shutil.rmtree, 'there is no folder '),
    (lambda folder: [shutil.rmtree(path) for path in folder.iterdir()], 'there are no images in '),
    (flat, 'are in no folder of a class'),
    (empty, "digit 1' has no images; add some, or remove it"),
    (lambda folder: [shutil.rmtree(folder / f'digit {label}') for label in (1, 2)], "has one class, 'digit 0'"),
    (only_val, "has the folder 'val' and no folder 'train'"),
    (foreign_class, "has images of the class 'digit 2', of which .*train' has none"),
    (lambda folder: None, 'has one image, so that none can be held out; add some, or'),
    (lambda folder: (folder / 'digit 1').rename(folder / 'digit\n1'), 'has a line break or begins with a space'),
    (lambda folder: (folder / 'digit 1').rename(folder / ' digit'), 'has a line break or begins with a space'),
    (no_val, "val' has no images in folders of the classes"),
])
def test_what_cannot_be_trained_on_is_one_sentence(tmp_path, spoil, words):
    folder = write_digits(tmp_path / 'data', per_class=1)
    spoil(folder)
    with pytest.raises(ConfigError, match=words) as error:
        read_image_folder(folder)
    assert str(error.value).count('. ') == 0
