"""A hook that anneals the attention masks of EoMT's queries away during a training.

Masks help queries to learn. A model that works without them predicts in a single pass.
"""

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
    """Anneals the masks of an :class:`~vit_plugin.models.EoMT` or a PMT (arXiv:2503.19108).

    For each block with queries, the probability that a query is masked is 1 until ``begin``, 0 from
    ``end`` on, and between them (1 - t) ** ``power``, where t grows from 0 to 1. It depends only on
    the iteration, so that a resumed run is the same.

    Args:
        begin: when the annealing of each block begins, as a fraction of the run. Default: one block
            after the other, in equal intervals, with one more interval before the first block and
            after the last, as the authors train on DINOv2.
        end: when the annealing of each block ends, as a fraction of the run.
        power: exponent of the decrease.

    Raises:
        ConfigError: if only one of ``begin`` and ``end`` is given, or if an interval does not end
            after it begins. In a run, if the model has no masked queries, or if there is not one
            interval for each block with queries.
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
                'block with queries, and each block must end after it begins; change them, or '
                'leave both out.'
            )
        self.begin, self.end, self.power = begin, end, power

    def probs(self, num_blocks: int, position: float) -> list[float]:
        """The probability for each block at a position in the run, from 0 to 1."""
        intervals = (
            zip(self.begin, self.end, strict=True)
            if self.begin and self.end
            else pairwise(i / (num_blocks + 2) for i in range(1, num_blocks + 2))
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
        # The runner counts the iteration only after this call.
        self._set_probs((runner.iter + 1) / runner.max_iters)

    def _set_probs(self, position: float) -> None:
        for queries in self._queries:
            queries.set_probs(self.probs(len(queries.attn_mask_probs), position))
