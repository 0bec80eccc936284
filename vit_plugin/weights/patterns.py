"""Patterns of a checkpoint's keys, which rules match in one format and fill in for the other.

A pattern is a key with placeholders:

- ``{i}``, ``{j}`` and ``{k}`` are numbers.
- ``{i+1}`` is a number that is one larger than ``{i}`` in the other format's key.
- ``{rest}`` is any ending.
- ``(a|b)`` is a choice. Reading accepts any of them, writing uses the first.
"""

import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator

# The placeholders of a key and their values, sorted by name: (('i', 3), ('rest', 'weight')).
PlaceholderValues = tuple[tuple[str, int | str], ...]
_TOKEN = re.compile(r'\{(?P<name>\w+?)(?:\+(?P<offset>\d))?\}|\((?P<choice>[^()]*)\)')


class Pattern:
    """A key with placeholders."""

    def __init__(self, text: str) -> None:
        self.text = text
        expression, position = '', 0
        self.offsets: dict[str, int] = {}
        tokens = list(_TOKEN.finditer(text))
        # Every matching key begins and ends with these.
        self.start = text[: tokens[0].start()] if tokens else text
        self.end = text[tokens[-1].end() :] if tokens else text
        for token in tokens:
            expression += re.escape(text[position : token.start()])
            position = token.end()
            if token['choice'] is not None:
                expression += '(?:' + '|'.join(map(re.escape, token['choice'].split('|'))) + ')'
            else:
                self.offsets[token['name']] = int(token['offset'] or 0)
                expression += (
                    f'(?P<{token["name"]}>'
                    + (r'.+' if token['name'] == 'rest' else '[0-9]{1,6}')
                    + ')'
                )
        self.expression = re.compile(expression + re.escape(text[position:]))

    def match(self, key: str) -> PlaceholderValues | None:
        """The values of the placeholders in a key, or None if it does not match."""
        match = self.expression.fullmatch(key)
        if match is None:
            return None
        texts = match.groupdict()
        numbers = {
            name: int(text) - self.offsets[name] for name, text in texts.items() if name != 'rest'
        }
        if any(number < 0 for number in numbers.values()):
            return None
        return tuple(sorted({**texts, **numbers}.items()))

    def format(self, placeholder_values: PlaceholderValues) -> str:
        """The key with values in place of the placeholders."""
        values = dict(placeholder_values)

        def fill(token: re.Match) -> str:
            if token['choice'] is not None:
                return token['choice'].partition('|')[0]
            value = values[token['name']]
            return value if isinstance(value, str) else str(value + self.offsets[token['name']])

        return _TOKEN.sub(fill, self.text)


class KeyIndex:
    """An index of keys by prefix and suffix, so that a pattern is compared with few keys."""

    def __init__(self, keys: Iterable[str]) -> None:
        self.positions = {key: position for position, key in enumerate(keys)}
        self.forward = sorted(self.positions)
        self.backward = sorted(key[::-1] for key in self.positions)

    def matching(self, pattern: Pattern) -> Iterator[tuple[str, PlaceholderValues]]:
        """The keys that match and their placeholders, in the order of the indexed keys."""
        by_start = _beginning_with(pattern.start, self.forward)
        by_end = _beginning_with(pattern.end[::-1], self.backward)
        candidates = by_start if len(by_start) <= len(by_end) else [key[::-1] for key in by_end]
        for key in sorted(candidates, key=self.positions.__getitem__):
            if (values := pattern.match(key)) is not None:
                yield key, values


def _beginning_with(start: str, ordered: list[str]) -> list[str]:
    """The texts of a sorted list that begin with ``start``."""
    first = bisect_left(ordered, start)
    last = bisect_left(ordered, start + chr(sys.maxunicode))
    return ordered[first:last]
