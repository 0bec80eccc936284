"""Patterns of keys.

A pattern is a key with placeholders:

- ``{i}`` is a number.
- ``{i+1}`` is the other side's ``{i}`` plus one.
- ``{rest}`` is any ending.
- ``(a|b)`` is a choice. Reading accepts both, writing uses the first.
"""

import re

Indices = tuple[tuple[str, int | str], ...]
_TOKEN = re.compile(r'\{(?P<name>\w+?)(?:\+(?P<offset>\d))?\}|\((?P<choice>[^()]*)\)')


class Pattern:
    """A key with placeholders."""

    def __init__(self, text: str) -> None:
        self.text = text
        expression, position = '', 0
        self.offsets: dict[str, int] = {}
        for token in _TOKEN.finditer(text):
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

    def match(self, key: str) -> Indices | None:
        """The values of the placeholders in a key, or None if it does not match."""
        found = self.expression.fullmatch(key)
        if found is None:
            return None
        values = (
            (name, text if name == 'rest' else int(text) - self.offsets[name])
            for name, text in found.groupdict().items()
        )
        return tuple(sorted(values))

    def format(self, indices: Indices) -> str:
        """The key with values in place of the placeholders."""
        values = dict(indices)

        def fill(token: re.Match) -> str:
            if token['choice'] is not None:
                return token['choice'].partition('|')[0]
            value = values[token['name']]
            return value if isinstance(value, str) else str(value + self.offsets[token['name']])

        return _TOKEN.sub(fill, self.text)
