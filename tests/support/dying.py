"""A hook that ends a run early, as a crash would."""

from mmengine.hooks import Hook

from benchmarks.exactness import StoppedError


class DieHook(Hook):
    """Ends the run by an error, without saving.

    Args:
        iteration: the last iteration, counted from 1.
        moment: ``'step'`` to end after that iteration, or ``'validation'`` to end in the validation
            after it.
    """

    def __init__(self, iteration: int, moment: str) -> None:
        self.iteration, self.moment = iteration, moment

    def after_train_iter(self, runner, *args, **kwargs) -> None:
        if self.moment == 'step' and runner.iter + 1 == self.iteration:
            raise StoppedError

    def after_val_iter(self, runner, *args, **kwargs) -> None:
        if self.moment == 'validation' and runner.iter == self.iteration:
            raise StoppedError
