"""The files of a folder: what is data, and which split it is of."""

import shutil

import numpy as np
import pytest
from box_scenes import WANTED
from foreign_data import cvat_coco, cvat_voc, labelimg_yolo, labelme, save, write
from image_folders import scenes
from listings import boxes_of, notes_of
from PIL import Image
from rejection import rejects

from anyfolder.readers.box_folders import read_annotated_folder
from anyfolder.readers.image_tree import Tree


def read(folder, **options):
    return read_annotated_folder(Tree(folder), **options)


@pytest.mark.parametrize(
    'leave',
    [
        lambda folder: write(folder, 'runs/detect/predict/labels/0.txt', '0 0.5 0.5 0.1 0.1'),
        lambda folder: write(folder, 'exp/args.yaml', 'data: x'),
        lambda folder: shutil.copytree(folder / 'images', folder / 'runs/train/exp'),
        lambda folder: shutil.copytree(folder / 'images', folder / 'wandb/media'),
        lambda folder: write(folder, 'mine/data_report.json', '{"images": [], "annotations": []}'),
    ],
)
def test_what_trainings_leave_is_no_data_and_named(tmp_path, leave):
    labelimg_yolo(tmp_path)
    leave(tmp_path)
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert notes_of(found) == [('folders of trainings left out', 1)]


@pytest.mark.parametrize('write_scene', [labelimg_yolo, cvat_coco, labelme, cvat_voc])
def test_arrays_beside_images_are_caches(tmp_path, write_scene):
    """ultralytics#17372."""
    write_scene(tmp_path)
    for path in [*tmp_path.rglob('*.jpg'), *tmp_path.rglob('*.png')]:
        np.save(path.with_suffix('.npy'), np.asarray(Image.open(path)))
    found = read(tmp_path)
    assert boxes_of(found) == WANTED
    assert ('files left out, .npy', 10) in notes_of(found)


@pytest.mark.parametrize('parts', [('train', 'val'), ('images/train', 'images/valid')])
def test_splits_that_are_one_folder_by_a_link_are_a_question(tmp_path, parts):
    """ultralytics#5036."""
    save(tmp_path, 'all/0.jpg', scenes(1)[0][0])
    for part in parts:
        (tmp_path / 'data' / part).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'data' / part).symlink_to(tmp_path / 'all')
    with rejects(f'{parts[1]}.* and .*{parts[0]}.* are the same folder by a'):
        Tree(tmp_path / 'data')


def test_splits_that_are_links_to_a_folder_beside_them(tmp_path):
    save(tmp_path, 'all/0.jpg', scenes(1)[0][0])
    (tmp_path / 'train').symlink_to('all')
    with rejects('train.* and .*all.* are the same folder by a link'):
        Tree(tmp_path)
