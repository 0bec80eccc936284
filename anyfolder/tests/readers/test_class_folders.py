"""Class folders: their splits, held-out images, and folders that are rejected."""

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
    """The relative path and the classes of each image of a split."""
    listing = read(folder)
    return [
        (record.path.relative_to(folder).as_posix(), *record.labels)
        for record in listing.parts[split]
    ]


def notes_of(listing: Listing) -> dict[str, int]:
    """The findings with their counts."""
    return {what: count for what, count, _ in listing.findings.rows()}


def test_a_tenth_of_each_class_is_held_out(tmp_path):
    write_digits(tmp_path, per_class=30)
    (tmp_path / 'digit 1/more').mkdir()
    (tmp_path / 'digit 1/000.png').rename(tmp_path / 'digit 1/more/deeper.PNG')
    for name in ('digit 0/._000.png', 'digit 0/notes.txt', '.hidden/x.png', 'Thumbs.db'):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    shutil.copy(tmp_path / 'digit 0/000.png', tmp_path / 'cover.png')
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert (listing.held_out, listing.unseen) == (True, ())
    assert notes_of(listing) == {
        'folders within those of classes, whose images belong to the class': 1,
        'files left out, .txt': 1,
        'images left out, since they have no label or list entry': 1,
    }
    for name in listing.classes:
        assert [
            sum(name in record.labels for record in part) for part in (listing.train, listing.val)
        ] == [27, 3]
    paths = images_of(tmp_path, 'train') + images_of(str(tmp_path), 'val')
    assert len({*paths}) == 90
    assert ('digit 1/more/deeper.PNG', 'digit 1') in paths
    held_out = images_of(tmp_path, 'val')
    numbers = [
        [Path(path).stem for path, name in held_out if name == digit]
        for digit in ('digit 0', 'digit 2')
    ]
    assert numbers[0] != numbers[1]  # each class has its own seed


def test_held_out_images_stay_the_same_after_another_class_is_added(tmp_path):
    write_digits(tmp_path, per_class=20)
    held_out = images_of(tmp_path, 'val')
    (tmp_path / 'a new class').mkdir()
    shutil.copy(tmp_path / 'digit 0/000.png', tmp_path / 'a new class')
    assert images_of(tmp_path, 'val') == held_out


def test_links_do_not_repeat_images(tmp_path):
    write_digits(tmp_path / 'data', per_class=3)
    write_digits(tmp_path / 'more', per_class=2, classes=1)
    for name, target in (
        ('loop', '.'),
        ('up', '..'),
        ('other', tmp_path / 'more'),
        ('other again', tmp_path / 'more'),
    ):
        (tmp_path / 'data/digit 1' / name).symlink_to(target, target_is_directory=True)
    listing = read(tmp_path / 'data')
    assert len(listing.train + listing.val) == 9 + 2  # images of 'data' and of 'more'


def test_small_classes_keep_a_training_image(tmp_path):
    write_digits(tmp_path, per_class=2)
    (tmp_path / 'digit 2/001.png').unlink()
    listing = read(tmp_path)
    assert [record.labels for record in listing.train] == [('digit 0',), ('digit 1',), ('digit 2',)]
    assert [record.labels for record in listing.val] == [('digit 0',), ('digit 1',)]
    assert listing.unseen == ('digit 2',)


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
def test_split_folders_are_recognized_by_common_names(tmp_path, train, val):
    write_digits(tmp_path / train, per_class=3)
    write_digits(tmp_path / val, per_class=1, classes=2)
    write_digits(tmp_path / 'unlabeled_backup', per_class=1, classes=2)
    listing = read(tmp_path)
    assert not listing.held_out
    assert len(listing.train) == 9
    assert images_of(tmp_path, 'val') == [
        (f'{val}/digit 0/000.png', 'digit 0'),
        (f'{val}/digit 1/000.png', 'digit 1'),
    ]
    assert listing.unseen == ('digit 2',)
    assert notes_of(listing) == {
        'images left out, since they have no label or list entry': 2,
        'validation or test images that are copies of a training image': 2,
    }


