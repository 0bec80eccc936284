"""The colors of classes are those of the campaign, and differ enough from each other."""

from itertools import pairwise

import numpy as np
import pytest

from anyfolder.pictures.palette import SERIES, color_of, hex_of
from benchmarks.palette import choose_colors, least_distances, parse_colors


@pytest.mark.parametrize(('count', 'min_distance'), [(6, 0.07), (24, 0.055)])
def test_colors_of_classes_differ_for_all_kinds_of_color_vision(count, min_distance):
    colors = parse_colors(tuple(map(hex_of, range(count))))
    # The diagonal, a color's distance from itself, does not count.
    distances = least_distances(colors, colors) + np.eye(count)
    assert distances.min() > min_distance


def test_the_table_equals_the_campaigns_choice():
    assert choose_colors(len(SERIES)) == list(SERIES)


def test_no_two_of_many_classes_share_a_color():
    colors = [color_of(label) for label in range(150)]
    assert len(set(colors)) == 150
    # Neighboring labels differ by more than 40 of 255 in one channel.
    assert all(np.abs(np.subtract(a, b)).max() > 40 for a, b in pairwise(colors))
    assert hex_of(0) == '#0072b2'
