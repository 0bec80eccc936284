from itertools import combinations, pairwise

import numpy as np
import pytest

from vit_plugin.inference.palette import color_of, hex_of

# What is left of linear RGB without the cones for red, green or blue, by Machado et al. (2009).
PROTANOPIA = [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]]
DEUTERANOPIA = [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]]


@pytest.mark.parametrize(
    ('matrix', 'least'), [(np.eye(3), 40), (PROTANOPIA, 30), (DEUTERANOPIA, 30)]
)
def test_the_colors_of_six_classes_can_be_told_apart(matrix, least):
    linear = (np.array([color_of(label) for label in range(6)]) / 255) ** 2.2
    seen = 255 * (linear @ np.transpose(matrix)).clip(0, 1) ** (1 / 2.2)
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > least


def test_no_two_of_many_classes_share_a_color():
    colors = [color_of(label) for label in range(150)]
    assert len(set(colors)) == 150
    assert all(np.abs(np.subtract(a, b)).max() > 40 for a, b in pairwise(colors))
    assert hex_of(0) == '#0072b2'
