"""The pace of a training, which varies with the load of the machine, and the time left."""

import math
from collections import deque
from dataclasses import dataclass, field

from mmengine.runner import EpochBasedTrainLoop, Runner

# Least steps and seconds to average over. With both, the pace is defined for steps of a minute and
# of a millisecond, and follows a change of load within half a minute.
FEWEST_STEPS, MIN_SECONDS = 10, 30.0


@dataclass
class Pace:
    """The seconds of the latest steps, and those of the latest validation.

    All methods take the time in seconds, by any clock. Validation does not count as time of a step.

    Args:
        start: when the first step began.
    """

    start: float
    validation: float = 0.0  # 0 before the first validation
    _ends: deque[float] = field(default_factory=deque)  # ends of the latest steps, without pauses
    _paused: float = 0.0  # the seconds of all validations
    _since: float | None = None  # when the current validation began

    def step(self, now: float) -> None:
        """Record the end of a step."""
        ends = self._ends
        if not ends:
            ends.append(self.start)
        ends.append(now - self._paused)
        while len(ends) > FEWEST_STEPS + 1 and ends[-1] - ends[1] >= MIN_SECONDS:
            ends.popleft()

    def pause(self, now: float) -> None:
        """Record that a validation begins."""
        self._since = now

    def proceed(self, now: float) -> None:
        """Record that the validation has ended."""
        if self._since is not None:
            self.validation = now - self._since
            self._paused += self.validation
            self._since = None

    @property
    def seconds_per_step(self) -> float:
        """Mean seconds of the latest steps."""
        return (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)


def seconds_left(runner: Runner, pace: Pace) -> float:
    """The remaining seconds of a run after the current step, validations included."""
    steps = runner.max_iters - runner.iter - 1
    return steps * pace.seconds_per_step + validations(runner) * pace.validation


def validations(runner: Runner) -> int:
    """The number of remaining validations."""
    loop = runner.train_loop
    if runner._val_loop is None:
        return 0
    by_epoch = isinstance(loop, EpochBasedTrainLoop)
    left = loop.max_epochs - loop.epoch if by_epoch else loop.max_iters - loop.iter
    return math.ceil(left / loop.val_interval)
