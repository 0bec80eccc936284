"""Data that is written in another format reads back the same."""

import json
import shutil
from dataclasses import replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from foreign_data import BOXES, CLASSES, MASKS, cvat_coco, labelme, roboflow_coco
from hypothesis import given, settings
from hypothesis import strategies as st
from image_folders import scenes, write_coco, write_depth, write_digits, write_panoptic
from PIL import Image
from rejection import rejects

import anyfolder
from anyfolder.writers.conversion import plan_conversion
from anyfolder.writers.placed_images import placed_images
from anyfolder.writers.same_data import difference


def write_several_labels(folder: Path) -> None:
    """A table with a column for each of two classes, and an image without a class."""
    rows = ['file,cat,big dog,split']
    for i in range(8):
        (folder / 'photos').mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8, 8, 3), 20 * i, np.uint8)).save(folder / f'photos/{i}.png')
        rows.append(f'{i}.png,{i % 2},{int(i > 3)},{"train" if i < 6 else "val"}')
    (folder / 'labels.csv').write_text('\n'.join(rows))


def write_odd_names(folder: Path) -> None:
    """The same file names in each class folder, and names that lists cannot hold unquoted."""
    for number, name in enumerate(('été', 'a, b', 'x y')):
        for i, file in enumerate(('1.png', 'classes.png', ' #2, "3".png', '\u732b.png')):
            (folder / name).mkdir(parents=True, exist_ok=True)
            pixels = np.full((8, 8, 3), 60 * number + 9 * i, np.uint8)
            Image.fromarray(pixels).save(folder / name / file)


def state_of(folder: Path) -> list:
    """All paths in a folder, with the times at which they were changed."""
    return sorted((path, path.stat().st_mtime_ns) for path in folder.rglob('*'))


# The writer of a scene, the task that it is read for, and the format that it is converted to.
CONVERSIONS = [
    *((write, 'detection', to) for write in BOXES for to in ('coco', 'yolo', 'voc', 'csv')),
    *((write, 'instance', to) for write in (labelme, cvat_coco) for to in ('coco', 'yolo')),
    *((write, 'segmentation', 'masks') for write in MASKS),
    *((write_digits, 'classification', to) for to in ('folders', 'csv')),
    *((write_odd_names, 'classification', to) for to in ('folders', 'csv')),
    (write_several_labels, 'classification', 'csv'),
    (write_panoptic, 'panoptic', 'coco'),
    (write_depth, 'depth', 'masks'),
]


@pytest.mark.parametrize(
    ('write', 'task', 'to'), CONVERSIONS, ids=lambda value: getattr(value, '__name__', value)
)
def test_written_data_reads_back_the_same(tmp_path, write, task, to):
    write(tmp_path / 'in')
    before = state_of(tmp_path / 'in')
    data = anyfolder.read(tmp_path / 'in', task)
    anyfolder.convert(data, tmp_path / 'out', to)
    again = anyfolder.read(tmp_path / 'out', task)
    assert difference(data, [*placed_images(data)], again) == ''
    assert not again.held_out
    sizes, sizes_again = ([*map(len, dataset.splits.values())] for dataset in (data, again))
    assert sizes == sizes_again
    if to in ('coco', 'yolo', 'masks', 'folders'):  # the others do not keep the order
        assert again.classes == data.classes
    assert state_of(tmp_path / 'in') == before
    assert {path.name for path in tmp_path.iterdir()} == {'in', 'out'}


def test_converted_boxes_are_those_of_the_scenes(tmp_path):
    """They are compared without the library's own comparison."""
    roboflow_coco(tmp_path / 'in')
    for to in ('yolo', 'voc', 'csv', 'coco'):
        again = anyfolder.convert(tmp_path / 'in', tmp_path / to, to, 'detection')
        converted = [
            sorted((found.label, *map(round, found.box)) for found in image.objects)
            for image in chain(*again.splits.values())
        ]
        wanted = [
            sorted(
                (name, left, top, right - left, bottom - top)
                for name, (left, top, right, bottom) in boxes
            )
            for _, boxes in scenes(10)
        ]
        assert sorted(converted) == sorted(wanted), to
        assert again.classes == CLASSES


