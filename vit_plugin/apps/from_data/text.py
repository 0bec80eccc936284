"""Settings as the text of a config that a person reads and changes."""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from textwrap import fill
from typing import Any

from mmengine.config import Config

from vit_plugin.errors import ConfigError

from .wish import Recipe, Wish, counted

# Before these sections stands a comment.
COMMENTS = {
    'work_dir': 'Logs, checkpoints and results.',
    'load_from': 'The weights to start from.',
    'train_pipeline': 'What is done to an image in training, and in a test.',
    'train_dataloader': 'The images.',
    'optim_wrapper': 'How it learns. The schedule is made for `schedule_length` epochs, and scaled to `max_epochs`.',
}


@dataclass(frozen=True)
class Name:
    """The name of an earlier section, which stands for its value."""
    section: str

    def __str__(self) -> str:
        return self.section


def text_of(recipe: Recipe, wish: Wish, options: Mapping[str, Any] | None = None) -> str:
    """The file of a recipe for a wish, to which ``--cfg-options`` were applied.

    Raises:
        ConfigError: for a name with ``{{``, which MMEngine replaces, or one that is no text.
    """
    title = f'{wish.arch} on {wish.data}, {counted(len(recipe.sections["classes"]), "class")}.'
    said = '\n\n'.join([title, f'    {wish.command(options)}', fill(recipe.text, 110)])
    escaped = said.replace('\\', r'\\').replace('"""', r'\"\"\"')
    lines = [f'"""{escaped}\n"""', '', Config(dict(_base_=list(recipe.bases))).pretty_text]
    for name, value in recipe.sections.items():
        lines += [f'# {COMMENTS[name]}'] if name in COMMENTS else []
        lines.append(Config({name: value}).pretty_text)
    text = '\n'.join(lines)
    try:
        text.encode()
    except UnicodeError:
        text = '{{'
    if '{{' in text:
        raise ConfigError(f'--data: a config for {wish.data!r} would not be read back the same; give the folder, its '
                          'classes and --cfg-options names without {{ and of usual characters.')
    return text


def override(sections: dict[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The sections with ``--cfg-options``.

    An option inside of what is written as a :class:`Name` changes a copy, and not what the name stands for. Options of
    sections that are names come last, so that their copies have the others.
    """
    cfg = Config(deepcopy(sections))
    for option in sorted(options, key=lambda option: isinstance(sections.get(option.partition('.')[0]), Name)):
        part: Any = cfg
        for key in option.split('.'):
            place: Any = int(key) if isinstance(part, list) and key.isdecimal() else key
            try:
                inner = part[place]
            except (KeyError, IndexError, TypeError):
                break  # a new setting
            if isinstance(inner, Name):
                part[place] = deepcopy(cfg[inner.section])
            part = part[place]
        cfg.merge_from_dict({option: options[option]})
    return cfg.to_dict()
