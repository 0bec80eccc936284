"""Write the config of a request into the work directory."""

from collections.abc import Callable
from pathlib import Path

from vit_plugin.data.digits import write_digits
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import write_text

from .classification import classifier_recipe
from .detection import detector_recipe
from .recipe import Recipe, text_of
from .request import Request, counted
from .segmentation import segmentor_recipe

NAME = 'config.py'
DIGITS = 'digits'  # the data that is always at hand
# A task is a row here and a file with its recipe.
TASKS: dict[str, Callable[[Request], Recipe]] = {
    'classification': classifier_recipe, 'detection': detector_recipe, 'segmentation': segmentor_recipe}


def write_config(request: Request) -> Path:
    """Write ``config.py`` and the lists of images into the work directory, and print what they say.

    Returns:
        The path of the config.

    Raises:
        ConfigError: if the data cannot be trained on, or if the work directory has another ``config.py``, which is left
            as it is.
    """
    if request.task not in TASKS:
        raise ConfigError(f'--task {request.task!r} is not one of {", ".join(TASKS)}.')
    if request.data == DIGITS and not Path(DIGITS).exists():
        write_digits(Path(DIGITS))
        print(f"There was no folder {DIGITS!r}: it now has scikit-learn's handwritten digits.")
    recipe = TASKS[request.task](request)
    recipe.text = ' '.join(filter(None, [recipe.text, request.assumed()]))
    folder = Path(request.work_dir)
    files = {folder / name: text for name, text in {NAME: text_of(recipe, request), **recipe.files}.items()}
    for path, text in files.items():
        if path.is_file() and path.read_text() != text:
            raise ConfigError(f'The work directory {request.work_dir!r} has another {path.name}; continue with that '
                              f'one by vit-plugin train {folder / NAME}, or give another --work-dir.')
    for path, text in files.items():
        write_text(path, text)
    print(f'{request.data}: {counted(len(recipe.sections["classes"]), "class")}. {recipe.text}\nThe config is '
          f'{folder / NAME}.')
    return folder / NAME
