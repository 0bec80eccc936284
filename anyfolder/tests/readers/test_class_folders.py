"""Folders of classes on the disk: parts, held-out images, and what is rejected."""

import os
import shutil
from pathlib import Path

import pytest
from image_folders import write_digits
from listings import sizes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.listing import Listing


def read(folder: Path | str, work_dir: Path | None = None) -> Listing:
    return read_class_folders(Tree(folder), work_dir)


def images_of(folder: Path | str, split: str) -> list[tuple[str, str]]:
    """The paths within the folder and the classes of a part's images."""
    found = read(folder)
    return [
        (photo.path.relative_to(folder).as_posix(), *photo.labels) for photo in found.parts[split]
    ]


def notes_of(found: Listing) -> dict[str, int]:
    return {what: count for what, count, _ in found.findings.rows()}


def test_a_tenth_of_each_class_is_held_out(tmp_path):
    write_digits(tmp_path, per_class=30)
    (tmp_path / 'digit 1/more').mkdir()
    (tmp_path / 'digit 1/000.png').rename(tmp_path / 'digit 1/more/deeper.PNG')
    for name in ('digit 0/._000.png', 'digit 0/notes.txt', '.hidden/x.png', 'Thumbs.db'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(tmp_path / 'digit 0/000.png', tmp_path / 'cover.png')
    found = read(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert (found.held_out, found.unseen) == (True, ())
    assert notes_of(found) == {
        'folders within those of classes, whose images belong to the class': 1,
        'files left out, .txt': 1,
        'images left out, since they have no label or list entry': 1,
    }
    for name in found.classes:
        assert [
            sum(name in photo.labels for photo in part) for part in (found.train, found.val)
        ] == [27, 3]
    paths = images_of(tmp_path, 'train') + images_of(str(tmp_path), 'val')
    assert len({*paths}) == 90
    assert ('digit 1/more/deeper.PNG', 'digit 1') in paths
    again = write_digits(tmp_path / 'more', per_class=30, classes=2)
    assert images_of(again, 'val') != images_of(tmp_path, 'val')


def test_another_class_leaves_the_images_that_are_held_out(tmp_path):
    write_digits(tmp_path, per_class=20)
    held = images_of(tmp_path, 'val')
    (tmp_path / 'a new class').mkdir()
    shutil.copy(tmp_path / 'digit 0/000.png', tmp_path / 'a new class')
    assert images_of(tmp_path, 'val') == held


def test_links_lead_to_no_image_twice(tmp_path):
    write_digits(tmp_path / 'data', per_class=3)
    write_digits(tmp_path / 'more', per_class=2, classes=1)
    for name, goal in (
        ('loop', '.'),
        ('up', '..'),
        ('other', tmp_path / 'more'),
        ('other again', tmp_path / 'more'),
    ):
        (tmp_path / 'data/digit 1' / name).symlink_to(goal, target_is_directory=True)
    found = read(tmp_path / 'data')
    assert len(found.train + found.val) == 9 + 2


def test_small_classes_keep_an_image_to_train_on(tmp_path):
    write_digits(tmp_path, per_class=2)
    (tmp_path / 'digit 2/001.png').unlink()
    found = read(tmp_path)
    assert [photo.labels for photo in found.train] == [('digit 0',), ('digit 1',), ('digit 2',)]
    assert [photo.labels for photo in found.val] == [('digit 0',), ('digit 1',)]
    assert found.unseen == ('digit 2',)


@pytest.mark.parametrize(
    ('train', 'val'),
    [
        ('train', 'val'),
        ('Train', 'Valid'),
        ('training', 'validation'),
        ('train_set', 'dev-set'),
        ('TrainData', 'ValData'),
        ('train2017', 'val2017'),
        ('train_images', 'val_images'),
        ('TRAIN', 'VAL'),
    ],
)
def test_parts_have_the_names_that_public_sets_have(tmp_path, train, val):
    write_digits(tmp_path / train, per_class=3)
    write_digits(tmp_path / val, per_class=1, classes=2)
    write_digits(tmp_path / 'unlabeled_backup', per_class=1, classes=2)
    found = read(tmp_path)
    assert not found.held_out
    assert len(found.train) == 9
    assert images_of(tmp_path, 'val') == [
        (f'{val}/digit 0/000.png', 'digit 0'),
        (f'{val}/digit 1/000.png', 'digit 1'),
    ]
    assert found.unseen == ('digit 2',)
    assert notes_of(found) == {
        'images left out, since they have no label or list entry': 2,
        'validation or test images that are copies of a training image': 2,
    }


@pytest.mark.parametrize('test', ['test', 'Testing', 'test_set'])
@pytest.mark.parametrize('train', ['train', 'Training', ''])
def test_a_test_is_neither_trained_on_nor_validated(tmp_path, train, test):
    write_digits(tmp_path / train, per_class=10)
    write_digits(tmp_path / test, per_class=2)
    found = read(tmp_path)
    assert sizes_of(found) == [27, 3, 6]
    assert found.held_out
    assert {photo.path.parts[-3] for photo in found.parts['test']} == {test}


def test_images_without_classes_to_test_are_left_out(tmp_path):
    write_digits(tmp_path / 'train', per_class=10)
    write_digits(tmp_path, per_class=2, classes=1).joinpath('digit 0').rename(tmp_path / 'test')
    found = read(tmp_path)
    assert found.parts['test'] == []
    assert notes_of(found) == {'images left out, since they have no label or list entry': 2}


def test_parts_may_lie_within_the_classes(tmp_path):
    for split, count in (('train', 4), ('val', 2)):
        write_digits(tmp_path / 'in' / split, per_class=count)
        for label in range(3):
            (tmp_path / f'digit {label}').mkdir(exist_ok=True)
            (tmp_path / f'in/{split}/digit {label}').rename(tmp_path / f'digit {label}/{split}')
    shutil.rmtree(tmp_path / 'in')
    found = read(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert sizes_of(found) == [12, 6, 0]


def test_a_class_may_be_called_train(tmp_path):
    write_digits(tmp_path, per_class=4)
    (tmp_path / 'digit 2').rename(tmp_path / 'train')
    assert read(tmp_path).classes == ('digit 0', 'digit 1', 'train')


def test_an_archive_unpacked_into_a_folder_of_its_name(tmp_path):
    write_digits(tmp_path / 'digits/digits', per_class=4)
    (tmp_path / '__MACOSX').mkdir()
    assert read(tmp_path).classes == ('digit 0', 'digit 1', 'digit 2')


def test_files_are_images_by_their_content(tmp_path):
    write_digits(tmp_path, per_class=4)
    for suffix, form in (
        ('jfif', 'JPEG'),
        ('jpe', 'JPEG'),
        ('gif', 'GIF'),
        ('JPG_large', 'JPEG'),
        ('', 'PNG'),
        ('heic', 'PNG'),
        ('avif', 'AVIF'),
    ):
        Image.new('RGB', (8, 8)).save(tmp_path / f'digit 0/x.{suffix}'.rstrip('.'), form)
    (tmp_path / 'digit 0/page.jpg').write_text('<html>404</html>')
    (tmp_path / 'digit 0/film.mp4').write_bytes(bytes(99))
    found = read(tmp_path)
    assert len(found.train + found.val) == 12 + 7
    assert notes_of(found) == {
        'files left out, .mp4': 1,
        'images left out, since they cannot be read': 1,
        'validation or test images that are copies of a training image': 1,  # .jpe of .jfif
    }


def test_classes_that_differ_by_case_are_named(tmp_path):
    write_digits(tmp_path, per_class=4, classes=2)
    (tmp_path / 'digit 1').rename(tmp_path / 'Digit 0')
    row = ('classes whose names only differ in case, blanks, look-alike letters or (1)', 1)
    assert read(tmp_path).findings.rows() == [(*row, ["'digit 0' and 'Digit 0'"])]


def test_names_of_classes_are_composed(tmp_path):
    write_digits(tmp_path / 'train', per_class=4)
    write_digits(tmp_path / 'val', per_class=1)
    (tmp_path / 'train/digit 0').rename(tmp_path / 'train/caf\u00e9')
    (tmp_path / 'val/digit 0').rename(tmp_path / 'val/cafe\u0301')
    assert read(tmp_path).classes == ('caf\u00e9', 'digit 1', 'digit 2')


def test_names_in_latin_1(tmp_path):
    write_digits(tmp_path, per_class=4)
    os.rename(os.fsencode(tmp_path / 'digit 0'), os.fsencode(tmp_path) + b'/b\xe4r')
    found = read(tmp_path)
    assert found.classes == ('b\u00e4r', 'digit 1', 'digit 2')
    (what, _, [name]) = found.findings.rows()[0]
    assert 'read as Windows-1252' in what
    assert name == 'b\u00e4r'
    assert all(Path(found.root, found.name_of(record)).is_file() for record in found.train)


def test_a_name_in_an_unknown_encoding_is_an_error(tmp_path):
    write_digits(tmp_path, per_class=4)
    os.rename(
        os.fsencode(tmp_path / 'digit 0'), os.fsencode(tmp_path) + b'/' + '猫咪'.encode('gbk')
    )
    with rejects(r"not UTF-8.*'猫咪' \(gb18030\).*rename this folder"):
        read(tmp_path)


@pytest.mark.parametrize('run', ['.', 'mine', 'digit 1/run'])
@pytest.mark.parametrize('part', ['', 'train', 'val'])
def test_no_run_lies_among_the_classes(tmp_path, part, run):
    for name in {part, 'train' if part else ''}:
        write_digits(tmp_path / name)
    words = 'lies in .*, where each folder is a class; give another work_dir'
    with rejects(words) as error:
        read(tmp_path, tmp_path / part / run)
    assert error.value.option == 'work_dir'


def test_earlier_runs_are_no_class(tmp_path):
    write_digits(tmp_path)
    before = read(tmp_path)
    write_digits(tmp_path / 'work_dirs/old')
    found = read(tmp_path, tmp_path / 'work_dirs/new')
    assert found.parts == before.parts
    assert notes_of(found) == {'folders of trainings left out': 1}
    write_digits(tmp_path / 'work_dirs/old/train')
    read(tmp_path / 'work_dirs/old/train', tmp_path / 'work_dirs/new')


def test_only_train_is_divided(tmp_path):
    write_digits(tmp_path / 'train', per_class=3)
    found = read(tmp_path)
    assert (len(found.train), len(found.val), found.held_out) == (6, 3, True)
    assert images_of(tmp_path, 'val')[0][0].startswith('train/digit 0/')


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


def halves(folder: Path) -> None:
    for part in ('part1', 'part2'):
        (folder / part).mkdir()
        for label in range(3):
            shutil.copytree(folder / f'digit {label}', folder / f'{part}/digit {label}')
    for label in range(3):
        shutil.rmtree(folder / f'digit {label}')


def named_halves(folder: Path) -> None:
    """As Kaggle's Intel Image Classification has them."""
    halves(folder)
    (folder / 'part1').rename(folder / 'in')
    (folder / 'seg_train').mkdir()
    (folder / 'in').rename(folder / 'seg_train/seg_train')
    (folder / 'part2').rename(folder / 'seg_test')
    shutil.copytree(folder / 'seg_test/digit 0', folder / 'seg_pred')


def flat_parts(folder: Path) -> None:
    shutil.rmtree(folder / 'digit 2')
    (folder / 'digit 0').rename(folder / 'train')
    (folder / 'digit 1').rename(folder / 'test')


def no_val(folder: Path) -> None:
    only_val(folder)
    shutil.copytree(folder / 'val', folder / 'train')
    shutil.rmtree(folder / 'val')
    (folder / 'val').mkdir()


@pytest.mark.parametrize(
    ('spoil', 'words'),
    [
        (shutil.rmtree, 'there is no folder '),
        (
            lambda folder: [shutil.rmtree(path) for path in folder.iterdir()],
            'there are no images in ',
        ),
        (flat, 'are not in folders of classes'),
        (empty, "digit 1' has no images; add some, or remove it"),
        (
            lambda folder: [shutil.rmtree(folder / f'digit {label}') for label in (1, 2)],
            "has one class to train on, 'digit 0', and a classifier needs two or more",
        ),
        (only_val, "has the folder 'val' and no folder 'train'"),
        (
            foreign_class,
            "to validate, has the class 'digit 2', which has no training data",
        ),
        (lambda folder: None, 'has too few images of any class to hold one out; add some, or'),
        (
            halves,
            "are 'part1' and 'part2' in .* classes or splits of the data",
        ),
        (named_halves, "are 'seg_test' and 'seg_train' in .* classes or splits of the data"),
        (flat_parts, 'are not in folders of classes'),
        (no_val, "val' has no images in folders of the classes"),
    ],
)
def test_what_cannot_be_trained_on_is_one_sentence(tmp_path, spoil, words):
    folder = write_digits(tmp_path / 'data', per_class=1)
    spoil(folder)
    with rejects(words) as error:
        read(folder)
    assert str(error.value).count('. ') == 0


# Folders from public threads.


@pytest.mark.parametrize(
    'folders',
    [
        ('fold_0/train', 'fold_0/val', 'fold_1/train', 'fold_1/val'),
        ('fold_0', 'fold_1'),
        ('day 1', 'day 2', 'day 2/more'),  # which has other folders, too
    ],
)
def test_folders_that_have_the_classes_in_them_are_a_question(tmp_path, folders):
    for folder in folders:
        write_digits(tmp_path / folder, per_class=1)
    with rejects('classes or splits of the data'):
        read(tmp_path)


@pytest.mark.parametrize('name', ['__MACOSX', '@eaDir', '$RECYCLE.BIN'])
def test_folders_of_systems_are_no_class(tmp_path, name):
    write_digits(tmp_path, per_class=4)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / name)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / 'digit 1' / name)
    assert len(read(tmp_path).train) == 9


def test_hidden_folders_are_no_class(tmp_path):
    """mmpretrain#507, vision#2831: notebooks leave them, with copies of images."""
    write_digits(tmp_path)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / '.ipynb_checkpoints')
    shutil.copytree(tmp_path / 'digit 0', tmp_path / 'digit 1/.ipynb_checkpoints')
    found = read(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(found.train + found.val) == 12


def test_parts_of_kaggle_that_have_no_classes(tmp_path):
    """Its cats and dogs have train/cat.0.jpg and test1/1.jpg."""
    for place, name in (('train', 'cat.{}.png'), ('train', 'dog.{}.png'), ('test1', '{}.png')):
        (tmp_path / place).mkdir(exist_ok=True)
        for i in range(4):
            Image.new('RGB', (8, 8)).save(tmp_path / place / name.format(i))
    with rejects(r"not in folders of classes, and .* such as 'cat\.0\.png'; .* add a train\.csv"):
        read(tmp_path)


def test_words_of_parts_within_classes(tmp_path):
    for name in ('test_tube', 'train_station', 'dev'):
        write_digits(tmp_path / 'in', per_class=2)
        (tmp_path / 'in/digit 0').rename(tmp_path / name)
        shutil.rmtree(tmp_path / 'in')
    shutil.rmtree(tmp_path / 'dev')
    assert read(tmp_path).classes == ('test_tube', 'train_station')


def test_classes_in_a_folder_next_to_text_files(tmp_path):
    """As CUB-200-2011 has them."""
    write_digits(tmp_path / 'images', per_class=2)
    (tmp_path / 'classes.txt').write_text('1 digit 0')
    assert read(tmp_path).classes == ('digit 0', 'digit 1', 'digit 2')


@pytest.mark.parametrize('name', ['runs/detect/exp', 'wandb/latest', 'mine'])
def test_what_trainings_leave_is_no_class(tmp_path, name):
    write_digits(tmp_path)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / name)
    if name == 'mine':
        (tmp_path / name / 'last_checkpoint').touch()
    found = read(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert notes_of(found) == {'folders of trainings left out': 1}


def test_a_class_may_be_called_runs(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'digit 0').rename(tmp_path / 'runs')
    assert read(tmp_path).classes == ('digit 1', 'digit 2', 'runs')


@pytest.mark.parametrize('part', ['train', 'val', ''])
def test_copies_of_an_image_in_two_classes_are_named(tmp_path, part):
    """CVA-Net#27, PlantDoc-Dataset#4."""
    write_digits(tmp_path / 'train' if part else tmp_path)
    if part:
        write_digits(tmp_path / 'val', per_class=1)
    first = next(tmp_path.rglob('digit 0/001.png'))
    shutil.copy(first, tmp_path / part / 'digit 1/copy.png')
    found = notes_of(read(tmp_path))
    assert found['copies of one image with different labels'] == 1


def test_names_of_folders_that_look_the_same_are_one_class(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'digit 0').rename(tmp_path / 'a\u00a0cat')
    (tmp_path / 'digit 1').rename(tmp_path / 'a  cat')
    assert read(tmp_path).classes == ('a cat', 'digit 2')


def test_classes_that_are_numbers_are_named(tmp_path):
    for i in range(24):
        folder = tmp_path / str(20 + i % 12)
        folder.mkdir(exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(folder / f'{i}.png')
    rows = [row[0] for row in read_class_folders(Tree(tmp_path)).findings.rows()]
    assert any('numbers, whose order and distance are not learned' in row for row in rows)


def test_a_part_may_have_one_folder_around_its_classes(tmp_path):
    """Of Kaggle, where an archive is in a folder of its name."""
    write_digits(tmp_path / 'training_set/training_set', per_class=3)
    write_digits(tmp_path / 'test_set/images', per_class=1)
    found = read(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(found.parts['test']) == 3


def test_tiny_imagenet(tmp_path):
    write_digits(tmp_path / 'train')
    (tmp_path / 'val/images').mkdir(parents=True)
    lines = []
    for label in range(3):
        folder = (tmp_path / f'train/digit {label}').rename(tmp_path / f'train/n{label}')
        (folder / '000.png').rename(tmp_path / f'val/images/{label}.png')
        lines.append(f'{label}.png\tn{label}\t0\t9\n')
    (tmp_path / 'val/val_annotations.txt').write_text(''.join(lines))
    wanted = [(f'val/images/{label}.png', f'n{label}') for label in range(3)]
    assert images_of(tmp_path, 'val') == wanted


def test_the_folder_of_the_data_beside_others_is_a_question(tmp_path):
    write_digits(tmp_path / 'data/train')
    write_digits(tmp_path / 'data/test')
    write_digits(tmp_path / 'sample')
    with rejects('classes or splits of the data'):
        read(tmp_path)


def test_a_part_to_train_on_in_another_language_is_missed(tmp_path):
    write_digits(tmp_path / 'entrainement')
    write_digits(tmp_path / 'test')
    with rejects("has the folder 'test' and no folder 'train'"):
        read(tmp_path)


def in_two_folders(folder: Path, first: str, second: str, labels: str) -> None:
    """Images in two folders, and a table of their classes."""
    write_digits(folder / 'all')
    for i, path in enumerate(sorted((folder / 'all').rglob('*.png'))):
        place = folder / (first, second)[i % 2]
        place.mkdir(exist_ok=True)
        path.rename(place / f'{i}.png')
    shutil.rmtree(folder / 'all')
    rows = [f'{i}.png,{labels[i % len(labels)]}' for i in range(12)]
    (folder / 'labels.csv').write_text('\n'.join(['file,label', *rows]))


def test_numbered_folders_of_images_are_no_classes(tmp_path):
    """ChestX-ray14 and HAM10000."""
    in_two_folders(tmp_path, 'images_001', 'images_002', 'xyz')
    assert read(tmp_path).classes == ('x', 'y', 'z')
    (tmp_path / 'labels.csv').unlink()
    with rejects('are not in folders of classes'):
        read(tmp_path)


def test_a_table_that_says_other_classes_than_the_folders_is_a_question(tmp_path):
    in_two_folders(tmp_path, 'cats', 'dogs', 'xyz')
    with rejects(r"labels\.csv' has the class '.' for .*, which is in the folder '.*; if the tab"):
        read(tmp_path)


def test_a_table_that_has_other_names_for_the_folders_agrees(tmp_path):
    in_two_folders(tmp_path, 'cats', 'dogs', 'xy')
    assert read(tmp_path).classes == ('cats', 'dogs')


@pytest.mark.parametrize('place', ['', 'train/'])
@pytest.mark.parametrize('with_table', [True, False])
def test_folders_of_results_are_classes_only_if_they_have_images_alone(tmp_path, place, with_table):
    folder = tmp_path / place
    write_digits(folder)
    save = Image.new('RGB', (8, 8)).save
    (folder / 'Output/train').mkdir(parents=True)
    for i in range(3):
        save(folder / f'Output/{"train/" * (i % 2)}{i}.png')
    (folder / 'Output/Thumbs.db').touch()
    if with_table:
        (folder / 'Output/scores.csv').write_text('a,b')
    found = read_class_folders(Tree(tmp_path))
    assert ('Output' in found.classes) == (not with_table)
    warnings = [row[0] for row in found.findings.rows()]
    assert any('named as program output' in what for what in warnings)


@pytest.mark.parametrize('name', ['test', 'val'])
def test_a_folder_named_as_a_split_that_has_lists_alone_is_no_split(tmp_path, name):
    write_digits(tmp_path, per_class=10)
    (tmp_path / name).mkdir()
    (tmp_path / f'{name}/{name}.txt').write_text('digit 0/003.png\ndigit 1/004.png\n')
    found = read(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(found.parts[name]) == 2
    assert sum(map(len, found.parts.values())) == 30


def test_a_folder_with_all_classes_again_is_left_out(tmp_path):
    write_digits(tmp_path)
    shutil.copytree(tmp_path, tmp_path.parent / 'again')
    shutil.move(tmp_path.parent / 'again', tmp_path / 'again')
    found = read(tmp_path)
    assert found.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(found.train + found.val) == 12
    assert notes_of(found)['folders left out, since they have the images of all classes again'] == 1


@pytest.mark.parametrize('change', [{'name': 'other.png'}, {'bytes': b'a'}])
def test_a_folder_with_other_images_of_all_classes_is_a_question(tmp_path, change):
    write_digits(tmp_path)
    shutil.copytree(tmp_path, tmp_path.parent / 'more')
    image = tmp_path.parent / 'more/digit 1/001.png'
    if 'name' in change:
        image.rename(image.with_name(change['name']))
    else:
        image.write_bytes(image.read_bytes() + change['bytes'])
    shutil.move(tmp_path.parent / 'more', tmp_path / 'more')
    with rejects("more' has folders of all classes again, with other images such as .*digit 1"):
        read(tmp_path)


def test_a_class_with_one_of_the_other_classes_within_stays(tmp_path):
    write_digits(tmp_path)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / 'digit 1/digit 0')
    assert read(tmp_path).classes == ('digit 0', 'digit 1', 'digit 2')
