"""Anneal EoMT's attention masks, as a function of the position in the run."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

from mmengine.hooks import Hook
from mmengine.runner import Runner
from pydantic import Field

from vit_plugin.arguments.fields import Fraction, Positive
from vit_plugin.errors import ConfigError
from vit_plugin.registry import HOOKS

from .mask_queries import MaskQueries

Fractions = Annotated[Sequence[Fraction], Field(min_length=1)]


@HOOKS.register_module()
class MaskAnnealingHook(Hook):
    """Anneals away the masks of an :class:`~vit_plugin.models.EoMT` (arXiv:2503.19108).

    For each block with queries, the probability that a query is masked is 1 until ``begin``, then
    (1 - progress) ** ``power``, and 0 from ``end`` on. It depends only on the iteration, so that a
    resumed run is the same.

    Args:
        begin: where the annealing of each block begins, as a fraction of the run. Default: one
            block after the other, in equal intervals, with one more interval before the first block
            and after the last, as the authors train on DINOv2.
        end: where the annealing of each block ends, as a fraction of the run.
        power: exponent of the decrease.

    Raises:
        ConfigError: if only one of ``begin`` and ``end`` is given, if an interval ends before it
            begins, or if their length is not the number of blocks with queries. In a run, if the
            model has no masked queries.
    """

    priority = 'ABOVE_NORMAL'  # before EMAHook, which copies buffers

    def __init__(
        self, begin: Fractions | None = None, end: Fractions | None = None, power: Positive = 0.9
    ) -> None:
        if len(begin or ()) != len(end or ()) or any(
            first >= last for first, last in zip(begin or (), end or (), strict=True)
        ):
            raise ConfigError(
                f'MaskAnnealingHook: begin={begin} and end={end} must have one fraction for each '
                'block with queries, and none may end before it begins; change them, or leave '
                'both out.'
            )
        self.begin, self.end, self.power = begin, end, power

    def probs(self, number: int, position: float) -> list[float]:
        """The probabilities for ``number`` blocks at a position in the run, from 0 to 1."""
        intervals = (
            zip(self.begin, self.end, strict=True)
            if self.begin and self.end
            else pairwise(i / (number + 2) for i in range(1, number + 2))
        )
        return [
            (1 - min(max((position - first) / (last - first), 0.0), 1.0)) ** self.power
            for first, last in intervals
        ]

    def before_train(self, runner: Runner) -> None:
        self._queries = [
            module for module in runner.model.modules() if isinstance(module, MaskQueries)
        ]
        block_counts = {len(queries.attn_mask_probs) for queries in self._queries}
        if not block_counts:
            raise ConfigError(
                'MaskAnnealingHook: the model has no queries with masks, as an EoMT has; leave '
                'the hook out of custom_hooks.'
            )
        if self.begin and {len(self.begin)} != block_counts:
            raise ConfigError(
                f'MaskAnnealingHook: begin has {len(self.begin)} fractions for {min(block_counts)} '
                'blocks with queries; give one for each.'
            )
        self._set_probs(runner.iter / runner.max_iters)

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: Any = None
    ) -> None:
        self._set_probs((runner.iter + 1) / runner.max_iters)

    def _set_probs(self, position: float) -> None:
        for queries in self._queries:
            queries.set_probs(self.probs(len(queries.attn_mask_probs), position))
