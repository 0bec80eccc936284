"""Where the ranks of a run are, and which of them are dead or hang."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

# Where a rank can be, in the order in which a step goes through it.
PHASES = {'starting': 'before the first step', 'loading': 'loading the batch of step {}', 'step': 'in step {}',
          'saving': 'saving step {}', 'validation': 'in the validation after step {}',
          'evaluation': 'computing the metrics after step {}', 'test': 'in the test', 'ended': 'at the end'}


@dataclass
class Place:
    """Where a rank is.

    Attributes:
        beats: signs of life so far.
        moves: how often its main thread has come somewhere new.
        step: the number of the step, from 1.
        phase: one of ``PHASES``.
    """
    beats: int = 0
    moves: int = 0
    step: int = 0
    phase: str = 'starting'

    def order(self) -> tuple[int, int]:
        return self.step, list(PHASES).index(self.phase)

    def __str__(self) -> str:
        return PHASES[self.phase].format(self.step)


@dataclass
class Seen:
    """What a rank has told last, and when by the clock of who looked."""
    place: Place = field(default_factory=Place)
    beat_at: float = field(default_factory=time.monotonic)
    move_at: float = field(default_factory=time.monotonic)

    def update(self, place: Place) -> None:
        now = time.monotonic()
        self.beat_at = now if place.beats != self.place.beats else self.beat_at
        self.move_at = now if place.moves != self.place.moves else self.move_at
        self.place = place


def silent_ranks(ranks: Mapping[int, Seen], silence: float) -> list[int]:
    """The ranks without a sign of life for so many seconds."""
    return [rank for rank, seen in ranks.items() if time.monotonic() - seen.beat_at > silence]


def stuck_ranks(ranks: Mapping[int, Seen], timeout: float) -> list[int]:
    """The ranks that hang: they have not moved for so many seconds, and no rank is behind them.

    A rank that is further may wait for one that is behind, so it does not hang.
    """
    last = min((seen.place.order() for seen in ranks.values()), default=None)
    return [rank for rank, seen in ranks.items()
            if seen.place.order() == last and time.monotonic() - seen.move_at > timeout]