@pytest.mark.parametrize('test', ['test', 'Testing', 'test_set'])
@pytest.mark.parametrize('train', ['train', 'Training', ''])
def test_test_images_are_kept_apart(tmp_path, train, test):
    write_digits(tmp_path / train, per_class=10)
    write_digits(tmp_path / test, per_class=2)
    listing = read(tmp_path)
    assert sizes_of(listing) == [27, 3, 6]
    assert listing.held_out
    assert {record.path.parts[-3] for record in listing.parts['test']} == {test}


def test_test_images_without_classes_are_left_out(tmp_path):
    write_digits(tmp_path / 'train', per_class=10)
    write_digits(tmp_path, per_class=2, classes=1).joinpath('digit 0').rename(tmp_path / 'test')
    listing = read(tmp_path)
    assert listing.parts['test'] == []
    assert notes_of(listing) == {'images left out, since they have no label or list entry': 2}


def test_split_folders_may_lie_within_class_folders(tmp_path):
    for split, count in (('train', 4), ('val', 2)):
        write_digits(tmp_path / 'in' / split, per_class=count)
        for label in range(3):
            (tmp_path / f'digit {label}').mkdir(exist_ok=True)
            (tmp_path / f'in/{split}/digit {label}').rename(tmp_path / f'digit {label}/{split}')
    shutil.rmtree(tmp_path / 'in')
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert sizes_of(listing) == [12, 6, 0]


def test_a_class_may_be_called_train(tmp_path):
    write_digits(tmp_path, per_class=4)
    (tmp_path / 'digit 2').rename(tmp_path / 'train')
    assert read(tmp_path).classes == ('digit 0', 'digit 1', 'train')


def test_folder_around_the_class_folders_is_skipped(tmp_path):
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
    listing = read(tmp_path)
    assert len(listing.train + listing.val) == 12 + 7
    assert notes_of(listing) == {
        'files left out, .mp4': 1,
        'images left out, since they cannot be read': 1,
        'validation or test images that are copies of a training image': 1,  # x.jpe of x.jfif
    }


def test_classes_that_differ_by_case_are_reported(tmp_path):
    write_digits(tmp_path, per_class=4, classes=2)
    (tmp_path / 'digit 1').rename(tmp_path / 'Digit 0')
    row = ('classes whose names only differ in case, blanks, look-alike letters or (1)', 1)
    assert read(tmp_path).findings.rows() == [(*row, ["'digit 0' and 'Digit 0'"])]


def test_class_names_are_composed_unicode(tmp_path):
    write_digits(tmp_path / 'train', per_class=4)
    write_digits(tmp_path / 'val', per_class=1)
    (tmp_path / 'train/digit 0').rename(tmp_path / 'train/caf\u00e9')
    (tmp_path / 'val/digit 0').rename(tmp_path / 'val/cafe\u0301')
    assert read(tmp_path).classes == ('caf\u00e9', 'digit 1', 'digit 2')


def test_class_names_in_latin_1_are_decoded(tmp_path):
    write_digits(tmp_path, per_class=4)
    os.rename(os.fsencode(tmp_path / 'digit 0'), os.fsencode(tmp_path) + b'/b\xe4r')
    listing = read(tmp_path)
    assert listing.classes == ('b\u00e4r', 'digit 1', 'digit 2')
    what, _, [name] = listing.findings.rows()[0]
    assert 'read as Windows-1252' in what
    assert name == 'b\u00e4r'
    assert all(Path(listing.root, listing.name_of(record)).is_file() for record in listing.train)


def test_class_name_in_an_unknown_encoding_raises(tmp_path):
    write_digits(tmp_path, per_class=4)
    os.rename(
        os.fsencode(tmp_path / 'digit 0'), os.fsencode(tmp_path) + b'/' + '猫咪'.encode('gbk')
    )
    with rejects(r"not UTF-8.*'猫咪' \(gb18030\).*rename this folder"):
        read(tmp_path)