CORNER = st.floats(0, 40, width=32)
BOX = st.tuples(CORNER, CORNER, st.floats(1, 20), st.floats(1, 8))  # within 64 x 48 pixels
NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=0x4E2D), min_size=1, max_size=6)


def data_with(folder: Path, boxes: list, name: str) -> anyfolder.Dataset:
    """Four images, each with these boxes of one class, and with one box of another class."""
    (folder / 'in').mkdir()
    images, objects = [], []
    for i in range(4):
        Image.fromarray(np.full((48, 64, 3), 50 * i, np.uint8)).save(folder / f'in/{i}.png')
        images.append(dict(id=i, file_name=f'{i}.png', width=64, height=48))
        for number, box in (*((1, box) for box in boxes), (2, (3, 4, 50, 40))):
            objects.append(dict(id=len(objects), image_id=i, category_id=number, bbox=box))
    categories = [dict(id=1, name=name), dict(id=2, name='other')]
    content = dict(images=images, annotations=objects, categories=categories)
    (folder / 'in/a.json').write_text(json.dumps(content))
    return anyfolder.read(folder / 'in', 'detection')


def test_boxes_whose_order_changes_by_rounding_are_the_same(tmp_path):
    """In YOLO the first has its top at 10.0499998: rounded to 10.0, as the other, and narrower."""
    data = data_with(tmp_path, [(5, 10.05, 10, 8), (5, 10, 20, 8)], 'thing')
    again = anyfolder.convert(data, tmp_path / 'out', 'yolo')
    assert sum(len(image.objects) for _, image in again.images()) == 4 * 3


@pytest.mark.nightly
@settings(max_examples=25)
@given(st.lists(BOX, min_size=1, max_size=5), st.sampled_from(['coco', 'yolo', 'voc', 'csv']))
def test_any_boxes_read_back_the_same(tmp_path_factory, boxes, to):
    folder = tmp_path_factory.mktemp('made')
    data = data_with(folder, boxes, 'thing')
    again = anyfolder.convert(data, folder / 'out', to)
    converted, wanted = (
        sorted(found.box for _, image in dataset.images() for found in image.objects)
        for dataset in (again, data)
    )
    assert np.shape(converted) == np.shape(wanted)
    assert np.allclose(converted, wanted, rtol=0, atol=0.05)  # pixels


@pytest.mark.nightly
@settings(max_examples=40)
@given(NAMES, st.sampled_from(['coco', 'yolo', 'voc', 'csv']))
def test_any_class_name_reads_back_the_same_or_raises(tmp_path_factory, name, to):
    folder = tmp_path_factory.mktemp('made')
    try:
        data = data_with(folder, [(1, 2, 30, 20)], name)
        again = anyfolder.convert(data, folder / 'out', to)
    except anyfolder.InputError:
        assert not name.isalpha()
        assert {path.name for path in folder.iterdir()} == {'in'}
    else:
        assert {*again.classes} == {*data.classes}


def write_crowds(folder: Path) -> Path:
    """COCO with a crowd of squares, and a region of the class ``ignored``."""
    write_coco(folder, polygons=True)
    file = folder / 'annotations/instances_train2017.json'
    content = json.loads(file.read_text())
    content['annotations'][0]['iscrowd'] = 1
    content['categories'].append(dict(id=9, name='ignored'))
    content['annotations'][3]['category_id'] = 9
    file.write_text(json.dumps(content))
    return folder


def test_yolo_raises_on_crowds_before_anything_is_written(tmp_path):
    data = anyfolder.read(write_crowds(tmp_path / 'in'), 'detection')
    with rejects(
        'YOLO cannot hold 2 objects marked as crowd or to be ignored; give another to, or'
    ):
        anyfolder.convert(data, tmp_path / 'out', 'yolo')
    assert not (tmp_path / 'out').exists()
    again = anyfolder.convert(data, tmp_path / 'out', 'yolo', lossy=True)
    assert sum(len(image.objects) for _, image in again.images()) == 20 - 2


