"""Ranks that are dead or hang: who is named, and what ends."""

import time

import pytest

from vit_plugin.engine.faults.places import PHASES, Place, Seen, silent_ranks, stuck_ranks


def seen(step: int, phase: str, still: float = 0., quiet: float = 0.) -> Seen:
    """A rank at a step that has not moved, or been heard of, for some seconds."""
    now = time.monotonic()
    return Seen(Place(5, 9, step, phase), now - quiet, now - still)


@pytest.mark.parametrize(('ranks', 'stuck'), [
    ([(4, 'step', 9), (4, 'loading', 9)], [1]),  # the batch of a step is loaded before it
    ([(4, 'step', 9), (4, 'step', 9)], [0, 1]),
    ([(4, 'step', 9), (4, 'step', 1)], [0]),
    ([(3, 'evaluation', 2), (4, 'step', 9)], []),  # rank 1 waits for rank 0, which has moved
    ([(3, 'evaluation', 9), (4, 'step', 9)], [0]),
    ([(3, 'saving', 9), (3, 'evaluation', 9), (4, 'loading', 9)], [0]),
    ([], []),
])
def test_only_the_furthest_behind_can_hang(ranks, stuck):
    assert stuck_ranks({rank: seen(*told) for rank, told in enumerate(ranks)}, 5) == stuck


def test_a_rank_is_silent_by_the_clock_of_who_looks():
    ranks = {3: seen(4, 'step', 9, 9), 5: seen(4, 'step', 9, 1)}
    assert silent_ranks(ranks, 5) == [3]
    ranks[3].update(Place(5, 9, 4, 'step'))
    assert silent_ranks(ranks, 5) == [3]
    ranks[3].update(Place(6, 9, 4, 'step'))  # a beat, without a move
    assert silent_ranks(ranks, 5) == []
    assert stuck_ranks(ranks, 5) == [3, 5]


def test_every_place_has_words():
    assert [str(Place(1, 1, 7, phase)) for phase in PHASES][:3] == [
        'before the first step', 'loading the batch of step 7', 'in step 7']
