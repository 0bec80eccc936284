"""Write the config of a request, its image lists and the data report into the work directory."""

from pathlib import Path
from pkgutil import resolve_name

from anyfolder.complete import write_text
from anyfolder.facts import as_text, facts_of
from anyfolder.garbage import without_collection
from anyfolder.layouts.answers import answering
from vit_plugin.data.digits import write_digits
from vit_plugin.engine.checkpoints.found_checkpoint import holds_run
from vit_plugin.errors import ConfigError
from vit_plugin.files.place import make_paths_relative
from vit_plugin.suggestions import check_choice
from vit_plugin.task import tasks

from . import data_report
from .choices import DIGITS, PRETRAINING, TASKS
from .folder_reading import naming_train_flags
from .recipe import PlannedConfig, config_text, describe_contents, plan_config
from .request import Request
from .run_folder import CONFIG_NAME, RELEASED, free_folder
from .task_recipe import TaskRecipe

PRETRAINING_RECIPE = 'vit_plugin.from_folder.pretraining:Pretraining'


def recipe_class(task: str) -> type[TaskRecipe]:
    """The recipe that a task declares."""
    return resolve_name(PRETRAINING_RECIPE if task == PRETRAINING else tasks()[task].recipe)


@without_collection()
def write_config(request: Request, resume: bool = False, check: bool = False) -> Path:
    """Read the data of a request, plan its training, and write the files of both.

    These are ``config.py``, the image lists and ``data_report.*``. A summary is printed. All files
    go into the work directory. If it already holds a run, that run is continued or another folder
    is chosen, see :func:`~vit_plugin.from_folder.run_folder.free_folder`.

    Args:
        request: what to train. Its ``work_dir`` is set to the chosen folder.
        resume: whether to continue a run.
        check: whether to decode all images instead of a sample.

    Returns:
        The path of the config.

    Raises:
        ConfigError: if the data cannot be trained on, or if a given work directory holds another
            config or run, which is left unchanged.
    """
    check_choice('--task', request.task, TASKS)
    task_recipe = read_data(request, decode_all=check)
    return write_files(task_recipe, plan_config(task_recipe), resume)


def read_data(request: Request, decode_all: bool) -> TaskRecipe:
    """Read and check the folder of a request, and the weights that its training begins with."""
    task_recipe = recipe_class(request.task)(request, decode_all)
    if request.data == DIGITS and not Path(DIGITS).exists():
        write_digits(Path(DIGITS))
        print(f"Created the folder {DIGITS!r} with scikit-learn's handwritten digits.")
    with naming_train_flags(), answering(request.data, request.task):
        bands = task_recipe.listing.bands
    if bands and task_recipe.multispectral_preprocessor is None:
        takers = ' and '.join(
            name for name in TASKS if recipe_class(name).multispectral_preprocessor
        )
        raise ConfigError(
            f'--data: the images in {request.data!r} have {bands} bands, of which there is '
            f'no {request.task}, but {takers}; give photographs.'
        )
    return task_recipe


def write_files(task_recipe: TaskRecipe, config: PlannedConfig, resume: bool) -> Path:
    """Write the files of a training into a free work directory, see :func:`write_config`."""
    request, listing = task_recipe.request, task_recipe.listing
    planned_folder = request.work_dir
    files = _files(config, request, planned_folder)
    request.work_dir = free_folder(
        planned_folder, files, given=not request.chooses_folder, resume=resume
    )
    if request.work_dir != planned_folder:  # the config contains its folder
        files = _files(config, request, planned_folder)
    folder = Path(request.work_dir)
    facts = facts_of(listing)
    if not holds_run(folder):
        task_recipe.write_maps(folder)
        files['data_report.md'] = data_report.report_as_markdown(facts)
        files['data_report.json'] = data_report.as_json(facts)
        for name, text in files.items():
            write_text(folder / name, text)
        (folder / RELEASED).unlink(missing_ok=True)
    # Without classes, the text already states what describe_contents returns: the number of images.
    classes = f'{describe_contents(listing)}. ' if listing.classes else ''
    with naming_train_flags():  # the summary names a flag
        decoded = task_recipe.probes.summary
    print(f'{request.data}: {classes}{config.text}', as_text(facts), decoded, sep='\n')
    if request.work_dir != planned_folder and not resume:
        print(f'{planned_folder} holds another run or config; this one has a folder of its own.')
    print(f'The config is {folder / CONFIG_NAME}.')
    return folder / CONFIG_NAME


def _files(config: PlannedConfig, request: Request, planned_folder: str) -> dict[str, str]:
    """The files of a training: name -> content.

    Args:
        config: the config to be written.
        request: the request with the final work directory.
        planned_folder: the work directory whose paths are in ``config``.
    """
    text = make_paths_relative(config_text(config, request), planned_folder, request.work_dir)
    return {CONFIG_NAME: text, **config.files}