def test_class_that_only_remains_to_validate_is_left_out(tmp_path):
    """YOLO cannot hold its training objects, which have two polygons each."""
    write_coco(tmp_path / 'in', polygons=True)
    write_coco(tmp_path / 'in', 2, 'instances_val2017', polygons=True)
    for image in (tmp_path / 'in/val2017').iterdir():
        image.rename(image.with_name(f'val_{image.name}'))
    val_file = tmp_path / 'in/annotations/instances_val2017.json'
    val_file.write_text(val_file.read_text().replace('"file_name": "', '"file_name": "val_'))
    file = tmp_path / 'in/annotations/instances_train2017.json'
    content = json.loads(file.read_text())
    for annotation in content['annotations']:
        if annotation['category_id'] == 7:  # bar
            parts = [30, 40, 44, 40, 44, 44, 30, 44], [46, 40, 60, 40, 60, 44, 46, 44]
            annotation['segmentation'] = [*parts]
    file.write_text(json.dumps(content))
    data = anyfolder.read(tmp_path / 'in', 'instance')
    plan = plan_conversion(data, tmp_path / 'out', 'yolo', lossy=True)
    assert plan.sentences[1].startswith('2 objects to validate or test left out, too: none of')
    again = plan.write()
    assert again.classes == ('square',)
    assert sum(len(image.objects) for _, image in again.images()) == 10 + 2


@pytest.mark.parametrize('to', ['coco', 'voc', 'csv'])
def test_crowds_and_ignored_regions_stay(tmp_path, to):
    data = anyfolder.read(write_crowds(tmp_path / 'in'), 'detection')
    again = anyfolder.convert(data, tmp_path / 'out', to)
    for dataset in (data, again):
        objects = chain(*(image.objects for _, image in dataset.images()))
        assert sorted(found.label for found in objects if found.crowd) == ['', 'square']


def test_targets_without_labels_for_the_task_raise(tmp_path):
    write_coco(tmp_path / 'in', polygons=True)
    data = anyfolder.read(tmp_path / 'in')
    with rejects("Pascal VOC has no labels for instance, .*; give task='detection', or another to"):
        anyfolder.convert(data, tmp_path / 'out', 'voc')
    with rejects('folders of classes has no labels for instance, only for classification'):
        anyfolder.convert(data, tmp_path / 'out', 'folders')
    with rejects("to='tfrecord' is not one of coco, yolo, voc, folders, masks, csv"):
        anyfolder.convert(data, tmp_path / 'out', 'tfrecord')


def test_options_for_reading_raise_for_a_dataset(tmp_path):
    write_coco(tmp_path / 'in', polygons=True)
    data = anyfolder.read(tmp_path / 'in', 'instance')
    with rejects('the dataset was read already; give task and skip_invalid to anyfolder.read'):
        anyfolder.convert(data, tmp_path / 'out', 'voc', 'detection', skip_invalid=True)
    anyfolder.convert(data, tmp_path / 'out', 'coco', 'instance')


def test_folders_raise_on_several_classes_of_an_image(tmp_path):
    write_several_labels(tmp_path / 'in')
    with rejects('folders of classes cannot hold this data: an image can have several classes'):
        anyfolder.convert(tmp_path / 'in', tmp_path / 'out', 'folders')


def test_folders_raise_on_class_names_with_a_slash(tmp_path):
    write_digits(tmp_path / 'in', classes=2)
    rows = [f'{i:03d}.png,{"a/b" if i % 2 else "c"}' for i in range(4)]
    for folder in ('digit 0', 'digit 1'):
        for file in sorted((tmp_path / 'in' / folder).iterdir()):
            file.rename(tmp_path / 'in' / file.name)
        (tmp_path / 'in' / folder).rmdir()
    (tmp_path / 'in/labels.csv').write_text('\n'.join(['file,label', *rows]))
    data = anyfolder.read(tmp_path / 'in')
    with rejects("the class 'a/b' cannot be the name of a folder; give another to"):
        anyfolder.convert(data, tmp_path / 'out', 'folders')
    anyfolder.convert(data, tmp_path / 'out', 'csv')


def test_nothing_is_written_if_it_reads_back_differently(tmp_path, monkeypatch):
    write_digits(tmp_path / 'in')
    data = anyfolder.read(tmp_path / 'in')
    target = anyfolder.TARGETS['folders']
    swap = {'digit 0': 'digit 1', 'digit 1': 'digit 0'}

    def write_swapped(data, placed_images, out, copy):
        images = []
        for placed in placed_images:
            [name] = placed.image.labels
            swapped = replace(placed.image, labels=(swap.get(name, name),))
            images.append(placed._replace(image=swapped))
        target.write(data, images, out, copy)

    monkeypatch.setitem(anyfolder.TARGETS, 'folders', target._replace(write=write_swapped))
    with rejects(r"reading it back gives other data \('000.png' has other classes\); nothing was"):
        anyfolder.convert(data, tmp_path / 'out', 'folders')
    assert [path.name for path in tmp_path.iterdir()] == ['in']


