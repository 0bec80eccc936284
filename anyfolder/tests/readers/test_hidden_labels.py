"""Folders of patients or videos, and the classes of their images in a table beside them."""

import json
import shutil

import pytest
from listings import notes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.class_folders import read_class_folders
from anyfolder.readers.image_tree import Tree


def patients(folder, name: str = 'p{:02}') -> list[str]:
    """Six folders of three images, and the paths of these."""
    paths = [f'{name.format(i)}/{i}{j}.png' for i in range(6) for j in range(3)]
    for i, path in enumerate(paths):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(folder / path)
    return paths


def write_table(folder, header: str, rows) -> None:
    (folder / 'meta.csv').write_text('\n'.join([header, *rows]))


def read(folder):
    return read_class_folders(Tree(folder))


def test_columns_that_may_be_classes_where_folders_have_numbers_are_a_question(tmp_path):
    paths = patients(tmp_path)
    rows = [f'{path},{("benign", "malignant")[int(path[2]) % 2]},{40 + i}' for i, path in
            enumerate(paths)]  # fmt: skip
    write_table(tmp_path, 'file,diagnosis,age', rows)
    with rejects(r"'p00' and 'p01' have numbers for names, and .*meta.csv' may have .* diagnosis;"):
        read(tmp_path)


def test_one_class_of_several_numbered_folders_is_a_question(tmp_path):
    paths = patients(tmp_path)
    rows = [f'{path},{("benign", "malignant")[int(path[2]) % 2]}' for path in paths]
    write_table(tmp_path, 'file,label', rows)
    with rejects(r"meta.csv' has the class 'benign' for .*, which is in the folder 'p00'; if the"):
        read(tmp_path)
    # the remedy of this sentence
    (tmp_path / 'images').mkdir()
    for folder in tmp_path.glob('p*'):
        folder.rename(tmp_path / 'images' / folder.name)
    assert read(tmp_path).classes == ('benign', 'malignant')


@pytest.mark.parametrize('as_json', [True, False])
def test_a_row_may_be_of_all_images_in_a_folder(tmp_path, as_json):
    patients(tmp_path / 'images')
    labels = {f'p{i:02}': ('benign', 'malignant')[i % 2] for i in range(6)}
    if as_json:
        (tmp_path / 'labels.json').write_text(json.dumps(labels))
    else:
        write_table(tmp_path, 'patient,label', map(','.join, labels.items()))
    found = read(tmp_path)
    assert found.classes == ('benign', 'malignant')
    folders = [{one.path.parent.name for one in part} for part in (found.train, found.val)]
    assert (len(folders[0]), len(folders[1]), folders[0] & folders[1]) == (4, 2, set())


@pytest.mark.parametrize(
    ('header', 'row'),
    [
        ('file,kind', '{path},{wide}'),  # no column of classes, and the folders have names
        ('file,label', '{path},{wide}'),  # a wider class of several folders
        ('file,label', '{path},{folder}'),
        ('file,label', '{path},{number}'),  # another name of each
        ('file,width', '{path},8'),
    ],
)
def test_tables_that_agree_with_the_folders(tmp_path, header, row):
    names = ('cat', 'dog', 'fox', 'owl', 'ant', 'bee')
    paths = patients(tmp_path, '{}')
    for i, name in enumerate(names):
        (tmp_path / str(i)).rename(tmp_path / name)
    rows = [
        row.format(
            path=names[int(path[0])] + path[1:],
            folder=names[int(path[0])],
            wide=('animal', 'insect')[int(path[0]) > 3],
            number=int(path[0]) + 5,
        )
        for path in paths
    ]
    write_table(tmp_path, header, rows)
    found = read(tmp_path)
    assert found.classes == tuple(sorted(names))
    agree = 'tables left out, since they agree with the folders of classes, maybe renamed'
    assert notes_of(found) == [(agree if 'label' in header else 'files left out, .csv', 1)]


