"""The pace of a training, which varies with the load of the machine, and the time left."""

import math
from collections import deque
from dataclasses import dataclass, field

from mmengine.runner import EpochBasedTrainLoop, Runner

# Fewest steps and seconds to average over. With both, the average works for steps of a minute and
# of a millisecond, and follows a change of load within half a minute.
MIN_STEPS, MIN_SECONDS = 10, 30.0


@dataclass
class Pace:
    """The seconds of the latest steps, and those of the latest validation.

    All methods take the time in seconds, by any one clock. A validation does not count as time of a
    step.

    Args:
        start: when the first step began.
    """

    start: float
    validation: float = 0.0  # 0 before the first validation
    _ends: deque[float] = field(default_factory=deque)  # ends of the latest steps, without pauses
    _validation_seconds: float = 0.0  # all validations together
    _validation_start: float | None = None  # when the current validation began

    def step(self, now: float) -> None:
        """Record the end of a step."""
        ends = self._ends
        if not ends:
            ends.append(self.start)
        ends.append(now - self._validation_seconds)
        while len(ends) > MIN_STEPS + 1 and ends[-1] - ends[1] >= MIN_SECONDS:
            ends.popleft()

    def pause(self, now: float) -> None:
        """Record that a validation begins."""
        self._validation_start = now

    def proceed(self, now: float) -> None:
        """Record that the validation has ended."""
        if self._validation_start is not None:
            self.validation = now - self._validation_start
            self._validation_seconds += self.validation
            self._validation_start = None

    @property
    def seconds_per_step(self) -> float:
        """Mean seconds of the latest steps. It needs at least one :meth:`step` before."""
        return (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)


def seconds_left(runner: Runner, pace: Pace) -> float:
    """The remaining seconds of a run after the current step, validations included."""
    steps = runner.max_iters - runner.iter - 1
    return steps * pace.seconds_per_step + count_validations(runner) * pace.validation


def count_validations(runner: Runner) -> int:
    """The number of remaining validations."""
    loop = runner.train_loop
    if runner._val_loop is None:
        return 0
    by_epoch = isinstance(loop, EpochBasedTrainLoop)
    remaining = loop.max_epochs - loop.epoch if by_epoch else loop.max_iters - loop.iter
    return math.ceil(remaining / loop.val_interval)
