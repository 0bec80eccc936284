"""Rules that several formats share: a plain block, and two of their layers in one of ours."""

from collections.abc import Callable

from ..rules import Rule, pair
from ..traits import has_plain_mlps


def plain_block(
    theirs: str, norm1: str, proj: str, norm2: str, fc1: str, fc2: str
) -> tuple[Rule, ...]:
    """The rules of a block without gates, except those of queries, keys and values.

    Args:
        theirs: their name of the block, with ``{i}`` for its number.
        norm1, proj, norm2, fc1, fc2: their names of its layers.
    """
    return (
        *pair(f'{theirs}.{norm1}.', 'blocks.{i}.norm1'),
        *pair(f'{theirs}.{proj}.', 'blocks.{i}.attn.proj'),
        *pair(f'{theirs}.{norm2}.', 'blocks.{i}.norm2'),
        *pair(f'{theirs}.{fc1}.', 'blocks.{i}.mlp.fc1', written=has_plain_mlps),
        *pair(f'{theirs}.{fc2}.', 'blocks.{i}.mlp.fc2'),
    )


def two_in_one(
    first: str, second: str, ours: str, written: bool | Callable, unless: str = ''
) -> tuple[Rule, ...]:
    """The rules of two layers of theirs that are one of ours, such as those of a gated MLP.

    Args:
        first, second: their names of the layers, in the order in which ours joins them.
        ours: our name of the layer.
        written, unless: see :class:`~vit_plugin.weights.rules.Rule`.
    """
    both = (f'{first}.{{rest}}', f'{second}.{{rest}}')
    return (Rule(both, f'{ours}.{{rest}}', written=written, unless=unless),)
