"""Lists of the images of a split, next to class folders."""

import json
import shutil
from pathlib import Path

import pytest
from image_folders import write_digits
from listings import notes_of
from PIL import Image
from public_scene import Scene
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.findings import Findings
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.split_lists import read_lists

TESTED = ['digit 0/000', 'digit 1/001', 'digit 2/002']


def digits(*numbers: int) -> list[str]:
    """The images with these numbers of each class in :func:`write_digits`, without suffix."""
    return [f'digit {i}/{number:03d}' for i in range(3) for number in numbers]


def stems_by_split(folder: Path) -> dict[str, set[str]]:
    listing = read_class_folders(Tree(folder))
    return {split: {image.path.stem for image in part} for split, part in listing.parts.items()}


def distinct_image(path: Path, k: int, i: int) -> None:
    """Write an image in a color of its own, since copies of an image are reported."""
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new('RGB', (8, 8), (30 * k, 20 * i, 0)).save(path)


@pytest.mark.parametrize(
    ('name', 'line'),
    [
        ('test.txt', '{}.png'),
        ('test.txt', 'images/{}.png'),
        ('testing_list.txt', '{}.png'),
        ('meta/test.txt', '{}'),  # Food-101
        ('test_list.lst', '/home/me/data/{}.png 3'),
        ('splits/test.csv', '{}.png,digit 0'),
        ('val.txt', '{}.png\t2'),
        ('testlist01.txt', '{}.png'),
    ],
)
def test_listed_images_are_in_the_split_of_their_list(tmp_path, name, line):
    write_digits(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('\n'.join(line.format(name) for name in TESTED))
    listing = read_class_folders(Tree(tmp_path))
    part = listing.parts['val' if 'val' in name else 'test']
    assert [listing.name_of(record).removesuffix('.png') for record in part] == TESTED
    assert not {record.path for record in part} & {record.path for record in listing.train}
    assert not any('files left out' in what for what, _, _ in listing.findings.rows())


def test_unlisted_images_are_left_out_if_a_list_names_training_images(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test.txt').write_text('\n'.join(TESTED))
    (tmp_path / 'train.txt').write_text('\n'.join(digits(0, 1, 2)))
    listing = read_class_folders(Tree(tmp_path))
    assert len(listing.train + listing.val) == 6
    assert notes_of(listing) == [
        ('images in lists of two splits, assigned to the one furthest from training', 3),
        ('images left out, since they have no label or list entry', 3),
    ]


def test_notes_are_not_lists(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test_notes.txt').write_text('look at the digit 0 again\n')
    assert len(read_class_folders(Tree(tmp_path)).parts['test']) == 0


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('meta/test.json', {'digit 0': TESTED[:1], 'digit 1': TESTED[1:]}),  # Food-101
        ('splits.json', {f'{name}.png': 'test' for name in TESTED}),
        ('split_zhou.json', dict(train=[], test=[[f'{name}.png', 1, 'digit'] for name in TESTED])),
    ],
)
def test_json_lists_are_read(tmp_path, name, content):
    write_digits(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(json.dumps(content))
    listing = read_class_folders(Tree(tmp_path))
    tested = [listing.name_of(record).removesuffix('.png') for record in listing.parts['test']]
    assert tested == TESTED


def test_split_column_of_a_table_next_to_class_folders_is_read(tmp_path):
    """ArtBench's metadata."""
    write_digits(tmp_path)
    names = [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob('*.png'))]
    rows = [f'{name},{"test" if i % 4 == 0 else "train"}' for i, name in enumerate(names)]
    (tmp_path / 'metadata.csv').write_text('\n'.join(['name,split', *rows]))
    tested = read_class_folders(Tree(tmp_path)).parts['test']
    assert [record.path.stem for record in tested] == ['000'] * 3


def test_lines_without_their_image_are_reported(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test.txt').write_text('elsewhere/900.jpg\n')
    notes = notes_of(read_class_folders(Tree(tmp_path)))
    assert ('lines of test.txt left out, since their image is missing', 1) in notes


def imagenet(folder: Path, line: str) -> None:
    """Training images in class folders, and validation images in one folder with a list.

    Args:
        folder: the root.
        line: a line of the list, with placeholders: ``i`` is the number of the image and of its
            class, ``shifted`` that of the class in another order, ``from_1`` counts it from 1.
    """
    write_digits(folder / 'train')
    (folder / 'val').mkdir()
    lines = []
    for i in range(3):
        (folder / f'train/digit {i}/003.png').rename(folder / f'val/image {i}.png')
        lines.append(line.format(i=i, shifted=(i + 1) % 3, from_1=i + 1))
    (folder / 'val.txt').write_text('\n'.join(lines))


@pytest.mark.parametrize(
    ('line', 'numbering', 'content'),
    [
        ('image {i}.png {i}', None, ''),
        ('image {i},{i} 1 2 3', None, ''),  # Kaggle's class and box
        # the order of the classes is that of another file, not of the folders
        (
            'image {i}.png {shifted}',
            'train.txt',
            'digit 0/000.png 1\ndigit 1/000.png 2\ndigit 2/000.png 0',
        ),
        ('image {i}.png {shifted}', 'wnids.txt', 'digit 2\ndigit 0\ndigit 1'),
    ],
)
def test_flat_validation_images_have_the_labels_of_their_list(tmp_path, line, numbering, content):
    imagenet(tmp_path, line)
    if numbering:
        (tmp_path / numbering).write_text(content)
    listing = read_class_folders(Tree(tmp_path))
    assert not listing.held_out
    assert {record.path.stem[-1]: record.labels[0][-1] for record in listing.val} == {
        '0': '0', '1': '1', '2': '2'
    }  # fmt: skip


def test_labels_that_are_counted_from_1_raise(tmp_path):
    imagenet(tmp_path, 'image {i}.png {from_1}')
    with rejects("'1' of .*image 0.png in .*val.txt.*; .* or count them from 0"):
        read_class_folders(Tree(tmp_path))


def numbered_imagenet(folder: Path, labels: tuple[int, int, int]) -> None:
    """:func:`imagenet` with class folders 1, 2 and 10, and these labels in the list."""
    imagenet(folder, '')
    for i, name in enumerate((1, 2, 10)):
        (folder / f'train/digit {i}').rename(folder / f'train/{name}')
    lines = [f'image {i}.png {label}' for i, label in enumerate(labels)]
    (folder / 'val.txt').write_text('\n'.join(lines))


def test_numbers_in_a_list_are_the_names_of_numbered_folders(tmp_path):
    numbered_imagenet(tmp_path, (1, 2, 10))
    listing = read_class_folders(Tree(tmp_path))
    assert {record.path.stem[-1]: record.labels[0] for record in listing.val} == {
        '0': '1', '1': '2', '2': '10'
    }  # fmt: skip


def test_numbers_in_a_list_that_are_not_folder_names_raise(tmp_path):
    numbered_imagenet(tmp_path, (0, 1, 2))
    with rejects('write the names of the folders'):
        read_class_folders(Tree(tmp_path))


@pytest.mark.parametrize('header', ['width,label,path', 'path,width,label', 'number,camera,path'])
def test_classes_of_flat_images_come_from_a_label_column(tmp_path, header):
    """GTSRB's tables begin with the width. Without a label column, no test image is read."""
    write_digits(tmp_path / 'train')
    (tmp_path / 'test').mkdir()
    for i in range(3):
        shutil.copy(tmp_path / f'train/digit {i}/000.png', tmp_path / f'test/{i}.png')
    train = {f'train/digit {i}/{j:03d}.png': i for i in range(3) for j in range(4)}
    test = {f'test/{i}.png': i for i in range(3)}
    for split, labels in (('train', train), ('test', test)):
        lines = [header]
        for path, label in labels.items():
            row = dict(path=path, width=8, number=1, camera=2, label=label)
            lines.append(','.join(str(row[key]) for key in header.split(',')))
        (tmp_path / f'{split}.csv').write_text('\n'.join(lines))
    tested = read_class_folders(Tree(tmp_path)).parts['test']
    wanted = [(f'{i}.png', f'digit {i}') for i in range(3)] if 'label' in header else []
    assert [(record.path.name, *record.labels) for record in tested] == wanted


@pytest.mark.parametrize('name', ['trainval.txt', 'train_val_list.txt', 'meta/train-val.lst'])
def test_joint_list_is_for_training_except_images_in_the_validation_list(tmp_path, name):
    write_digits(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    train, val, test = digits(0, 1), digits(2), digits(3)
    (tmp_path / name).write_text('\n'.join([*train, *val]))
    (tmp_path / 'test.txt').write_text('\n'.join(test))
    assert stems_by_split(tmp_path)['test'] == {'003'}
    (tmp_path / 'val.txt').write_text('\n'.join(val))  # Pascal VOC has both lists
    assert stems_by_split(tmp_path) == dict(train={'000', '001'}, val={'002'}, test={'003'})


def test_lists_of_several_divisions_raise(tmp_path):
    """DTD has ten divisions, and UCF101 three."""
    write_digits(tmp_path)
    number_in_list = dict(trainlist01=1, testlist01=2, trainlist02=2, testlist02=1)
    for name, number in number_in_list.items():
        lines = [f'{image}.png' for image in digits(number)]
        (tmp_path / f'{name}.txt').write_text('\n'.join(lines))
    with rejects(
        r"testlist02.txt' has '001.png' to test, but .*trainlist01.txt' has it to train on"
    ):
        read_class_folders(Tree(tmp_path))


def test_images_in_the_lists_of_two_splits_are_reported(tmp_path):
    write_digits(tmp_path)
    for split, images in (('train', digits(0, 1, 2)), ('val', digits(2, 3))):
        lines = [f'{image}.png' for image in images]
        (tmp_path / f'{split}.txt').write_text('\n'.join(lines))
    what = 'images in lists of two splits, assigned to the one furthest from training'
    listing = read_class_folders(Tree(tmp_path))
    assert (what, 3) in notes_of(listing)
    assert {image.path.stem for image in listing.val} == {'002', '003'}


@pytest.mark.parametrize(
    ('name', 'content'),
    [
        ('testlist.txt', 'run/seq0\nwalk/seq4'),
        ('testlist.txt', 'seq0/\nseq4/'),
        ('testlist.txt', 'seq0.avi 1\nseq4.avi 1'),  # UCF101
        ('testlist.json', '[{"video": "seq0"}, {"video": "seq4"}]'),
    ],
)
def test_lists_may_name_folders_of_frames(tmp_path, name, content):
    """All frames of a video are in one split, also if validation images are held out."""
    for class_name, numbers in (('run', range(4)), ('walk', range(4, 8))):
        for k in numbers:
            for i in range(5):
                distinct_image(tmp_path / f'frames/{class_name}/seq{k}/{i:03d}.png', k, i)
    (tmp_path / name).write_text(content)
    listing = read_class_folders(Tree(tmp_path))
    videos = {
        split: {image.path.parent.name for image in part} for split, part in listing.parts.items()
    }
    assert videos['test'] == {'seq0', 'seq4'}
    assert not videos['train'] & videos['val']
    assert len(listing.val) == 10  # a held-out sequence of each class, 5 frames each


@pytest.mark.parametrize('name', ['test.txt', 'test_patients.txt', 'lists/subjects_test.csv'])
def test_lists_may_have_prefixes_of_image_names(tmp_path, name):
    for class_name, numbers in (('run', range(3)), ('walk', range(3, 6))):
        for k in numbers:
            for i in range(3):
                distinct_image(tmp_path / f'{class_name}/v{k}_{i}.png', k, i)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('v0\nv3\n')
    assert stems_by_split(tmp_path)['test'] == {f'v{k}_{i}' for k in (0, 3) for i in range(3)}


def test_class_names_do_not_match_as_prefixes(tmp_path):
    for k, class_name in enumerate(('run', 'walk', 'jump')):
        for i in range(4):
            distinct_image(tmp_path / f'{class_name}/{class_name}_{i}.png', k, i)
    (tmp_path / 'testclasses.txt').write_text('run\nwalk\n')
    assert not stems_by_split(tmp_path)['test']


def test_table_may_state_the_split_of_folders(tmp_path):
    for k in range(6):
        for i in range(3):
            distinct_image(tmp_path / f'{("run", "walk")[k % 2]}/p{k}/{i}.png', k, i)
    rows = [f'p{k},{"test" if k < 2 else "train"}' for k in range(6)]
    (tmp_path / 'subjects.csv').write_text('\n'.join(['subject,split', *rows]))
    tested = read_class_folders(Tree(tmp_path)).parts['test']
    assert {image.path.parent.name for image in tested} == {'p0', 'p1'}


def test_class_names_do_not_match_as_folders_of_images(tmp_path):
    """Few-shot and zero-shot data sets list classes, such as AwA2 in testclasses.txt."""
    write_digits(tmp_path)
    (tmp_path / 'testclasses.txt').write_text('digit 0\n')
    assert not stems_by_split(tmp_path)['test']


# CelebA's code and the name of the split of the images 000 to 003 of each class.
SPLITS = [('0', 'train'), ('0', 'train'), ('1', 'val'), ('2', 'test')]


@pytest.mark.parametrize(
    ('name', 'header', 'row'),
    [
        ('list_eval_partition.txt', '', '{image} {code}'),  # CelebA
        ('list_eval_partition.csv', 'image_id,partition', '{image},{code}'),
        ('splits.txt', '', '{image} {split}'),
        ('list_eval_partition.txt', '12\nimage_name  evaluation_status', '{image}   {split}'),
    ],
)
def test_lines_may_state_the_split(tmp_path, name, header, row):
    write_digits(tmp_path)
    lines = header.splitlines()
    for path in sorted(tmp_path.rglob('*.png')):
        code, split = SPLITS[int(path.stem)]
        image = path.relative_to(tmp_path).as_posix()
        lines.append(row.format(image=image, code=code, split=split))
    (tmp_path / name).write_text('\n'.join(lines))
    assert stems_by_split(tmp_path) == dict(train={'000', '001'}, val={'002'}, test={'003'})


def test_list_matching_nothing_is_reported(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test.txt').write_text('n0001\nn0002\n')
    what = 'lists left out, since no line is an image or a folder of images'
    assert (what, 1) in notes_of(read_class_folders(Tree(tmp_path)))


@pytest.mark.parametrize('image', ['{i:04}.jpg', '{i:04}/a.jpg'])
def test_numbers_in_a_list_match_names_with_leading_zeros(tmp_path, image):
    Scene(tmp_path).images(*(image.format(i=i) for i in range(6)))
    (tmp_path / 'test.txt').write_text('1\n4\n')
    splits = read_lists(Tree(tmp_path), Findings()).splits
    assert {path.relative_to(tmp_path).as_posix(): split for path, split in splits.items()} == {
        image.format(i=1): 'test',
        image.format(i=4): 'test',
    }


def test_repeated_numbers_in_a_list_are_not_names(tmp_path):
    Scene(tmp_path).images(*(f'{i:04}.jpg' for i in range(6)))
    (tmp_path / 'val_labels.txt').write_text('1\n0\n1\n')
    assert not read_lists(Tree(tmp_path), Findings()).splits