@pytest.mark.parametrize('run', ['.', 'mine', 'digit 1/run'])
@pytest.mark.parametrize('split', ['', 'train', 'val'])
def test_work_dir_among_class_folders_raises(tmp_path, split, run):
    write_digits(tmp_path / split)
    if split == 'val':
        write_digits(tmp_path / 'train')
    words = 'lies in .*, where each folder is a class; give another work_dir'
    with rejects(words) as error:
        read(tmp_path, tmp_path / split / run)
    assert error.value.option == 'work_dir'


def test_earlier_runs_are_not_classes(tmp_path):
    write_digits(tmp_path)
    before = read(tmp_path)
    write_digits(tmp_path / 'work_dirs/old')
    listing = read(tmp_path, tmp_path / 'work_dirs/new')
    assert listing.parts == before.parts
    assert notes_of(listing) == {'folders of trainings left out': 1}
    write_digits(tmp_path / 'work_dirs/old/train')
    read(tmp_path / 'work_dirs/old/train', tmp_path / 'work_dirs/new')


def test_training_images_without_a_validation_folder_are_divided(tmp_path):
    write_digits(tmp_path / 'train', per_class=3)
    listing = read(tmp_path)
    assert (len(listing.train), len(listing.val), listing.held_out) == (6, 3, True)
    assert images_of(tmp_path, 'val')[0][0].startswith('train/digit 0/')


# Changes that make a folder with an image in each of three classes invalid.


def empty_a_class(folder: Path) -> None:
    shutil.rmtree(folder / 'digit 1')
    (folder / 'digit 1').mkdir()


def flatten(folder: Path) -> None:
    for label in range(3):
        (folder / f'digit {label}/000.png').rename(folder / f'{label}.png')
        shutil.rmtree(folder / f'digit {label}')


def keep_only_val(folder: Path) -> None:
    (folder / 'val').mkdir()
    for label in range(3):
        (folder / f'digit {label}').rename(folder / f'val/digit {label}')


def validate_an_unknown_class(folder: Path) -> None:
    keep_only_val(folder)
    shutil.copytree(folder / 'val', folder / 'train')
    shutil.rmtree(folder / 'train/digit 2')


def copy_to_two_parts(folder: Path) -> None:
    for part in ('part1', 'part2'):
        (folder / part).mkdir()
        for label in range(3):
            shutil.copytree(folder / f'digit {label}', folder / f'{part}/digit {label}')
    for label in range(3):
        shutil.rmtree(folder / f'digit {label}')


def copy_to_named_parts(folder: Path) -> None:
    """As in Kaggle's Intel Image Classification."""
    copy_to_two_parts(folder)
    (folder / 'part1').rename(folder / 'in')
    (folder / 'seg_train').mkdir()
    (folder / 'in').rename(folder / 'seg_train/seg_train')
    (folder / 'part2').rename(folder / 'seg_test')
    shutil.copytree(folder / 'seg_test/digit 0', folder / 'seg_pred')


def rename_classes_to_splits(folder: Path) -> None:
    shutil.rmtree(folder / 'digit 2')
    (folder / 'digit 0').rename(folder / 'train')
    (folder / 'digit 1').rename(folder / 'test')


