"""Settings as the text of a config that a person reads and changes."""

from collections.abc import Iterable, Mapping
from textwrap import fill
from typing import Any

from vit_plugin.engine.config import config_from_text
from vit_plugin.errors import ConfigError

from .wish import Recipe, Wish, counted

WIDTH = 110
# Before these sections stands a comment.
COMMENTS = {
    'work_dir': 'Logs, checkpoints and results.',
    'load_from': 'The weights to start from.',
    'train_pipeline': 'What is done to an image in training, and in a test.',
    'train_dataloader': 'The images.',
    'optim_wrapper': 'How it learns. The schedule is made for `schedule_length` epochs, and scaled to `max_epochs`.',
}


def text_of(recipe: Recipe, wish: Wish, options: Mapping[str, Any] | None = None) -> str:
    """The file of a recipe for a wish, to which ``--cfg-options`` were applied.

    Raises:
        ConfigError: if it would not be read back the same, such as for a name with ``{{``, which MMEngine replaces.
    """
    text = _written(recipe, wish, options)
    try:
        same = '{{' not in text and _agree(config_from_text(text), recipe.sections)
    except (SyntaxError, UnicodeError):
        same = False
    if not same:
        raise ConfigError(f'--data: a config for {wish.data!r} would not be read back the same; give the folder, its '
                          'classes and --cfg-options names without {{ and of usual characters.')
    return text


def _agree(cfg: Mapping[str, Any], sections: Mapping[str, Any]) -> bool:
    """Whether a config has the texts and lists of the sections. Dicts are merged with those of the bases."""
    return all(cfg[name] == value for name, value in sections.items() if not isinstance(value, dict))


def _written(recipe: Recipe, wish: Wish, options: Mapping[str, Any] | None) -> str:
    title = f'{wish.arch} on {wish.data}, {counted(len(recipe.sections["classes"]), "class")}.'
    said = '\n\n'.join([title, f'    {wish.command(options)}', fill(recipe.text, WIDTH)])
    escaped = said.replace('\\', r'\\').replace('"""', r'\"\"\"')
    lines = [f'"""{escaped}\n"""', '',
             f'_base_ = {_text(list(recipe.bases), {}, 9)}']
    known: dict[int, str] = {}
    for name, value in recipe.sections.items():
        if name in COMMENTS:
            lines += ['', f'# {COMMENTS[name]}']
        elif name == 'model':
            lines.append('')
        lines.append(f'{name} = {_text(value, known, len(name) + 3)}')
        if isinstance(value, (dict, list)) and value:
            known.setdefault(id(value), name)
    return '\n'.join(lines) + '\n'


def _text(value: Any, known: Mapping[int, str], column: int, indent: int = 0) -> str:
    """The text of a value, on one line if it fits after so many characters."""
    if id(value) in known:
        return known[id(value)]
    short = _flat(value, known)
    if column + indent + len(short) <= WIDTH or not isinstance(value, (dict, list, tuple)):
        return short
    inner = ' ' * (indent + 4)
    if isinstance(value, dict):
        rows = [f'{key}={_text(entry, known, len(key) + 6, indent + 4)}' for key, entry in value.items()]
        opening, closing = 'dict(', ')'
    elif all(isinstance(entry, (str, int, float)) for entry in value):
        rows, (opening, closing) = _filled([repr(entry) for entry in value], WIDTH - indent - 5), _brackets(value)
    else:
        rows = [_text(entry, known, 5, indent + 4) for entry in value]
        opening, closing = _brackets(value)
    return f'{opening}\n{inner}' + f',\n{inner}'.join(rows) + f',\n{" " * indent}{closing}'


def _flat(value: Any, known: Mapping[int, str]) -> str:
    """The text on one line."""
    if id(value) in known:
        return known[id(value)]
    if isinstance(value, dict):
        return f'dict({", ".join(f"{key}={_flat(entry, known)}" for key, entry in value.items())})'
    if isinstance(value, (list, tuple)):
        opening, closing = _brackets(value)
        return opening + ', '.join(_flat(entry, known) for entry in value) + (
            ',' if isinstance(value, tuple) and len(value) == 1 else '') + closing
    return repr(value)


def _brackets(value: list | tuple) -> tuple[str, str]:
    return ('[', ']') if isinstance(value, list) else ('(', ')')


def _filled(entries: Iterable[str], width: int) -> list[str]:
    """As many entries on a line as fit."""
    lines: list[str] = []
    for entry in entries:
        if lines and len(lines[-1]) + len(entry) + 2 <= width:
            lines[-1] += f', {entry}'
        else:
            lines.append(entry)
    return lines
