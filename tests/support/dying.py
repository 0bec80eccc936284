"""A run that ends before its time."""

from mmengine.hooks import Hook

from benchmarks.exactness import StoppedError


class DieHook(Hook):
    """Ends the run, saving nothing, after an iteration or in a validation."""

    def __init__(self, iteration: int, moment: str) -> None:
        self.iteration, self.moment = iteration, moment

    def after_train_iter(self, runner, *args, **kwargs) -> None:
        if self.moment == 'step' and runner.iter + 1 == self.iteration:
            raise StoppedError

    def after_val_iter(self, runner, *args, **kwargs) -> None:
        if self.moment == 'validation' and runner.iter == self.iteration:
            raise StoppedError
