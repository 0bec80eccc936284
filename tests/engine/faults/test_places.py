"""Ranks that are dead or hang: who is named."""

import time

import pytest

from vit_plugin.engine.faults.places import PHASES, STEADY, Patience, Place, Seen, silent_ranks, stuck_ranks

PATIENCE = Patience(step=5, other=20)


def seen(begun: int, stage: int, phase: str, still: float = 0., quiet: float = 0.) -> Seen:
    """A rank at a place that has not moved, or been heard of, for some seconds."""
    now = time.monotonic()
    return Seen(Place(5, 9, begun, stage, begun, phase), now - quiet, now - still)


@pytest.mark.parametrize(('ranks', 'stuck'), [
    ([(4, 0, 'step', 9), (3, 1, 'loading', 9)], [1]),  # the batch of a step is loaded before it
    ([(4, 0, 'step', 9), (4, 0, 'step', 9)], [0, 1]),
    ([(4, 0, 'step', 9), (4, 0, 'step', 1)], [0]),
    ([(3, 5, 'evaluation', 2), (4, 0, 'step', 9)], []),  # rank 1 waits for rank 0, which has moved
    ([(3, 5, 'evaluation', 21), (4, 0, 'step', 19)], [0]),
    ([(3, 2, 'saving', 21), (3, 3, 'saved', 21), (3, 4, 'loading', 21)], [0]),  # one writes, the others wait
    ([(4, 0, 'first', 19), (4, 1, 'loading', 19)], []),  # it may compile
    ([(4, 0, 'first', 21), (4, 1, 'loading', 19)], [0]),
    ([(4, 3, 'validation', 19), (4, 3, 'validation', 19)], []),
    ([], []),
])
def test_only_the_furthest_behind_can_hang(ranks, stuck):
    assert stuck_ranks({rank: seen(*told) for rank, told in enumerate(ranks)}, PATIENCE) == stuck


def test_a_rank_is_silent_by_the_clock_of_who_looks():
    ranks = {3: seen(4, 0, 'step', 9, 9), 5: seen(4, 0, 'step', 9, 1)}
    assert silent_ranks(ranks, 5) == [3]
    ranks[3].update(Place(5, 9, 4, 0, 4, 'step'))
    assert silent_ranks(ranks, 5) == [3]
    ranks[3].update(Place(6, 9, 4, 0, 4, 'step'))  # a beat, without a move
    assert silent_ranks(ranks, 5) == []
    assert stuck_ranks(ranks, PATIENCE) == [3, 5]


def test_every_place_has_words_and_a_setting():
    places = {phase: Place(1, 1, 7, 0, 7, phase) for phase in PHASES}
    assert [str(place) for place in places.values()][:4] == [
        'before the first step', 'loading the batch of step 7', 'in step 7, the first of this start', 'in step 7']
    for phase, place in places.items():
        assert PATIENCE.setting(place) == ('default_hooks.watch.step' if phase in STEADY else
                                           'env_cfg.dist_cfg.timeout')