def empty_val(folder: Path) -> None:
    keep_only_val(folder)
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
        (flatten, 'are not in folders of classes'),
        (empty_a_class, "digit 1' has no images; add some, or remove it"),
        (
            lambda folder: [shutil.rmtree(folder / f'digit {label}') for label in (1, 2)],
            "has one class to train on, 'digit 0', and a classifier needs two or more",
        ),
        (keep_only_val, "has the folder 'val' and no folder 'train'"),
        (
            validate_an_unknown_class,
            "to validate, has the class 'digit 2', which has no training data",
        ),
        (lambda folder: None, 'has too few images of any class to hold one out; add some, or'),
        (
            copy_to_two_parts,
            "are 'part1' and 'part2' in .* classes or splits of the data",
        ),
        (copy_to_named_parts, "are 'seg_test' and 'seg_train' in .* classes or splits of the data"),
        (rename_classes_to_splits, 'are not in folders of classes'),
        (empty_val, "val' has no images in folders of the classes"),
    ],
)
def test_invalid_folders_raise_one_sentence(tmp_path, spoil, words):
    folder = write_digits(tmp_path / 'data', per_class=1)
    spoil(folder)
    with rejects(words) as error:
        read(folder)
    assert str(error.value).count('. ') == 0


# Folders as in public issues.


@pytest.mark.parametrize(
    'folders',
    [
        ('fold_0/train', 'fold_0/val', 'fold_1/train', 'fold_1/val'),
        ('fold_0', 'fold_1'),
        ('day 1', 'day 2', 'day 2/more'),  # 'day 2' has the folder 'more', too
    ],
)
def test_folders_that_each_have_all_classes_raise(tmp_path, folders):
    for folder in folders:
        write_digits(tmp_path / folder, per_class=1)
    with rejects('classes or splits of the data'):
        read(tmp_path)


@pytest.mark.parametrize('name', ['__MACOSX', '@eaDir', '$RECYCLE.BIN'])
def test_system_folders_are_not_classes(tmp_path, name):
    write_digits(tmp_path, per_class=4)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / name)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / 'digit 1' / name)
    assert len(read(tmp_path).train) == 9


def test_hidden_folders_are_not_classes(tmp_path):
    """Notebooks leave them, with copies of images: mmpretrain#507, vision#2831."""
    write_digits(tmp_path)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / '.ipynb_checkpoints')
    shutil.copytree(tmp_path / 'digit 0', tmp_path / 'digit 1/.ipynb_checkpoints')
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(listing.train + listing.val) == 12


def test_classes_in_file_names_raise(tmp_path):
    """Kaggle's cats and dogs are train/cat.0.jpg and test1/1.jpg."""
    for folder, name in (('train', 'cat.{}.png'), ('train', 'dog.{}.png'), ('test1', '{}.png')):
        (tmp_path / folder).mkdir(exist_ok=True)
        for i in range(4):
            Image.new('RGB', (8, 8)).save(tmp_path / folder / name.format(i))
    with rejects(r"not in folders of classes, and .* such as 'cat\.0\.png'; .* add a train\.csv"):
        read(tmp_path)


def test_class_names_may_contain_names_of_splits(tmp_path):
    for name in ('test_tube', 'train_station'):
        write_digits(tmp_path / 'in', per_class=2)
        (tmp_path / 'in/digit 0').rename(tmp_path / name)
        shutil.rmtree(tmp_path / 'in')
    assert read(tmp_path).classes == ('test_tube', 'train_station')


def test_classes_in_a_folder_next_to_text_files(tmp_path):
    """As in CUB-200-2011."""
    write_digits(tmp_path / 'images', per_class=2)
    (tmp_path / 'classes.txt').write_text('1 digit 0')
    assert read(tmp_path).classes == ('digit 0', 'digit 1', 'digit 2')


@pytest.mark.parametrize('name', ['runs/detect/exp', 'wandb/latest', 'mine'])
def test_folders_of_trainings_are_not_classes(tmp_path, name):
    write_digits(tmp_path)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / name)
    if name == 'mine':
        (tmp_path / name / 'last_checkpoint').touch()
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert notes_of(listing) == {'folders of trainings left out': 1}


def test_a_class_may_be_called_runs(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'digit 0').rename(tmp_path / 'runs')
    assert read(tmp_path).classes == ('digit 1', 'digit 2', 'runs')


