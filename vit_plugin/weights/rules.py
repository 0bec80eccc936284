"""Rules that rename and reshape weights between a format and ours, in both directions.

A :class:`Format` is an ordered table of rules for one library. A :class:`Rule` maps a key of theirs
to a key of ours, as :mod:`~vit_plugin.weights.patterns` with placeholders, and a
:class:`Transform` converts the array. To read a checkpoint, :meth:`Format.plan` applies the rules
to its keys, which gives a :class:`Step` for each tensor of ours. To write one,
:meth:`Format.export` applies them to our keys. "State" means tensors by our names.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from vit_plugin.errors import ConfigError

from .patterns import KeyIndex, Pattern
from .traits import KnownNumerics

# The grid (h, w) of the position table, which only our own checkpoints record.
GRID = 'position._extra_state'
# The reason why tables of computed positions may stay unused. Loading compares them.
COMPUTED = 'the model computes the same'
BATCHES_TRACKED = 'num_batches_tracked'  # counter of a BatchNorm


@dataclass(frozen=True)
class Transform:
    """Converts an array of another format to our tensor, and back.

    Attributes:
        forward: converts theirs to ours.
        backward: converts ours to theirs. It also gets the number of attention heads, because our
            tensors do not show it.
        heads_axis: the axis of their three-dimensional array whose length is the number of heads,
            or None.
        takes_integers: whether theirs may have an integer dtype without being quantized.
    """

    forward: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, int], Tensor]
    heads_axis: int | None = None
    takes_integers: bool = False


IDENTITY = Transform(lambda x: x, lambda x, heads: x)
# A number that a model stores as an integer.
CONSTANT = Transform(lambda x: x.float(), lambda x, heads: x, takes_integers=True)
VECTOR = Transform(lambda x: x.reshape(-1), lambda x, heads: x)  # old GroupNorms are (1, 1, 1, C)
# flax has kernels of linear layers as (in, out), of convolutions as (H, W, in, out), into heads as
# (in, heads, d) with a bias (heads, d), and out of heads as (heads, d, out).
TRANSPOSED = Transform(lambda x: x.t(), lambda x, heads: x.t())
CONV = Transform(lambda x: x.permute(3, 2, 0, 1), lambda x, heads: x.permute(2, 3, 1, 0))
INTO_HEADS = Transform(
    lambda x: x.flatten(1).t(), lambda x, heads: x.t().unflatten(1, (heads, -1)), 1
)
HEADS_BIAS = Transform(lambda x: x.flatten(), lambda x, heads: x.unflatten(0, (heads, -1)))
OUT_OF_HEADS = Transform(
    lambda x: x.flatten(0, 1).t(), lambda x, heads: x.t().unflatten(0, (heads, -1)), 0
)
# In CLIP, a token is (C,), and a position table is (N, C).
TOKEN_VECTOR = Transform(lambda x: x.reshape(1, -1, x.shape[-1]), lambda x, heads: x.reshape(-1))
POSITION_ROWS = Transform(lambda x: x.reshape(1, -1, x.shape[-1]), lambda x, heads: x[0])
# A position table whose class token has no row in ours: writing adds a row of zeros.
CLASS_TOKEN_ROW = Transform(lambda x: x, lambda x, heads: F.pad(x, (0, 0, 1, 0)))


def _joined(keys: Iterable[str]) -> str:
    """All keys as one text, each on a line of its own after a dot.

    :attr:`Rule.unless` and :attr:`Rule.when` are searched for in it.
    """
    return ''.join(f'\n.{key}' for key in keys)


@dataclass(frozen=True)
class Rule:
    """Maps one or several keys of another format to one key of ours.

    Attributes:
        theirs: pattern of their key. The arrays of several patterns are joined along our first
            dimension.
        ours: pattern of our key.
        transform: conversion of each array.
        thirds: which thirds of their array our tensor holds, as (first, last + 1), for queries,
            keys and values that they have in one array, and we in several tensors. Other rules take
            the other thirds.
        tokens: which rows of their array (1, N, C) our tensor holds, as (first, last + 1), for
            tokens that they have in one array, and we in several tensors.
        unless: the rule is not used if any key, with a dot before it, contains this text.
        when: the rule is only used for reading if any key, with a dot before it, contains this
            text.
        written: whether the rule is also used for writing. False only reads another spelling. A
            function decides by the state to write.
    """

    theirs: str | tuple[str, ...]
    ours: str
    transform: Transform = IDENTITY
    thirds: tuple[int, int] | None = None
    tokens: tuple[int, int | None] | None = None
    unless: str = ''
    when: str = ''
    written: bool | Callable[[Mapping[str, Tensor]], bool] = True

    def writes(self, state: Mapping[str, Tensor]) -> bool:
        """True if the rule is used to write this state."""
        written = self.written(state) if callable(self.written) else self.written
        return written and not (self.unless and self.unless in _joined(state))

    @property
    def has_shared_key(self) -> bool:
        """True if other rules make further tensors of ours from parts of the same key."""
        return self.thirds is not None or self.tokens is not None

    def reads(self, keys: str) -> bool:
        """True if the rule is used to read these keys, see :func:`_joined`."""
        return not (self.unless and self.unless in keys) and self.when in keys

    @cached_property
    def their_patterns(self) -> tuple[Pattern, ...]:
        """``theirs``, parsed."""
        return tuple(map(Pattern, (self.theirs,) if isinstance(self.theirs, str) else self.theirs))

    @cached_property
    def our_pattern(self) -> Pattern:
        """``ours``, parsed."""
        return Pattern(self.ours)


def pair(
    theirs: str, ours: str, kernel: str = 'weight', transform: Transform = IDENTITY, **kwargs: Any
) -> tuple[Rule, Rule]:
    """The rules for the weight and bias of a layer.

    Args:
        theirs: their name of the layer, with the separator that follows it.
        ours: our name of the layer.
        kernel: their name for the weight.
        transform: the conversion of the weight.
        kwargs: arguments of each :class:`Rule`.
    """
    return (
        Rule(f'{theirs}{kernel}', f'{ours}.weight', transform, **kwargs),
        Rule(f'{theirs}bias', f'{ours}.bias', VECTOR, **kwargs),
    )


def separate_qkv(
    theirs: str, names: tuple[str, str, str], ours: str = 'blocks.{i}', **kwargs: Any
) -> tuple[Rule, ...]:
    """Rules for separate query, key and value layers of a block.

    Args:
        theirs: what their three keys begin with.
        names: their names of the three layers.
        ours: our name of the block.
        kwargs: arguments of each :class:`Rule`.
    """
    return tuple(
        Rule(tuple(f'{theirs}{name}.{kind}' for name in names), f'{ours}.attn.qkv.{kind}', **kwargs)
        for kind in ('weight', 'bias')
    )


def same(*names: str) -> tuple[Rule, ...]:
    """Rules for keys that are the same in both formats."""
    return tuple(Rule(name, name) for name in names)


def check_real(key: str, value: Tensor) -> None:
    """Reject integer, boolean and float8 parameters: they may be quantized, with an unknown scale.

    Raises:
        ConfigError: if the tensor is not a floating-point one of at least 16 bits.
    """
    if not value.is_floating_point() or value.element_size() == 1:
        raise ConfigError(
            f'The checkpoint has {key} as {str(value.dtype).removeprefix("torch.")}, but the '
            'model has real numbers there; give a checkpoint that is not quantized, or convert it '
            'back first.'
        )


@dataclass(frozen=True)
class Step:
    """One of our tensors, and the keys that it comes from. The fields are those of a rule."""

    ours: str
    theirs: tuple[str, ...]
    transform: Transform
    thirds: tuple[int, int] | None = None
    tokens: tuple[int, int | None] | None = None

    def to_ours(self, weights: Mapping[str, Tensor]) -> Tensor:
        """Make our tensor from a checkpoint's weights.

        Raises:
            ConfigError: if their arrays do not have the expected shape, or are integers where we
                have real numbers.
        """
        arrays = [weights[key] for key in self.theirs]
        for key, array in zip(self.theirs, arrays, strict=True):
            may_be_integer = self.transform.takes_integers or self.ours.endswith(BATCHES_TRACKED)
            if self.ours != GRID and not may_be_integer:
                check_real(key, array)
        try:
            if not all(  # the only scalar is the integer counter of a BatchNorm
                array.numel() and (array.ndim or not array.is_floating_point()) for array in arrays
            ):
                raise ValueError('empty, or a scalar')
            if len({array.is_floating_point() for array in arrays}) > 1:
                raise ValueError('integers and floating-point numbers together')
            parts = [self._part(self.transform.forward(array)) for array in arrays]
            return parts[0] if len(parts) == 1 else torch.cat(parts)
        except (RuntimeError, IndexError, TypeError, ValueError) as error:
            shapes = ', '.join(
                f'{key} {tuple(array.shape)} {str(array.dtype)[6:]}'
                for key, array in zip(self.theirs, arrays, strict=True)
            )
            raise ConfigError(
                f'The checkpoint has {shapes}, which cannot be converted to {self.ours}: the file '
                'is damaged or belongs to another model.'
            ) from error

    def heads(self, weights: Mapping[str, Tensor]) -> int | None:
        """The number of attention heads, or None if their arrays do not show it."""
        axis = self.transform.heads_axis
        if axis is None:
            return None
        array = weights[self.theirs[0]]
        return array.shape[axis] if array.ndim == 3 else None

    def _part(self, value: Tensor) -> Tensor:
        """The part of an array that our tensor contains, see :class:`Rule`."""
        if self.tokens is not None:
            return value[:, slice(*self.tokens)]
        if self.thirds is None:
            return value
        if value.shape[0] % 3:
            raise ValueError('the length is not a multiple of 3')
        first, last = (third * value.shape[0] // 3 for third in self.thirds)
        return value[first:last]

    def to_theirs(self, value: Tensor, heads: int) -> dict[str, Tensor]:
        """Convert our tensor back to their arrays, by key.

        If our tensor is only a part of their array, so is the result.

        Raises:
            ConfigError: if the tensor does not have the expected shape.
        """
        try:
            parts = (
                value.unflatten(0, (len(self.theirs), -1)).unbind()
                if len(self.theirs) > 1
                else (value,)
            )
            return {
                key: self.transform.backward(part, heads).contiguous()
                for key, part in zip(self.theirs, parts, strict=True)
            }
        except (RuntimeError, IndexError) as error:
            raise ConfigError(
                f'{self.ours} has the shape {tuple(value.shape)}, which cannot be converted to '
                f'{", ".join(self.theirs)}: the checkpoint is damaged, or has another number of '
                'heads.'
            ) from error


@dataclass(frozen=True)
class Format:
    """The names and layouts of a library's weights.

    Attributes:
        name: name of the format in reports and on the command line.
        rules: the table. The first rule that matches a key is used.
        prefixes: possible prefixes of all keys. Writing uses the first by default.
        outside: beginnings of keys that never have the prefix, such as those of a head.
        known_numerics: what is certain about the numerics of the format's own code: its norms and
            activations, which the weights do not show.
        ignored: patterns of keys that may stay unused, and the reason. Any other key of the encoder
            or stem must have a place in the model.
        notes: conditions on a state, and messages for checkpoints that meet them.
        has_backbone: whether a checkpoint must have a backbone. Some have only what surrounds it.
    """

    name: str
    rules: tuple[Rule, ...]
    prefixes: tuple[str, ...] = ('',)
    outside: tuple[str, ...] = ()
    known_numerics: tuple[KnownNumerics, ...] = ()
    ignored: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[tuple[Callable[[Mapping[str, Tensor]], bool], str], ...] = ()
    has_backbone: bool = True

    def plan(self, keys: Iterable[str], prefix: str = '') -> list[Step]:
        """The steps that make our tensors from these keys.

        A key is used by one rule, or by all rules that take parts of it, see
        :attr:`Rule.has_shared_key`.
        """
        # Keys that no rule has used yet: without the prefix -> with it.
        free = {
            key.removeprefix(prefix): key for key in keys if key.startswith((prefix, *self.outside))
        }
        steps, joined, index = [], _joined(free), KeyIndex(free)
        shared: set[str] = set()  # keys of which some rule uses a part
        for rule in filter(lambda rule: rule.reads(joined), self.rules):
            # A joined key has several patterns, whose placeholders must agree.
            matches_of_parts = [
                {
                    indices: key
                    for key, indices in index.matching(pattern)
                    if key in free and (rule.has_shared_key or key not in shared)
                }
                for pattern in rule.their_patterns
            ]
            for indices in matches_of_parts[0]:
                if all(indices in matches for matches in matches_of_parts):
                    names = [matches[indices] for matches in matches_of_parts]
                    theirs = tuple(free[name] for name in names)
                    if rule.has_shared_key:
                        shared.update(names)
                    else:
                        for name in names:
                            del free[name]
                    ours = rule.our_pattern.format(indices)
                    step = Step(ours, theirs, rule.transform, rule.thirds, rule.tokens)
                    steps.append(step)
        return steps

    @cached_property
    def ignored_patterns(self) -> tuple[tuple[Pattern, str], ...]:
        """``ignored``, parsed."""
        return tuple((Pattern(text), reason) for text, reason in self.ignored.items())

    def why_ignored(self, key: str, prefix: str) -> str | None:
        """The reason why a key may stay unused, or None."""
        return next(
            (
                reason
                for pattern, reason in self.ignored_patterns
                for name in (key.removeprefix(prefix), key)
                if pattern.match(name) is not None
            ),
            None,
        )

    def export(
        self, state: Mapping[str, Tensor], heads: int, prefix: str | None = None
    ) -> tuple[dict[str, Tensor], list[str]]:
        """Give our tensors the format's names.

        Args:
            state: the tensors by our names.
            heads: the number of attention heads.
            prefix: prefix of the names. Default: the format's first.

        Returns:
            The tensors by the format's names, and our names that the format lacks.
        """
        prefix = self.prefixes[0] if prefix is None else prefix
        # The parts of each array, see `Rule.thirds` and `tokens`: the place of each in it, the axis
        # along which they are joined, and the part.
        parts: dict[str, list[tuple[int, int, Tensor]]] = {}
        unnamed: list[str] = []
        rules = [rule for rule in self.rules if rule.writes(state)]
        for key, value in state.items():
            for rule in rules:
                indices = rule.our_pattern.match(key)
                if indices is None:
                    continue
                names = [pattern.format(indices) for pattern in rule.their_patterns]
                theirs = tuple(
                    name if name.startswith(self.outside) else prefix + name for name in names
                )
                axis = 0 if rule.tokens is None else 1
                place, _ = rule.thirds or rule.tokens or (0, 0)
                for name, part in Step(key, theirs, rule.transform).to_theirs(value, heads).items():
                    parts.setdefault(name, []).append((place, axis, part))
                break
            else:
                if key != GRID:
                    unnamed.append(key)
        exported: dict[str, Tensor] = {}
        for name, found in parts.items():  # a file may have the parts in any order
            ordered = [part for _, _, part in sorted(found, key=lambda entry: entry[0])]
            exported[name] = torch.cat(ordered, dim=found[0][1]) if ordered[1:] else ordered[0]
        return exported, unnamed
