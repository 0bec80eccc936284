"""The outcomes of one validation, collected from its samples and from all processes."""

from collections.abc import Sequence, Set

from mmengine.dist import all_gather_object, get_dist_info, is_main_process
from mmengine.runner import Runner

from vit_plugin.data.dataset_facts import classes_of
from vit_plugin.engine.sharding import without_ddp

from .outcomes import Outcomes, outcomes_class


class CollectedOutcomes:
    """The outcomes of the samples that this process validates, in one validation."""

    def __init__(self) -> None:
        self._outcomes: Outcomes | None = None
        self._num_samples = 0  # samples that this process has recorded
        self._has_failed = False  # whether recording a sample raised an error

    def add(self, runner: Runner, samples: Sequence) -> None:
        """Record the outcomes of a batch, unless that has failed before."""
        if self._has_failed:
            return
        dataset, (rank, world) = runner.val_dataloader.dataset, get_dist_info()
        left_out = _left_out(runner)
        for sample in samples:
            self._has_failed = True  # stays so if the lines below raise
            if self._outcomes is None and (outcomes := outcomes_class(sample)):
                model = without_ddp(runner.model)
                self._outcomes = outcomes.of_model(model, classes_of(dataset), len(dataset))
            # MMEngine's sampler deals positions to ranks in turn, and repeats some at the end so
            # that all ranks have equally many.
            position = self._num_samples * world + rank
            is_counted = position < len(dataset) and position not in left_out
            if self._outcomes is not None and is_counted:
                self._outcomes.add(position, sample)
            self._num_samples += 1
            self._has_failed = False

    def gather(self, runner: Runner) -> Outcomes | None:
        """Gather the outcomes of all processes, each of which must call this.

        Returns None in all processes but the main one. There too if a process has no outcomes,
        since scores without its images would be wrong.
        """
        gathered = all_gather_object(None if self._has_failed else self._outcomes)
        if not is_main_process() or any(outcomes is None for outcomes in gathered):
            return None
        outcomes, *others = gathered
        for other in others:
            outcomes.join(other)
        left_out = _left_out(runner)
        outcomes.examples = [position for position in outcomes.examples if position not in left_out]
        return outcomes


def _left_out(runner: Runner) -> Set[int]:
    """The positions of unreadable images, which the validation leaves out."""
    hook = getattr(runner, 'unreadable', None)
    return frozenset() if hook is None else hook.left_out
