"""Rules that rename and reshape weights, read in either direction.

A pattern is a key with placeholders: ``{i}`` stands for a number, ``{i+1}`` for the number that is one more than
the other side's ``{i}``, ``{rest}`` for any ending, and ``(a|b)`` for a choice, of which the first is written.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Indices = tuple[tuple[str, int | str], ...]
_TOKEN = re.compile(r'\{(?P<name>\w+?)(?:\+(?P<offset>\d))?\}|\((?P<choice>[^()]*)\)')


class Pattern:
    """One key with placeholders."""

    def __init__(self, text: str) -> None:
        self.text = text
        expression, position = '', 0
        self.offsets: dict[str, int] = {}
        for token in _TOKEN.finditer(text):
            expression += re.escape(text[position:token.start()])
            position = token.end()
            if token['choice'] is not None:
                expression += '(?:' + '|'.join(map(re.escape, token['choice'].split('|'))) + ')'
            else:
                self.offsets[token['name']] = int(token['offset'] or 0)
                expression += f'(?P<{token["name"]}>' + (r'.+' if token['name'] == 'rest' else r'\d+') + ')'
        self.expression = re.compile(expression + re.escape(text[position:]))

    def match(self, key: str) -> Indices | None:
        """What the placeholders stand for in that key."""
        found = self.expression.fullmatch(key)
        return None if found is None else tuple(sorted(
            (name, text if name == 'rest' else int(text) - self.offsets[name])
            for name, text in found.groupdict().items()))

    def format(self, indices: Indices) -> str:
        """The key with the placeholders filled in."""
        values = dict(indices)

        def fill(token: re.Match) -> str:
            if token['choice'] is not None:
                return token['choice'].partition('|')[0]
            value = values[token['name']]
            return value if isinstance(value, str) else str(value + self.offsets[token['name']])

        return _TOKEN.sub(fill, self.text)


@dataclass(frozen=True)
class Transform:
    """How an array of the other format becomes a tensor of ours, and back.

    ``backward`` is also told the number of attention heads, which our tensors do not show.
    """
    forward: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, int], Tensor]


SAME = Transform(lambda x: x, lambda x, heads: x)
VECTOR = Transform(lambda x: x.reshape(-1), lambda x, heads: x)  # old GroupNorms are (1, 1, 1, C)
TRANSPOSED = Transform(lambda x: x.t(), lambda x, heads: x.t())  # (in, out)
CONV = Transform(lambda x: x.permute(3, 2, 0, 1), lambda x, heads: x.permute(2, 3, 1, 0))  # HWIO
# flax: a kernel into heads is (in, heads, d), its bias (heads, d), and a kernel out of heads (heads, d, out).
INTO_HEADS = Transform(lambda x: x.flatten(1).t(), lambda x, heads: x.t().unflatten(1, (heads, -1)))
HEADS_BIAS = Transform(lambda x: x.flatten(), lambda x, heads: x.unflatten(0, (heads, -1)))
OUT_OF_HEADS = Transform(lambda x: x.flatten(0, 1).t(), lambda x, heads: x.t().unflatten(0, (heads, -1)))
TOKEN = Transform(lambda x: x.reshape(1, -1, x.shape[-1]), lambda x, heads: x.reshape(-1))  # (C,) in CLIP
TABLE = Transform(lambda x: x.reshape(1, -1, x.shape[-1]), lambda x, heads: x[0])  # (N, C) in CLIP
ROW_MORE = Transform(lambda x: x, lambda x, heads: F.pad(x, (0, 0, 1, 0)))  # of zeros, for the class token


@dataclass(frozen=True)
class Rule:
    """One or several keys of another format, and the one of ours that they make.

    Attributes:
        theirs: pattern, or patterns of the arrays that it joins along its first dimension.
        ours: pattern of our key.
        transform: of each array.
        unless: the rule does not hold where any key has this in it.
        written: whether it is used for writing too, or only to read another spelling; or a test of the state to write.
    """
    theirs: str | tuple[str, ...]
    ours: str
    transform: Transform = SAME
    unless: str = ''
    written: bool | Callable[[Mapping[str, Tensor]], bool] = True

    def writes(self, state: Mapping[str, Tensor]) -> bool:
        """Whether it is used to write that state."""
        written = self.written(state) if callable(self.written) else self.written
        return written and not (self.unless and any(self.unless in key for key in state))

    @cached_property
    def their_patterns(self) -> tuple[Pattern, ...]:
        return tuple(map(Pattern, (self.theirs, ) if isinstance(self.theirs, str) else self.theirs))

    @cached_property
    def our_pattern(self) -> Pattern:
        return Pattern(self.ours)


def pair(theirs: str, ours: str, kernel: str = 'weight', transform: Transform = SAME,
         **kwargs: Any) -> tuple[Rule, Rule]:
    """The rules of a layer's weight and bias; ``kernel`` is their name of the weight."""
    return (Rule(f'{theirs}{kernel}', f'{ours}.weight', transform, **kwargs),
            Rule(f'{theirs}bias', f'{ours}.bias', VECTOR, **kwargs))