def test_images_are_links_or_copies(tmp_path):
    write_digits(tmp_path / 'in')
    linked = anyfolder.convert(tmp_path / 'in', tmp_path / 'linked', 'folders')
    copied = anyfolder.convert(tmp_path / 'in', tmp_path / 'copied', 'folders', copy=True)
    assert all(image.path.is_symlink() for _, image in linked.images())
    assert not any(image.path.is_symlink() for _, image in copied.images())


def test_nothing_is_written_into_the_folder_that_is_read(tmp_path):
    write_digits(tmp_path / 'in')
    write_digits(tmp_path / 'elsewhere', classes=2)
    (tmp_path / 'in/digit 8').symlink_to(tmp_path / 'elsewhere/digit 0')
    (tmp_path / 'link').symlink_to(tmp_path / 'in')
    for out in ('in', 'in/out', 'link/out', 'elsewhere/digit 0/out', 'in/../link/a/b'):
        before = sorted(tmp_path.rglob('*'))
        with rejects('is read; give a path outside of it|already exists'):
            anyfolder.convert(tmp_path / 'in', tmp_path / out, 'csv')
        assert sorted(tmp_path.rglob('*')) == before
    anyfolder.convert(tmp_path / 'in', tmp_path / 'elsewhere/out', 'csv')


def test_links_to_themselves_hide_no_other_link(tmp_path):
    write_digits(tmp_path / 'in')
    write_digits(tmp_path / 'elsewhere', classes=2)
    for i in range(20):  # entries have any order
        (tmp_path / f'in/loop{i}').symlink_to(f'loop{i}')
    (tmp_path / 'in/digit 8').symlink_to(tmp_path / 'elsewhere/digit 0')
    with rejects('is read; give a path outside of it'):
        anyfolder.convert(tmp_path / 'in', tmp_path / 'elsewhere/digit 0/out', 'csv')


def test_existing_folder_is_kept_unless_empty(tmp_path):
    write_digits(tmp_path / 'in')
    (tmp_path / 'out').mkdir()
    (tmp_path / 'out/mine').write_text('-')
    with rejects("out' already exists; give a new folder"):
        anyfolder.convert(tmp_path / 'in', tmp_path / 'out', 'folders')
    (tmp_path / 'out/mine').unlink()
    (tmp_path / 'link').symlink_to(tmp_path / 'out')
    anyfolder.convert(tmp_path / 'in', tmp_path / 'link', 'folders')
    assert (tmp_path / 'link').is_symlink()
    assert any((tmp_path / 'out').iterdir())
    shutil.rmtree(tmp_path / 'out')
    (tmp_path / 'out').mkdir()
    anyfolder.convert(tmp_path / 'in', tmp_path / 'out', 'folders')


def test_failed_conversion_leaves_no_files(tmp_path, monkeypatch):
    write_digits(tmp_path / 'in')

    def fail(source, target, copy):
        if 'digit 2' in str(target):
            raise OSError(28, 'No space left on device')
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b'')

    monkeypatch.setattr('anyfolder.writers.write_classes.place_file', fail)
    with rejects(r"out' cannot be written \(No space left on device\)"):
        anyfolder.convert(tmp_path / 'in', tmp_path / 'a/b/out', 'folders')
    assert [path.name for path in tmp_path.iterdir()] == ['in']


def test_folder_with_a_semicolon_is_named_in_full(tmp_path, monkeypatch):
    write_digits(tmp_path / 'in')
    target = anyfolder.TARGETS['folders']
    write = target._replace(write=lambda data, placed, out, copy: None)
    monkeypatch.setitem(anyfolder.TARGETS, 'folders', write)
    with rejects(r'other data \(.*a; b.*\); nothing was written'):
        anyfolder.convert(tmp_path / 'in', tmp_path / 'a; b', 'folders')
