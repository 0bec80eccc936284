"""Patterns of file paths, such as ``'{split}/images/{name}.*'``.

A layout uses them to select images and label files. The parts of a path that a pattern names are
its fields. They relate files: ``images/{name}.jpg`` and ``labels/{name}.txt``.

============== ==============================================================
``*``          any text within the name of a folder or file
``**``         any folders, or none
``{name}``     as ``*``, kept as the field ``name``
``{name:**}``  any folders, kept as the field ``name``
``{name:...}`` what a regular expression without groups matches, kept as the field ``name``
============== ==============================================================

A field that occurs twice in a pattern must have the same text in both places. The fields ``split``,
``class`` and ``group`` state the split, the class and the group of an image. The text of ``_`` is
not kept.
"""

import re
from collections.abc import Mapping

from anyfolder.errors import InputError
from anyfolder.readers.class_names import nfc

# Maximum in the name of a folder or file: with more, matching could backtrack for very long.
MAX_WILDCARDS = 4
TOKEN = re.compile(
    r'\*\*/|\*\*$|\*|\{(?P<field>[A-Za-z_]\w*)(?::(?P<form>[^{}]*(?:\{\d+(?:,\d*)?\}[^{}]*)*))?\}|[{}]'
)
FORMS = {None: '[^/]*', '**': '.*'}  # the expressions of `*` or `{name}`, and of `{name:**}`
# The repetitions in a regular expression, each of which counts as a wildcard.
REPEATS = re.compile(r'(?<!\\)[*+?]|\{\d')


class PathPattern:
    """A pattern of paths below a folder.

    Args:
        text: the pattern, with ``/``.
        where: the place where the pattern is written, for messages.

    Attributes:
        text: the pattern.
        fields: the names of its fields, without ``_``.

    Raises:
        InputError: if the pattern leads out of the folder, or is invalid.
    """

    def __init__(self, text: str, where: str) -> None:
        self.text, self.fields = text, frozenset[str]()
        what = f'{where}: {text!r}'
        parts = text.split('/')
        if text.count('**') > 2:
            raise InputError(f'{what} has more than two **; name the folders between them.')
        if text.startswith(('/', '~')) or '\\' in re.sub(r'\{[^/]*\}', '', text) or '..' in parts:
            raise InputError(
                f'{what} is not a path below the folder; write it relative to the folder, with /.'
            )
        expression = ''
        for part in re.split(r'(?<=/)', nfc(text)):  # `match` composes letters, too
            expression += self._expression_of(part, what)
        try:
            self._matches = re.compile(expression).fullmatch
        except (re.error, OverflowError) as error:  # the latter for too large a repetition
            raise InputError(f'{what} is not a regular expression ({error}); correct it.') from None

    def _expression_of(self, part: str, what: str) -> str:
        """The regular expression of the name of a folder or file; adds its fields to ``fields``."""
        expression, end, repeats = '', 0, 0
        for token in TOKEN.finditer(part):
            expression += re.escape(part[end : token.start()])
            end, field, form = token.end(), token['field'], token['form']
            if token[0] in ('{', '}'):
                raise InputError(
                    f'{what} has an unpaired {token[0]}; write fields such as {{name}}.'
                )
            if token[0].startswith('**'):
                if token.start():
                    raise InputError(f'{what} has ** within a name; write ** between /, or use *.')
                expression += '(?:[^/]+/)*' if token[0].endswith('/') else '.*'
                continue
            form = FORMS.get(form, form)
            if '(' in form.replace(r'\(', ''):
                raise InputError(f'{what} has a group ( within a field; remove the group.')
            repeats += len(REPEATS.findall(form))
            if field in (None, '_'):
                expression += f'(?:{form})'
            elif field in self.fields:
                expression += f'(?P={field})'
            else:
                self.fields |= {field}
                expression += f'(?P<{field}>{form})'
        if repeats > MAX_WILDCARDS:
            raise InputError(
                f'{what} has more than {MAX_WILDCARDS} wildcards in a name; use fewer.'
            )
        return expression + re.escape(part[end:])

    def match(self, path: str) -> Mapping[str, str] | None:
        """The fields in a path with ``/`` below the folder, or None if it does not match."""
        found = self._matches(nfc(path))
        return found.groupdict() if found else None
