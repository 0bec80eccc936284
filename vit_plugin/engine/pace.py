"""The pace of a training, and the time left.

The pace is that of the latest steps, since it varies with the load of the machine.
"""

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

    Attributes:
        start: when the first step began.
        validation_seconds: seconds of the latest validation, 0 before the first.
    """

    start: float
    validation_seconds: float = 0.0
    _ends: deque[float] = field(default_factory=deque)  # ends of the latest steps, without pauses
    _paused_seconds: float = 0.0  # all validations together
    _paused_at: float | None = None  # when the current validation began

    def step(self, now: float) -> None:
        """Record the end of a step."""
        ends = self._ends
        if not ends:
            ends.append(self.start)
        ends.append(now - self._paused_seconds)
        while len(ends) > MIN_STEPS + 1 and ends[-1] - ends[1] >= MIN_SECONDS:
            ends.popleft()

    def pause(self, now: float) -> None:
        """Record that a validation begins."""
        self._paused_at = now

    def resume(self, now: float) -> None:
        """Record that the validation has ended."""
        if self._paused_at is not None:
            self.validation_seconds = now - self._paused_at
            self._paused_seconds += self.validation_seconds
            self._paused_at = None

    @property
    def seconds_per_step(self) -> float:
        """Mean seconds of the latest steps. It needs at least one :meth:`step` before."""
        return (self._ends[-1] - self._ends[0]) / (len(self._ends) - 1)


def seconds_left(runner: Runner, pace: Pace) -> float:
    """The remaining seconds of a run after the current step, validations included."""
    steps = runner.max_iters - runner.iter - 1
    return steps * pace.seconds_per_step + count_validations(runner) * pace.validation_seconds


def count_validations(runner: Runner) -> int:
    """The number of remaining validations: at multiples of ``val_interval``, and at the end."""
    loop = runner.train_loop
    if runner._val_loop is None:
        return 0
    by_epoch = isinstance(loop, EpochBasedTrainLoop)
    done, last = (loop.epoch, loop.max_epochs) if by_epoch else (loop.iter, loop.max_iters)
    # The first epoch or iteration that may be validated. A loop of a user may lack `val_begin`.
    first = max(done + 1, getattr(loop, 'val_begin', 1))
    if first > last:
        return 0
    return math.ceil(last / loop.val_interval) - (first - 1) // loop.val_interval
