"""Lists of the images of a part beside folders of classes."""

import json
import shutil

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
    assert notes_of(found) == [
        ('images in lists of two splits, assigned to the one furthest from training', 3),
        ('images left out, since they have no label or list entry', 3),
    ]


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
    assert ('lines of test.txt left out, since their image is missing', 1) in rows


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
    with rejects("'1' of .*image 0.png in .*val.txt.*; .* or count them from 0"):
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


def parts_of(folder) -> dict[str, set[str]]:
    """The names of the images of each split."""
    found = read_class_folders(Tree(folder))
    return {split: {one.path.stem for one in part} for split, part in found.parts.items()}


@pytest.mark.parametrize('name', ['trainval.txt', 'train_val_list.txt', 'meta/train-val.lst'])
def test_images_to_train_on_and_to_validate_in_one_list_are_to_train_on(tmp_path, name):
    write_digits(tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    lines = {k: [f'digit {i}/{j:03d}' for i in range(3) for j in k] for k in [(0, 1), (2,), (3,)]}
    (tmp_path / name).write_text('\n'.join([*lines[0, 1], *lines[(2,)]]))
    (tmp_path / 'test.txt').write_text('\n'.join(lines[(3,)]))
    assert parts_of(tmp_path)['test'] == {'003'}
    (tmp_path / 'val.txt').write_text('\n'.join(lines[(2,)]))  # as VOC has all of them
    assert parts_of(tmp_path) == dict(train={'000', '001'}, val={'002'}, test={'003'})


def test_lists_of_several_divisions_are_a_question(tmp_path):
    """DTD has ten, and UCF101 three."""
    write_digits(tmp_path)
    for division in (1, 2):
        for split, number in (('train', 1 + division), ('test', 4 - division)):
            lines = [f'digit {i}/{number - 1:03d}.png' for i in range(3)]
            (tmp_path / f'{split}list0{division}.txt').write_text('\n'.join(lines))
    with rejects(
        r"testlist02.txt' has '001.png' to test, but .*trainlist01.txt' has it to train on"
    ):
        read_class_folders(Tree(tmp_path))


def test_a_name_in_the_lists_of_two_splits_is_named(tmp_path):
    write_digits(tmp_path)
    for split, numbers in (('train', (0, 1, 2)), ('val', (2, 3))):
        lines = [f'digit {i}/{j:03d}.png' for i in range(3) for j in numbers]
        (tmp_path / f'{split}.txt').write_text('\n'.join(lines))
    what = 'images in lists of two splits, assigned to the one furthest from training'
    found = read_class_folders(Tree(tmp_path))
    assert (what, 3) in notes_of(found)
    assert {one.path.stem for one in found.val} == {'002', '003'}


@pytest.mark.parametrize('line', ['{c}/seq{k}', 'seq{k}/', 'seq{k}.avi 1', '{{"video": "seq{k}"}}'])
def test_lists_may_name_the_folders_of_frames(tmp_path, line):
    """UCF101's are videos: all frames of one are in one split, also where a tenth is held out."""
    for c, numbers in (('run', range(4)), ('walk', range(4, 8))):
        for k in numbers:
            for i in range(5):
                path = tmp_path / f'frames/{c}/seq{k}/{i:03d}.png'
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.new('RGB', (8, 8), (30 * k, 20 * i, 0)).save(path)
    lines = [line.format(c=('run', 'walk')[k // 4], k=k) for k in (0, 4)]
    suffix = 'txt'
    if '{{' in line:
        lines, suffix = ['[' + ', '.join(lines) + ']'], 'json'
    (tmp_path / f'testlist.{suffix}').write_text('\n'.join(lines))
    found = read_class_folders(Tree(tmp_path))
    seen = {split: {one.path.parent.name for one in part} for split, part in found.parts.items()}
    assert seen['test'] == {'seq0', 'seq4'}
    assert not seen['train'] & seen['val']
    assert len(found.val) == 10


@pytest.mark.parametrize('name', ['test.txt', 'test_patients.txt', 'lists/subjects_test.csv'])
def test_lists_may_say_how_the_names_of_images_begin(tmp_path, name):
    for c, numbers in (('run', range(3)), ('walk', range(3, 6))):
        (tmp_path / c).mkdir()
        for k in numbers:
            for i in range(3):
                Image.new('RGB', (8, 8), (30 * k, 20 * i, 0)).save(tmp_path / f'{c}/v{k}_{i}.png')
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text('v0\nv3\n')
    assert parts_of(tmp_path)['test'] == {f'v{k}_{i}' for k in (0, 3) for i in range(3)}


def test_names_of_classes_are_no_beginnings_of_images(tmp_path):
    for kind in ('run', 'walk', 'jump'):
        (tmp_path / kind).mkdir()
        for i in range(4):
            path = tmp_path / f'{kind}/{kind}_{i}.png'
            Image.new('RGB', (8, 8), (30 * len(kind), 20 * i, ord(kind[0]))).save(path)
    (tmp_path / 'testclasses.txt').write_text('run\nwalk\n')
    assert not parts_of(tmp_path)['test']


def test_a_table_may_say_the_split_of_folders(tmp_path):
    for k in range(6):
        for i in range(3):
            path = tmp_path / f'{("run", "walk")[k % 2]}/p{k}/{i}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new('RGB', (8, 8), (30 * k, 20 * i, 0)).save(path)
    rows = [f'p{k},{"test" if k < 2 else "train"}' for k in range(6)]
    (tmp_path / 'subjects.csv').write_text('\n'.join(['subject,split', *rows]))
    tested = read_class_folders(Tree(tmp_path)).parts['test']
    assert {one.path.parent.name for one in tested} == {'p0', 'p1'}


def test_names_of_classes_in_a_list_say_no_split(tmp_path):
    """Few-shot and zero-shot sets: AwA2's testclasses.txt."""
    write_digits(tmp_path)
    (tmp_path / 'testclasses.txt').write_text('digit 0\n')
    assert not parts_of(tmp_path)['test']


@pytest.mark.parametrize(
    ('name', 'header', 'row'),
    [
        ('list_eval_partition.txt', '', '{}.png {}'),  # CelebA
        ('list_eval_partition.csv', 'image_id,partition', '{}.png,{}'),
        ('splits.txt', '', '{}.png {split}'),
        ('list_eval_partition.txt', '12\nimage_name  evaluation_status', '{}.png   {split}'),
    ],
)
def test_each_line_may_say_its_split(tmp_path, name, header, row):
    write_digits(tmp_path)
    images = sorted(tmp_path.rglob('*.png'))
    lines = [
        row.format(path.relative_to(tmp_path).with_suffix('').as_posix(), code, split=split)
        for path in images
        for code, split in [(('0', 'train'), ('0', 'train'), ('1', 'val'), ('2', 'test'))[
            int(path.stem)
        ]]
    ]  # fmt: skip
    (tmp_path / name).write_text('\n'.join([*header.splitlines(), *lines]))
    assert parts_of(tmp_path) == dict(train={'000', '001'}, val={'002'}, test={'003'})


def test_a_list_without_an_image_is_named(tmp_path):
    write_digits(tmp_path)
    (tmp_path / 'test.txt').write_text('n0001\nn0002\n')
    what = 'lists left out, since no line is an image or a folder of images'
    assert (what, 1) in notes_of(read_class_folders(Tree(tmp_path)))


@pytest.mark.parametrize('image', ['{i:04}.jpg', '{i:04}/a.jpg'])
def test_a_list_of_numbers_finds_names_with_other_zeros(tmp_path, image):
    Scene(tmp_path).images(*(image.format(i=i) for i in range(6)))
    (tmp_path / 'test.txt').write_text('1\n4\n')
    findings = Findings()
    found = read_lists(Tree(tmp_path), findings).splits
    assert {path.relative_to(tmp_path).as_posix() for path in found} == {
        image.format(i=i) for i in (1, 4)
    }
    assert {*found.values()} == {'test'}


def test_a_list_of_numbers_that_repeat_names_nothing(tmp_path):
    Scene(tmp_path).images(*(f'{i:04}.jpg' for i in range(6)))
    (tmp_path / 'val_labels.txt').write_text('1\n0\n1\n')
    assert not read_lists(Tree(tmp_path), Findings()).splits
