"""Write the config of a wish into the work directory."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vit_plugin.engine.checks import check_checkpoint, check_options
from vit_plugin.engine.config import config_from_text
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import write_text

from .classification import classifier_recipe
from .detection import detector_recipe
from .text import override, text_of
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
        recipe.sections = override(recipe.sections, options)
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
