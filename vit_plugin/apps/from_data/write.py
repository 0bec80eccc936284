"""Write the config of a wish into the work directory."""

from collections.abc import Callable, Iterator, Mapping
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

from mmengine.config import Config

from vit_plugin.engine.checks import check_checkpoint, check_options
from vit_plugin.engine.config import config_from_text
from vit_plugin.errors import ConfigError
from vit_plugin.writing import write_text

from .classification import classifier_recipe
from .detection import detector_recipe
from .text import text_of
from .wish import Recipe, Wish, counted

NAME = 'config.py'
MAKERS: dict[str, Callable[[Wish], Recipe]] = {'classification': classifier_recipe, 'detection': detector_recipe}


def write_config(wish: Wish, options: Mapping[str, Any] | None = None) -> Path:
    """Write ``config.py`` and the lists of images into the work directory, and say what they say.

    Args:
        wish: what the user wants.
        options: ``--cfg-options``; they become part of the config.

    Returns:
        The path of the config.

    Raises:
        ConfigError: if the data cannot be trained on, if an option has an impossible name, or if the work directory has
            another ``config.py``, which is left as it is.
    """
    check_checkpoint(wish.weights)
    recipe = MAKERS[wish.task](wish)
    recipe.text = ' '.join(filter(None, [recipe.text, wish.assumed()]))
    if options:
        check_options(config_from_text(text_of(recipe, wish)), options)
        apply_options(recipe, options)
    folder = Path(wish.work_dir)
    files = {NAME: text_of(recipe, wish, options), **recipe.files}
    for name, text in files.items():
        path = folder / name
        if path.is_file() and path.read_text() != text:
            raise ConfigError(f'The work directory {wish.work_dir!r} has another {name}; go on with that one by '
                              f'vit-plugin train {folder / NAME}, or give another --work-dir.')
    for name, text in files.items():
        write_text(folder / name, text)
    print(f'{wish.data}: {counted(len(recipe.sections["classes"]), "class")}. {recipe.text}\nThe config is '
          f'{folder / NAME}.')
    return folder / NAME


def apply_options(recipe: Recipe, options: Mapping[str, Any]) -> None:
    """Change a recipe, in place, as ``--cfg-options`` changes a config.

    What is written by the name of an earlier section changes with that section. An option that changes it in its own
    place makes it another one.
    """
    for option, value in options.items():
        section = option.partition('.')[0]
        given = {section: deepcopy(recipe.sections[section])} if section in recipe.sections else {}
        part = Config(given)
        part.merge_from_dict({option: value})
        names = list(recipe.sections)
        earlier = names[:names.index(section)] if section in names else names
        known = {id(part) for name in earlier for part in _containers(recipe.sections[name])}
        recipe.sections[section] = _changed(recipe.sections.get(section), part.to_dict()[section], known)


def _containers(value: Any) -> Iterator[dict | list]:
    """The dicts and lists of a value, itself included."""
    if isinstance(value, (dict, list)):
        yield value
        for entry in value.values() if isinstance(value, dict) else value:
            yield from _containers(entry)


def _changed(old: Any, new: Any, known: set[int]) -> Any:
    """``new`` in place of what ``old`` holds, where that is a dict or list of the same kind and not a known one."""
    if not isinstance(old, (dict, list)) or isinstance(old, dict) != isinstance(new, dict):
        return new
    if old == new:
        return old
    if id(old) in known:
        old = copy(old)
    if isinstance(old, dict):
        entries = {key: _changed(old.get(key), value, known) for key, value in new.items()}
        old.clear()
        old.update(entries)
    else:
        old[:] = [_changed(old[i] if i < len(old) else None, value, known) for i, value in enumerate(new)]
    return old
