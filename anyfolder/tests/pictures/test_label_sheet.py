"""The sheet shows the labels of every task at their positions."""

import json

import numpy as np
import pytest
from image_folders import (
    write_bands,
    write_coco,
    write_depth,
    write_digits,
    write_masks,
    write_panoptic,
)

import anyfolder
from anyfolder.pictures.drawn_labels import OPACITY, line_height
from anyfolder.pictures.label_sheet import GAP, MAX_COLUMNS, MAX_IMAGES, draw_sheet
from anyfolder.pictures.palette import color_of
from anyfolder.pictures.scaled_pictures import SIDE

TEXT_HEIGHT = 2 * line_height(SIDE)  # height of the text above a picture
SCENE_HEIGHT = SIDE * 48 // 64  # height of a picture of the scenes


def pixel(sheet: np.ndarray, column: int, x: float, y: float) -> list[int]:
    """The color in the first row of pictures, at a position in an image of 64 x 48 pixels."""
    left = GAP + column * (SIDE + GAP)
    return sheet[TEXT_HEIGHT + int(y * SIDE / 64), left + int(x * SIDE / 64)].tolist()


def tint(label: int, gray: int) -> list[float]:
    """The color of a label that is drawn over a gray."""
    return [(1 - OPACITY) * gray + OPACITY * channel for channel in color_of(label)]


@pytest.mark.parametrize(
    ('write', 'task', 'bar'),
    [
        (lambda folder: write_coco(folder, polygons=True), 'instance', tint(1, 0)),
        (write_coco, 'detection', [0, 0, 0]),
        (write_masks, 'segmentation', tint(2, 0)),
        (write_panoptic, 'panoptic', tint(1, 0)),
    ],
    ids=('instance', 'detection', 'segmentation', 'panoptic'),
)
def test_labels_are_drawn_at_their_positions(tmp_path, write, task, bar):
    write(tmp_path)
    data = anyfolder.read(tmp_path, task)
    sheet = draw_sheet(data)
    assert sheet.dtype == np.uint8
    assert sheet.shape[1:] == (GAP + MAX_COLUMNS * (SIDE + GAP), 3)
    for column in range(3):
        assert pixel(sheet, column, 45, 42) == pytest.approx(bar, abs=12)  # within the bar
    legend = sheet[-line_height(SIDE) - GAP :].reshape(-1, 3)
    shown = [label for label in range(6) if (legend == color_of(label)).all(axis=1).any()]
    names = [name for name in data.classes if name != 'background']
    assert [data.classes[label] for label in shown] == names


def test_depth_is_drawn_in_colors_next_to_its_image(tmp_path):
    write_depth(tmp_path)
    sheet = draw_sheet(anyfolder.read(tmp_path))
    assert np.sum(pixel(sheet, 1, 30, 2)) < 9  # unknown depth is black
    assert np.sum(pixel(sheet, 1, 30, 6)) > np.sum(pixel(sheet, 1, 30, 46))  # bright nearby
    # 6 images and 6 maps in 4 columns
    assert sheet.shape[0] == 3 * (TEXT_HEIGHT + SCENE_HEIGHT + GAP)


def test_sheet_shows_at_most_16_images(tmp_path):
    data = anyfolder.read(write_digits(tmp_path, per_class=10))
    assert len([*data.images()]) > MAX_IMAGES
    assert draw_sheet(data).shape[0] == 4 * (TEXT_HEIGHT + SIDE + GAP)  # 16 images in 4 columns


def test_images_of_bands_are_drawn_as_photographs(tmp_path):
    write_bands(tmp_path)
    assert draw_sheet(anyfolder.read(tmp_path)).std() > 10  # the sheet is not of one color


def test_ignored_regions_and_images_without_objects_are_drawn(tmp_path):
    write_coco(tmp_path)
    file = tmp_path / 'annotations/instances_train2017.json'
    content = json.loads(file.read_text())
    content['categories'].append(dict(id=9, name='ignored'))
    content['annotations'][1].update(category_id=9)  # the bar of the first image
    annotations = content['annotations']
    content['annotations'] = [found for found in annotations if found['image_id'] != 1]
    file.write_text(json.dumps(content))
    sheet = draw_sheet(anyfolder.read(tmp_path, 'detection'))
    upper_edge = [pixel(sheet, 0, 45, y) for y in np.arange(39, 41.5, 0.1)]  # of the bar
    assert list(color_of(2)) in upper_edge  # the next color after those of the classes
    assert list(color_of(1)) not in upper_edge  # that of bars
