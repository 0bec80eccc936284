"""The limits of the campaign ``exported_answers``."""

from benchmarks.exported_answers import MAX_DIFFERENCE, MAX_SHIFT, allowed_difference


def test_only_boxes_may_shift_by_pixels():
    for family in ('RetinaNet', 'EoMT, instances'):
        assert allowed_difference(family) == MAX_SHIFT
    for family in ('EoMT, panoptic', 'UPerNet', 'hybrid'):
        assert allowed_difference(family) == MAX_DIFFERENCE
