"""The files of a folder: which are data, and of which split."""

import shutil

import numpy as np
import pytest
from box_scenes import EXPECTED_BOXES
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
    'write_output',
    [
        lambda folder: write(folder, 'runs/detect/predict/labels/0.txt', '0 0.5 0.5 0.1 0.1'),
        lambda folder: write(folder, 'exp/args.yaml', 'data: x'),
        lambda folder: shutil.copytree(folder / 'images', folder / 'runs/train/exp'),
        lambda folder: shutil.copytree(folder / 'images', folder / 'wandb/media'),
        lambda folder: write(folder, 'mine/data_report.json', '{"images": [], "annotations": []}'),
    ],
)
def test_output_of_trainings_is_left_out_and_reported(tmp_path, write_output):
    labelimg_yolo(tmp_path)
    write_output(tmp_path)
    listing = read(tmp_path)
    assert boxes_of(listing) == EXPECTED_BOXES
    assert notes_of(listing) == [('folders of trainings left out', 1)]


@pytest.mark.parametrize('write_scene', [labelimg_yolo, cvat_coco, labelme, cvat_voc])
def test_arrays_next_to_images_are_left_out(tmp_path, write_scene):
    """They are caches: ultralytics#17372."""
    write_scene(tmp_path)
    for path in [*tmp_path.rglob('*.jpg'), *tmp_path.rglob('*.png')]:
        np.save(path.with_suffix('.npy'), np.asarray(Image.open(path)))
    listing = read(tmp_path)
    assert boxes_of(listing) == EXPECTED_BOXES
    assert ('files left out, .npy', 10) in notes_of(listing)


@pytest.mark.parametrize(('train', 'val'), [('train', 'val'), ('images/train', 'images/valid')])
def test_splits_that_link_to_the_same_folder_raise(tmp_path, train, val):
    """ultralytics#5036."""
    save(tmp_path, 'all/0.jpg', scenes(1)[0][0])
    for split in (train, val):
        (tmp_path / 'data' / split).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / 'data' / split).symlink_to(tmp_path / 'all')
    with rejects(f'{val}.* and .*{train}.* are the same folder by a'):
        Tree(tmp_path / 'data')


def test_split_that_links_to_a_folder_next_to_it_raises(tmp_path):
    save(tmp_path, 'all/0.jpg', scenes(1)[0][0])
    (tmp_path / 'train').symlink_to('all')
    with rejects('train.* and .*all.* are the same folder by a link'):
        Tree(tmp_path)
