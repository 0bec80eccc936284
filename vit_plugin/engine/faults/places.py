"""Where the ranks of a run are, and which of them are dead or hang."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

# Where a rank can be, in words.
PHASES = {'starting': 'before the first step', 'loading': 'loading the batch of step {}',
          'first': 'in step {}, the first of this start', 'step': 'in step {}',
          'epoch': 'after step {}, the last of its epoch',
          'saving': 'saving step {}', 'saved': 'after it saved step {}',
          'validation': 'in the validation after step {}', 'evaluation': 'computing the metrics after step {}',
          'test': 'in the test', 'ended': 'at the end'}
STEADY = ('loading', 'step')  # what takes as long every time. A compiler, a disk or a metric may take longer by right


@dataclass
class Place:
    """Where a rank is.

    Attributes:
        beats: signs of life so far.
        moves: how often its main thread has come further.
        begun: the step that it has begun last, from 1.
        stage: how many other places it has come to since then. All ranks come to the same ones.
        step: the step that the phase belongs to.
        phase: one of ``PHASES``.
    """
    beats: int = 0
    moves: int = 0
    begun: int = 0
    stage: int = 0
    step: int = 0
    phase: str = 'starting'

    def enter(self, step: int, phase: str) -> None:
        """Note that the main thread has come further."""
        if phase in ('first', 'step'):
            self.begun, self.stage = step, 0
        elif (step, phase) != (self.step, self.phase):
            self.stage += 1
        self.step, self.phase = step, phase
        self.moves += 1

    def order(self) -> tuple[int, int]:
        """Which of two places is further."""
        return self.begun, self.stage

    def __str__(self) -> str:
        return PHASES[self.phase].format(self.step)


@dataclass
class Seen:
    """What a rank has told last, and when by the clock of who looked."""
    place: Place = field(default_factory=Place)
    beat_at: float = field(default_factory=time.monotonic)
    move_at: float = field(default_factory=time.monotonic)

    def update(self, place: Place) -> None:
        """Take what the rank tells now."""
        now = time.monotonic()
        self.beat_at = now if place.beats != self.place.beats else self.beat_at
        self.move_at = now if place.moves != self.place.moves else self.move_at
        self.place = place


@dataclass(frozen=True)
class Patience:
    """How many seconds a rank may stay where it is.

    Attributes:
        step: in a step, and while its batch is loaded, in the middle of training.
        other: everywhere else: before and in the first step of a start, in a save, a validation, or its metrics.
    """
    step: float
    other: float

    def of(self, place: Place) -> float:
        """The seconds for this place."""
        return self.step if place.phase in STEADY else self.other

    def setting(self, place: Place) -> str:
        """The name of the setting that decides."""
        return 'default_hooks.watch.step' if self.of(place) < self.other else 'env_cfg.dist_cfg.timeout'


def silent_ranks(ranks: Mapping[int, Seen], silence: float) -> list[int]:
    """The ranks without a sign of life for so many seconds."""
    return [rank for rank, seen in ranks.items() if time.monotonic() - seen.beat_at > silence]


def stuck_ranks(ranks: Mapping[int, Seen], patience: Patience) -> list[int]:
    """The ranks that hang: they have not moved for longer than they may, and no rank is behind them.

    A rank that is further may wait for one that is behind, so it does not hang.
    """
    last = min((seen.place.order() for seen in ranks.values()), default=None)
    return [rank for rank, seen in ranks.items()
            if seen.place.order() == last and time.monotonic() - seen.move_at > patience.of(seen.place)]
