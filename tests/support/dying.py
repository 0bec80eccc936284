"""A hook that ends a run early, as a crash would."""

from mmengine.hooks import Hook

from benchmarks.exactness import StoppedError


class DieHook(Hook):
    """Ends the run without saving.

    Args:
        iteration: number of the last iteration, from 1.
        moment: ``'step'`` for after that iteration, or ``'validation'`` for the validation that
            follows it.
    """

    def __init__(self, iteration: int, moment: str) -> None:
        self.iteration, self.moment = iteration, moment

    def after_train_iter(self, runner, *args, **kwargs) -> None:
        if self.moment == 'step' and runner.iter + 1 == self.iteration:
            raise StoppedError

    def after_val_iter(self, runner, *args, **kwargs) -> None:
        if self.moment == 'validation' and runner.iter == self.iteration:
            raise StoppedError