@pytest.mark.parametrize('title', ['ClassId', 'shown'])
def test_numbers_of_folders_in_a_column_agree(tmp_path, title):
    """GTSRB."""
    paths = patients(tmp_path, '{:05}')
    write_table(tmp_path, f'width,{title},file', [f'8,{int(path[:5])},{path}' for path in paths])
    assert len(read(tmp_path).classes) == 6


def test_a_table_that_gives_the_folders_names_agrees(tmp_path):
    patients(tmp_path, 'n{:04}')
    write_table(tmp_path, 'id,name', [f'n{i:04},kind {i}' for i in range(6)])
    assert len(read(tmp_path).classes) == 6


@pytest.mark.parametrize(
    ('header', 'words'), [('', True), ('file,kind', True), ('file,age', False)]
)
def test_words_in_the_only_column_are_classes_whatever_its_title(tmp_path, header, words):
    paths = patients(tmp_path, '{}')
    for i, name in enumerate(('alpha', 'beta', 'gamma', 'delta', 'eta', 'theta')):
        (tmp_path / f'{i}').rename(tmp_path / name)
        paths = [path.replace(f'{i}/', f'{name}/') for path in paths]
    values = ('cat', 'dog') if words else ('40', '50')
    rows = [f'{path},{values[i % 2]}' for i, path in enumerate(paths)]
    write_table(tmp_path, header or rows[0], rows[not header :])
    if words:
        with rejects(r"meta.csv' has the class .* which is in the folder 'alpha'"):
            read(tmp_path)
    else:
        assert len(read(tmp_path).classes) == 6


