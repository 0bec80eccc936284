"""Scores on few images are printed with a confidence interval."""

import pytest

from vit_plugin.report.few_images import note_on_few_images, wilson_interval


@pytest.mark.parametrize(
    # From scipy.stats.binomtest(...).proportion_ci(method='wilson').
    ('right', 'count', 'expected'),
    [(5, 6, (0.4365, 0.9699)), (0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0))],
)
def test_interval_equals_wilsons(right, count, expected):
    assert wilson_interval(right / count, count) == pytest.approx(expected, abs=1e-4)


def test_few_validation_images_are_noted():
    history = {'accuracy/top1': [(1, 50.0), (2, 500 / 6), (3, 50.0)]}
    assert note_on_few_images(6, history) == (
        '6 validation images decide little, so compare models on more: 83 % top-1 of them can be '
        '44 to 97 % of other images (95 % confidence), and lower still as the best of 3 '
        'validations.'
    )
    assert '50 % top-1 of them can be 19 to 81' in note_on_few_images(6, history, by_best=False)
    assert note_on_few_images(6, {'coco/bbox_mAP': [(1, 40.0)]}) == (
        '6 validation images decide little, so compare models on more.'
    )
    assert note_on_few_images(50, history) == note_on_few_images(6, {}) == ''
