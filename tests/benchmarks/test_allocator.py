"""The costs of a training step, as ``benchmarks/allocator.py`` measures them."""

from benchmarks import allocator


def test_each_step_has_a_time_and_page_faults():
    steps = allocator.measure('ti/16', 1, 1)
    assert len(steps) == 1
    seconds, faults = steps[0]
    assert seconds > 0
    assert faults >= 0