def test_a_table_that_exchanges_the_folders_is_a_question(tmp_path):
    for i in range(10):
        path = tmp_path / ('cat', 'dog')[i % 2] / f'{i}.png'
        path.parent.mkdir(exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(path)
    write_table(tmp_path, 'file,label', [f'{i}.png,{("dog", "cat")[i % 2]}' for i in range(10)])
    with rejects(r"meta.csv' has the class 'dog' for .*cat.*, which is in the folder 'cat'"):
        read(tmp_path)
    write_table(tmp_path, 'file,label', [f'{i}.png,{("dog", "cat")[i % 2]}' for i in range(4)])
    notes = notes_of(read(tmp_path))
    assert any('tables left out, since their classes are not the' in what for what, _ in notes)
    assert not any(what.startswith('files left out') for what, _ in notes)


def test_frames_of_one_name_are_told_apart_by_a_column_of_folders(tmp_path):
    rows = []
    for video in 'abcd':
        for i in range(3):
            path = tmp_path / f'frames/{video}/{i}.png'
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new('RGB', (8, 8), (50 * i, ord(video), 0)).save(path)
            rows.append(f'{video},{i}.png,{("run", "walk")[(i + (video > "b")) % 2]}')
    write_table(tmp_path, 'video,frame,label', rows)
    found = read(tmp_path)
    assert found.classes == ('run', 'walk')
    labels = {(one.path.parent.name, one.path.stem): one.labels for one in found.train + found.val}
    assert labels['a', '0'] == labels['c', '1'] == ('run',)
    videos = [{one.path.parent.name for one in part} for part in (found.train, found.val)]
    assert not videos[0] & videos[1]
    what = 'folders that are not classes, since tables have other classes for their images'
    assert (what, 4) in notes_of(found)
    for video in 'abcd':
        shutil.move(tmp_path / 'frames' / video, tmp_path / video)
    (tmp_path / 'frames').rmdir()
    with rejects(r"meta.csv' has the class '\w*' for .*, which is in the folder '\w'"):
        read(tmp_path)


def test_inaturalist(tmp_path):
    """Its folders are of kingdoms; the classes stand in JSON."""
    paths = [f'train_val2018/{("Aves", "Fungi")[i % 2]}/{i % 4}/{i}.png' for i in range(12)]
    for i, path in enumerate(paths):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(tmp_path / path)
    for split, numbers in (('train', range(8)), ('val', range(8, 12))):
        content = dict(
            images=[dict(id=i, file_name=paths[i], width=8, height=8) for i in numbers],
            annotations=[dict(id=i, image_id=i, category_id=i % 4) for i in numbers],
            categories=[dict(id=k, name=f'species {k}') for k in range(4)],
        )
        (tmp_path / f'{split}2018.json').write_text(json.dumps(content))
    found = read(tmp_path)
    assert found.classes == tuple(f'species {k}' for k in range(4))
    assert [len(part) for part in found.parts.values()] == [8, 4, 0]


def test_a_table_without_classes_beside_one_that_has_them_is_named(tmp_path):
    """ISIC 2019's metadata and ground truth."""
    for i in range(12):
        (tmp_path / 'images').mkdir(exist_ok=True)
        Image.new('RGB', (8, 8), (10 * i, 0, 0)).save(tmp_path / f'images/{i:03}.png')
    rows = [f'{i:03},{float(i % 2)},{float(1 - i % 2)}' for i in range(12)]
    (tmp_path / 'GroundTruth.csv').write_text('\n'.join(['image,MEL,NV', *rows]))
    for header, row in (('age,sex', '{},male'), ('age', '{}')):
        rows = [f'{i:03},{row.format(40 + i)}' for i in range(12)]
        write_table(tmp_path, f'image,{header}', rows)
        found = read(tmp_path)
        assert found.classes == ('MEL', 'NV')
        what = 'tables left out, since they have no class column and another one has'
        assert (what, 1) in notes_of(found)
        assert not any(words.startswith('files left out') for words, _ in notes_of(found))
    (tmp_path / 'GroundTruth.csv').unlink()
    with rejects(r"column 'age' of .*meta.csv' has"):
        read(tmp_path)


def test_a_table_that_contradicts_the_folder_of_one_image_does_not_agree(tmp_path):
    patients(tmp_path, '{}')
    for i, name in enumerate(('cat', 'dog', 'fox', 'owl', 'ant', 'bee')):
        (tmp_path / str(i)).rename(tmp_path / name)
    write_table(tmp_path, 'file,label', ['cat/01.png,dog'])
    [(what, count)] = notes_of(read(tmp_path))
    assert what.startswith('tables left out, since their classes are not the folders')
    assert count == 1


@pytest.mark.parametrize(
    ('row', 'count'),
    [
        ('{path},1,2,5,7,{other}', 3),  # of few images
        ('{path},1,2,5,7,{folder}', 18),  # boxes of the classes that the folders are
        ('{path},1,2,5', 18),
        ('{path},0.1,0.2,0.6,0.1,{other}', 18),  # a box would exceed its image
        ('{path},1,2,50,70,{other}', 18),
    ],
)
def test_folders_are_classes_beside_numbers_that_are_no_boxes_of_others(tmp_path, row, count):
    names = ('cat', 'dog', 'fox', 'owl', 'ant', 'bee')
    paths = patients(tmp_path, '{}')
    for i, name in enumerate(names):
        (tmp_path / str(i)).rename(tmp_path / name)
    rows = [
        row.format(
            path=names[int(path[0])] + path[1:], folder=names[int(path[0])], other='ab'[i % 2]
        )
        for i, path in enumerate(paths[:count])
    ]
    (tmp_path / 'boxes.csv').write_text('\n'.join(rows))
    assert read(tmp_path).classes == tuple(sorted(names))


@pytest.mark.parametrize('header', ['', 'file,x1,y1,x2,y2,class\n'])
def test_a_table_of_boxes_beside_folders_is_a_question(tmp_path, header):
    paths = patients(tmp_path)
    rows = [f'{path},1,2,5,7,{"ab"[i % 2]}' for i, path in enumerate(paths)]
    (tmp_path / 'boxes.csv').write_text(header + '\n'.join(rows))
    with rejects(r"boxes.csv' may have boxes of the images, as in 'p05/52.png, 1, 2, 5, 7, b'"):
        read(tmp_path)