@pytest.mark.parametrize('split', ['train', 'val', ''])
def test_copies_of_an_image_in_two_classes_are_reported(tmp_path, split):
    """CVA-Net#27, PlantDoc-Dataset#4."""
    write_digits(tmp_path / 'train' if split else tmp_path)
    if split:
        write_digits(tmp_path / 'val', per_class=1)
    image = next(tmp_path.rglob('digit 0/001.png'))
    shutil.copy(image, tmp_path / split / 'digit 1/copy.png')
    notes = notes_of(read(tmp_path))
    assert notes['copies of one image with different labels'] == 1


def test_folders_whose_names_look_the_same_are_one_class(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'digit 0').rename(tmp_path / 'a\u00a0cat')
    (tmp_path / 'digit 1').rename(tmp_path / 'a  cat')
    assert read(tmp_path).classes == ('a cat', 'digit 2')


def test_many_numbers_as_classes_are_reported(tmp_path):
    for i in range(24):
        folder = tmp_path / str(20 + i % 12)
        folder.mkdir(exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(folder / f'{i}.png')
    notes = notes_of(read(tmp_path))
    assert any('numbers, whose order and distance are not learned' in what for what in notes)


def test_split_folder_may_have_one_folder_around_its_classes(tmp_path):
    """On Kaggle, an archive is unpacked into a folder of its name."""
    write_digits(tmp_path / 'training_set/training_set', per_class=3)
    write_digits(tmp_path / 'test_set/images', per_class=1)
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(listing.parts['test']) == 3


def test_data_folder_next_to_another_one_raises(tmp_path):
    write_digits(tmp_path / 'data/train')
    write_digits(tmp_path / 'data/test')
    write_digits(tmp_path / 'sample')
    with rejects('classes or splits of the data'):
        read(tmp_path)


def test_training_folder_in_another_language_raises(tmp_path):
    write_digits(tmp_path / 'entrainement')
    write_digits(tmp_path / 'test')
    with rejects("has the folder 'test' and no folder 'train'"):
        read(tmp_path)


def write_in_two_folders(folder: Path, first: str, second: str, labels: str) -> None:
    """Images in two folders in turn, and a table of their classes, the letters of ``labels``."""
    write_digits(folder / 'all')
    for i, path in enumerate(sorted((folder / 'all').rglob('*.png'))):
        target = folder / (first, second)[i % 2]
        target.mkdir(exist_ok=True)
        path.rename(target / f'{i}.png')
    shutil.rmtree(folder / 'all')
    rows = [f'{i}.png,{labels[i % len(labels)]}' for i in range(12)]
    (folder / 'labels.csv').write_text('\n'.join(['file,label', *rows]))


def test_numbered_folders_of_images_are_not_classes(tmp_path):
    """ChestX-ray14 and HAM10000."""
    write_in_two_folders(tmp_path, 'images_001', 'images_002', 'xyz')
    assert read(tmp_path).classes == ('x', 'y', 'z')
    (tmp_path / 'labels.csv').unlink()
    with rejects('are not in folders of classes'):
        read(tmp_path)


def test_table_that_contradicts_the_class_folders_raises(tmp_path):
    write_in_two_folders(tmp_path, 'cats', 'dogs', 'xyz')
    with rejects(r"labels\.csv' has the class '.' for .*, which is in the folder '.*; if the tab"):
        read(tmp_path)


def test_table_with_other_names_for_the_class_folders_agrees(tmp_path):
    write_in_two_folders(tmp_path, 'cats', 'dogs', 'xy')
    assert read(tmp_path).classes == ('cats', 'dogs')


@pytest.mark.parametrize('split', ['', 'train'])
@pytest.mark.parametrize('with_table', [True, False])
def test_output_folders_are_classes_if_they_have_only_images(tmp_path, split, with_table):
    folder = tmp_path / split
    write_digits(folder)
    (folder / 'Output/train').mkdir(parents=True)
    for name in ('0.png', 'train/1.png', '2.png'):
        Image.new('RGB', (8, 8)).save(folder / 'Output' / name)
    (folder / 'Output/Thumbs.db').touch()
    if with_table:
        (folder / 'Output/scores.csv').write_text('a,b')
    listing = read(tmp_path)
    assert ('Output' in listing.classes) == (not with_table)
    assert any('named as program output' in what for what in notes_of(listing))


@pytest.mark.parametrize('inner', ['images', 'train'])
def test_class_named_as_output_may_be_in_the_only_folder_of_a_split(tmp_path, inner):
    write_digits(tmp_path / 'train' / inner)
    (tmp_path / 'train' / inner / 'digit 2').rename(tmp_path / 'train' / inner / 'results')
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'results')
    what = 'classes named as program output; move their folders away if they are not classes'
    assert notes_of(listing)[what] == 1


