"""The allowed values of command line flags, and which tasks take which flag.

Nothing here imports torch, so that the command line rejects a wrong flag within a fraction of a
second. The tasks come from :mod:`vit_plugin.task`; projects add models and methods by the tables
``models`` and ``continuations`` of their declarations, see :mod:`vit_plugin.project`.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.project import declared_rows
from vit_plugin.suggestions import alternatives, check_choice
from vit_plugin.task import Option, tasks

DIGITS = 'digits'  # value of --data; this folder is written if it does not exist
DEFAULT_TASK, PRETRAINING = 'classification', 'pretraining'
# Methods of projects that continue the pre-training of a model.
CONTINUATIONS = tuple(declared_rows('continuations'))
# The keys of methods.METHODS.
METHOD_NAMES = ('mocov3', 'dino', 'dinov2', 'mae', 'simmim', 'distill', *CONTINUATIONS)
AUGMENTS = ('mosaic', 'dense-o2o')  # the keys of mixing.PHASES


def models_of(task: str) -> Mapping[str, str]:
    """The models of a task: name -> where it is defined. The first is the default."""
    if task not in tasks():
        return {}
    project_models = {
        name: location
        for (model_task, name), location in declared_rows('models').items()
        if model_task == task
    }
    return {**tasks()[task].models, **project_models}


# The tasks with labels. One that lost all its models with their projects is left out.
_LABELED_TASKS = tuple(
    name for name, task in tasks().items() if models_of(name) or not task.chooses_model
)
TASKS = (*_LABELED_TASKS, PRETRAINING)
TASK_OPTIONS: dict[str, Option] = {
    name: option for task in _LABELED_TASKS for name, option in tasks()[task].options.items()
}


class TaskFlag(NamedTuple):
    """A flag that only some tasks take, and the remedy for the others."""

    tasks: tuple[str, ...]
    remedy: str = 'leave it out, or give such a task'


def _task_flags() -> dict[str, TaskFlag]:
    """The flags that not every task takes, by their names in a :class:`Request`."""
    takers: dict[str, list[str]] = {}
    for task in _LABELED_TASKS:
        for flag in (*tasks()[task].flags, *tasks()[task].options):
            takers.setdefault(flag, []).append(task)
    flags = {flag: TaskFlag(tuple(names)) for flag, names in takers.items()}
    if 'teacher' in flags:
        remedy = 'leave it out, or pre-train the backbone with it by vit-plugin pretrain'
        flags['teacher'] = TaskFlag((*flags['teacher'].tasks, PRETRAINING), remedy)
    return flags | {flag: TaskFlag(_LABELED_TASKS) for flag in ('patience', 'skip_invalid')}


TASK_FLAGS = _task_flags()


def check_task_flags(task: str, given: Mapping[str, Any]) -> None:
    """Raise a ``ConfigError`` if a flag with a value is not one of the task's."""
    for flag, (takers, remedy) in TASK_FLAGS.items():
        if given.get(flag) and task not in takers:
            name = flag.replace('_', '-')
            raise ConfigError(f'--{name} needs --task {alternatives(takers)}; {remedy}.')


def check_model(task: str, model: str | None) -> None:
    """Raise a ``ConfigError`` if a task has no such ``--model``."""
    if model and not models_of(task):
        raise ConfigError(
            f'--model {model!r}: {task} has one model around its backbone; give that by --arch, or '
            f'--task {alternatives(filter(models_of, TASKS))}.'
        )
    takers = [taker for taker in TASKS if model in models_of(taker)]
    if takers and task not in takers:
        raise ConfigError(f'--model {model} is for --task {" or ".join(takers)}; give that task.')
    check_choice('--model', model, models_of(task))
