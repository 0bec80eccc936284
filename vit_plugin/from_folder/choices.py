"""The choices of command line flags, known before torch is imported."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.project import declared_rows
from vit_plugin.suggestions import alternatives, check_choice
from vit_plugin.task import Option, tasks

DIGITS = 'digits'  # a folder that is written if it does not exist
DEFAULT_TASK, PRETRAINING = 'classification', 'pretraining'
CONTINUATIONS = tuple(declared_rows('continuations'))
METHOD_NAMES = ('mocov3', 'dino', 'dinov2', 'mae', 'simmim', 'distill', *CONTINUATIONS)
AUGMENTS = ('mosaic', 'dense-o2o')


def models_of(task: str) -> Mapping[str, str]:
    """The models of a task: name -> where it is defined. The first is the default."""
    if task not in tasks():
        return {}
    of_projects = {
        name: location
        for (model_task, name), location in declared_rows('models').items()
        if model_task == task
    }
    return {**tasks()[task].models, **of_projects}


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
    takers: dict[str, list[str]] = {}
    for task in _LABELED_TASKS:
        for flag in (*tasks()[task].flags, *tasks()[task].options):
            takers.setdefault(flag, []).append(task)
    rows = {flag: TaskFlag(tuple(names)) for flag, names in takers.items()}
    if 'teacher' in rows:
        remedy = 'leave it out, or pre-train the backbone with it by vit-plugin pretrain'
        rows['teacher'] = TaskFlag((*rows['teacher'].tasks, PRETRAINING), remedy)
    return rows | {flag: TaskFlag(_LABELED_TASKS) for flag in ('patience', 'skip_invalid')}


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