def test_output_folder_is_left_out_if_two_classes_remain_with_one_named_as_output(tmp_path):
    write_digits(tmp_path)
    shutil.rmtree(tmp_path / 'digit 2')
    (tmp_path / 'digit 0').rename(tmp_path / 'results')
    (tmp_path / 'outputs').mkdir()
    Image.new('RGB', (8, 8)).save(tmp_path / 'outputs/0.png')
    (tmp_path / 'outputs/log.txt').write_text('epoch 1')
    listing = read(tmp_path)
    assert listing.classes == ('digit 1', 'results')
    notes = notes_of(listing)
    left_out = [what for what in notes if what.startswith('folders left out, since they are named')]
    kept = [what for what in notes if what.startswith('classes named as program output')]
    assert (len(left_out), len(kept)) == (1, 1)


@pytest.mark.parametrize('name', ['test', 'val'])
def test_folder_with_only_a_list_is_not_a_split(tmp_path, name):
    write_digits(tmp_path, per_class=10)
    (tmp_path / name).mkdir()
    (tmp_path / f'{name}/{name}.txt').write_text('digit 0/003.png\ndigit 1/004.png\n')
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(listing.parts[name]) == 2
    assert sum(map(len, listing.parts.values())) == 30


def test_copy_of_all_class_folders_is_left_out(tmp_path):
    write_digits(tmp_path)
    shutil.copytree(tmp_path, tmp_path.parent / 'again')
    shutil.move(tmp_path.parent / 'again', tmp_path / 'again')
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert len(listing.train + listing.val) == 12
    assert (
        notes_of(listing)['folders left out, since they have the images of all classes again'] == 1
    )


def test_copy_with_broken_links_is_left_out(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'digit 1/9.png').symlink_to(tmp_path / 'missing.png')
    shutil.copytree(tmp_path, tmp_path.parent / 'again', symlinks=True)
    shutil.move(tmp_path.parent / 'again', tmp_path / 'again')
    listing = read(tmp_path)
    assert listing.classes == ('digit 0', 'digit 1', 'digit 2')
    assert notes_of(listing)['images left out, since they cannot be read'] == 1


@pytest.mark.parametrize('is_renamed', [True, False])
def test_folder_with_other_images_of_all_classes_raises(tmp_path, is_renamed):
    write_digits(tmp_path)
    shutil.copytree(tmp_path, tmp_path.parent / 'more')
    image = tmp_path.parent / 'more/digit 1/001.png'
    if is_renamed:
        image.rename(image.with_name('other.png'))
    else:
        image.write_bytes(image.read_bytes() + b'a')
    shutil.move(tmp_path.parent / 'more', tmp_path / 'more')
    with rejects("more' has folders of all classes again, with other images such as .*digit 1"):
        read(tmp_path)


def test_class_folder_may_contain_a_folder_of_another_class(tmp_path):
    write_digits(tmp_path)
    shutil.copytree(tmp_path / 'digit 0', tmp_path / 'digit 1/digit 0')
    assert read(tmp_path).classes == ('digit 0', 'digit 1', 'digit 2')
