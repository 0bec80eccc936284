"""The image size and the anchors, as they follow from the sizes of the objects."""

import numpy as np
import pytest

from vit_plugin.tasks.detection.object_sizes import choose_anchors, choose_image_side


def squares(*sides: float) -> np.ndarray:
    return np.repeat(np.array(sides), 100)[:, None].repeat(2, axis=1)


@pytest.mark.parametrize(
    ('share', 'expected'),
    [
        (0.08, 192),  # 16 pixels
        (0.3, 128),  # 38 pixels in the smallest image
        (0.02, 512),  # 10 pixels, since 16 would need a large image
        (0.01, 768),  # 8 pixels
        (0.001, 1024),
    ],
)
def test_small_objects_stay_visible(share, expected):
    assert choose_image_side(squares(share, 0.5, 0.7), 1024) == expected


def test_few_tiny_boxes_are_ignored():
    tiny = [[1e-4, 1e-4], [0.0, 0.1]]
    assert choose_image_side(np.concatenate((squares(0.08, 0.5), tiny)), 1024) == 192


@pytest.mark.parametrize('boxes', [np.zeros((0, 2)), np.zeros((3, 2))])
def test_no_boxes_give_the_defaults(boxes):
    assert choose_image_side(boxes, 1024) == 1024
    assert choose_anchors(boxes, 640) == (4, 5)


@pytest.mark.parametrize(
    ('sides', 'expected'),
    [((8, 30), (1, 3)), ((15, 90), (2, 3)), ((32, 600), (4, 5)), ((8, 100), (1, 4))],
)
def test_anchors_cover_the_sizes_of_the_boxes(sides, expected):
    octave, levels = choose_anchors(squares(*sides) / 640, 640)
    assert (octave, levels) == expected
    smallest, largest = 8 * octave, 8 * 2 ** (levels - 1) * octave * 2 ** (2 / 3)
    assert smallest < 1.5 * min(sides)
    assert largest > max(sides) / 1.5