def separate_qkv(theirs: str, names: tuple[str, str, str]) -> tuple[Rule, ...]:
    """The rules of query, key and value that are three layers, by the names that follow ``theirs``."""
    return tuple(Rule(tuple(f'{theirs}{name}.{kind}' for name in names), f'blocks.{{i}}.attn.qkv.{kind}')
                 for kind in ('weight', 'bias'))


def is_gated(state: Mapping[str, Tensor]) -> bool:
    """Whether the MLPs of a state of ours are gated."""
    fc1, fc2 = 'blocks.0.mlp.fc1.weight', 'blocks.0.mlp.fc2.weight'
    return {fc1, fc2} <= state.keys() and state[fc1].shape[0] == 2 * state[fc2].shape[1]


def same(*names: str) -> tuple[Rule, ...]:
    """The rules of keys that are the same in both formats."""
    return tuple(Rule(name, name) for name in names)


@dataclass(frozen=True)
class Step:
    """One tensor of ours and the keys that it is made of."""
    ours: str
    theirs: tuple[str, ...]
    transform: Transform

    def make(self, weights: Mapping[str, Tensor]) -> Tensor:
        """The tensor."""
        parts = [self.transform.forward(weights[key]) for key in self.theirs]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def unmake(self, value: Tensor, heads: int) -> dict[str, Tensor]:
        """The arrays by their keys that make that tensor."""
        return {key: self.transform.backward(part, heads).contiguous()
                for key, part in zip(self.theirs, value.chunk(len(self.theirs)), strict=True)}


@dataclass(frozen=True)
class Format:
    """A naming of the weights.

    Attributes:
        name: what reports and the command line call it.
        rules: its table; the first rule that matches a key takes it.
        prefixes: what may stand before every key; the first is written.
        outside: how the keys begin that have no prefix even where the others have one.
        numerics: those of the code that the format belongs to, as the backbone's argument of that name; None where
            they are not known.
        ignored: patterns of keys that have no place in the model, and why.
    """
    name: str
    rules: tuple[Rule, ...]
    prefixes: tuple[str, ...] = ('', )
    outside: tuple[str, ...] = ()
    numerics: str | dict | None = None
    ignored: Mapping[str, str] = field(default_factory=dict)

    def plan(self, keys: Iterable[str], prefix: str = '') -> list[Step]:
        """The steps that make tensors of ours from those keys, each key used at most once."""
        free = {key.removeprefix(prefix): key for key in keys if key.startswith((prefix, *self.outside))}
        steps = []
        for rule in self.rules:
            found = [{indices: key for key in free if (indices := pattern.match(key)) is not None}
                     for pattern in rule.their_patterns]
            if rule.unless and any(rule.unless in key for key in free):
                continue
            for indices in found[0]:
                if all(indices in matches for matches in found):
                    parts = tuple(free.pop(matches[indices]) for matches in found)
                    steps.append(Step(rule.our_pattern.format(indices), parts, rule.transform))
        return steps

    def why_ignored(self, key: str, prefix: str) -> str | None:
        """Why that key has no place in a model, or None."""
        return next((reason for text, reason in self.ignored.items() for name in (key.removeprefix(prefix), key)
                     if Pattern(text).match(name) is not None), None)

    def export(self, state: Mapping[str, Tensor], heads: int) -> tuple[dict[str, Tensor], list[str]]:
        """Tensors of ours under their names, and those of ours that the format has no name for."""
        exported, left = {}, []
        rules = [rule for rule in self.rules if rule.writes(state)]
        for key, value in state.items():
            for rule in rules:
                indices = rule.our_pattern.match(key)
                if indices is None:
                    continue
                names = [pattern.format(indices) for pattern in rule.their_patterns]
                theirs = tuple(name if name.startswith(self.outside) else self.prefixes[0] + name for name in names)
                exported |= Step(key, theirs, rule.transform).unmake(value, heads)
                break
            else:
                left.append(key)
        return exported, left
