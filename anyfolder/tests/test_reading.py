"""anyfolder.read: the task and format of a folder, and its images, labels and notes."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from foreign_data import BOXES, CLASSES, MASKS, labelme
from image_folders import scenes, write_depth, write_digits, write_masks, write_panoptic
from rejection import rejects

import anyfolder
from anyfolder.wording import as_flag, using_words


@pytest.mark.parametrize('write', BOXES, ids=lambda write: write.__name__)
def test_boxes_are_those_of_the_scenes(tmp_path, write):
    write(tmp_path)
    data = anyfolder.read(tmp_path)
    has_polygons = write == labelme or write.__name__.endswith('coco')
    assert data.task == ('instance' if has_polygons else 'detection')
    assert (data.format, data.classes) == (BOXES[write][0], CLASSES)
    wanted = {
        tuple(
            sorted(
                (name, (left, top, right - left, bottom - top))
                for name, (left, top, right, bottom) in boxes
            )
        )
        for _, boxes in scenes(10)
    }
    boxes_of_images = {
        tuple(sorted((found.label, tuple(map(round, found.box))) for found in image.objects))
        for _, image in data.images()
    }
    assert boxes_of_images == wanted
    assert all(image.size == (64, 48) for _, image in data.images())


@pytest.mark.parametrize('write', MASKS, ids=lambda write: write.__name__)
def test_class_maps_hold_class_numbers(tmp_path, write):
    write(tmp_path)
    data = anyfolder.read(tmp_path, 'segmentation')
    assert tuple(map(len, data.splits.values())) == MASKS[write]
    image = data.splits['val'][0]
    class_map = data.class_map(image)
    assert (class_map.shape, class_map.dtype) == ((48, 64), np.uint8)
    assert {*np.unique(class_map).tolist()} == {0, 1, 2}
    assert data.classes[class_map[42, 40]] == 'bar'


@pytest.mark.parametrize(
    ('write', 'task'),
    [
        (write_digits, 'classification'),
        (write_masks, 'segmentation'),
        (write_panoptic, 'panoptic'),
        (write_depth, 'depth'),
        (labelme, 'instance'),
    ],
)
def test_task_is_inferred_from_the_folder(tmp_path, write, task):
    write(tmp_path)
    assert anyfolder.read(tmp_path).task == task


def test_segments_and_depth_maps_are_read(tmp_path):
    panoptic = anyfolder.read(write_panoptic(tmp_path / 'panoptic'))
    image = panoptic.splits['train'][0]
    segments = panoptic.segments(image)
    assert {found.segment for found in image.objects} == {*np.unique(segments).tolist()} - {0}
    assert (panoptic.classes, panoptic.stuff) == (('square', 'bar', 'floor'), 1)
    depth = anyfolder.read(write_depth(tmp_path / 'depth'))
    meters = depth.depth(depth.splits['train'][0])
    assert (meters[:4] == 0).all()
    assert meters.max() == pytest.approx(3.15)
    assert meters.dtype == np.float32


def test_polygons_become_masks(tmp_path):
    labelme(tmp_path)
    data = anyfolder.read(tmp_path)
    image = data.splits['train'][0]
    for found in image.objects:
        left, top, width, height = map(round, found.box)
        mask = anyfolder.object_mask(found, image.size)
        assert mask.shape == (48, 64)
        assert mask[top + 1 : top + height, left + 1 : left + width].all()
    assert image.pixels().shape == (48, 64, 3)


def test_classes_have_numbers_and_notes_have_examples(tmp_path):
    (write_digits(tmp_path) / 'notes.md').write_text('-')
    data = anyfolder.read(tmp_path)
    assert data.classes == ('digit 0', 'digit 1', 'digit 2')
    image = data.splits['train'][0]
    assert data.number_of(image.labels[0]) == int(image.path.parent.name[-1])
    assert data.name_of(image) == f'{image.path.parent.name}/{image.path.name}'
    assert [(note.what, note.count, note.examples) for note in data.notes] == [
        ('files left out, .md', 1, ['notes.md'])
    ]
    assert data.held_out


def test_errors_name_the_folder_and_the_arguments(tmp_path):
    with rejects('^there is no folder .*none'):
        anyfolder.read(tmp_path / 'none')
    with rejects("^task='speech' is not one of classification, detection"):
        anyfolder.read(tmp_path, 'speech')
    write_depth(tmp_path)
    for task in ('depth', None):
        with rejects('depth_scale=0 is not a number above 0; give the meters per unit'):
            anyfolder.read(tmp_path, task, depth_scale=0)
    for file in (tmp_path / 'depth').iterdir():
        file.write_bytes(b'')
    with rejects('depth maps cannot be read .*leave them out by skip_invalid=True') as error:
        anyfolder.read(tmp_path, 'depth')
    assert str(tmp_path) in str(error.value)


def test_importing_the_package_does_not_import_numpy():
    done = subprocess.run(
        [sys.executable, '-c', "import anyfolder, sys; print('numpy' in sys.modules)"],
        env={'PATH': '', 'PYTHONPATH': str(Path(anyfolder.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == 'False\n'
    assert {*anyfolder.__all__} <= {*dir(anyfolder)}
    assert all(getattr(anyfolder, name) is not None for name in anyfolder.__all__)
    with pytest.raises(AttributeError, match="module 'anyfolder' has no attribute 'red'"):
        anyfolder.red  # noqa: B018


def test_depth_scale_of_another_task_raises(tmp_path):
    write_digits(tmp_path)
    with rejects("depth_scale=1.0 is only for depth, .* task='classification'; leave it out, or"):
        anyfolder.read(tmp_path, depth_scale=1.0)
    # 1.0 equals True, which is a flag without a value.
    with rejects('--depth-scale 1.0 is only for depth'), using_words(as_flag):
        anyfolder.read(tmp_path, depth_scale=1.0)


def test_folder_without_permission_raises_one_sentence(tmp_path, monkeypatch):
    def deny(*args):
        raise PermissionError(13, 'Permission denied', f'{tmp_path}/secret')

    monkeypatch.setattr('anyfolder.reading.Tree', deny)
    with rejects(r"secret' cannot be read \(Permission denied\); make it readable, or remove it"):
        anyfolder.read(tmp_path)
