"""The names that a command line takes, known before torch is imported."""

from collections.abc import Iterable
from typing import NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.project import declared
from vit_plugin.suggestions import alternatives, check_choice

DIGITS = 'digits'  # a folder that is written if it is not there
ALONE = ('classification', 'pretraining')  # tasks with one model around a backbone
CONTINUATIONS = tuple(declared('continuations'))
METHODS = ('mocov3', 'dino', 'dinov2', 'lejepa', 'mae', 'simmim', 'distill', *CONTINUATIONS)
AUGMENTS = ('mosaic', 'dense-o2o')
# The frameworks' own heads, see Project.models. The first of a task is its default.
MODELS = {
    (task, name): f'vit_plugin.from_folder.{module}:{name.replace("-", "_").upper()}'
    for task, module, names in (
        ('detection', 'box_models', ('retinanet', 'faster-rcnn', 'vitdet', 'dino')),
        ('instance', 'box_models', ('mask-rcnn', 'mask2former')),
        ('panoptic', 'box_models', ('mask2former',)),
        ('segmentation', 'map_models', ('segformer', 'upernet', 'mask2former', 'linear')),
    )
    for name in names
}


def models_of(task: str) -> dict[str, str]:
    """Where the models of a task are, by their names; the default is the first."""
    rows = {**MODELS, **declared('models')}
    return {name: place for (of, name), place in rows.items() if of == task}


# Depth has models of a project alone.
TASKS = tuple(
    task
    for task in (ALONE[0], 'detection', 'instance', 'segmentation', 'panoptic', 'depth', ALONE[1])
    if task in ALONE or models_of(task)
)


class TaskFlag(NamedTuple):
    """A flag that not every task takes: the tasks that do, and the remedy for the others."""

    tasks: tuple[str, ...]
    remedy: str = 'leave it out, or give such a task'


TASK_FLAGS = {
    'teacher': TaskFlag(
        ('classification', 'pretraining'),
        'leave it out, or pre-train the backbone with it by vit-plugin pretrain',
    ),
    'balance': TaskFlag(('classification', 'detection', 'instance')),
    'augment': TaskFlag(('detection',)),
    'tiles': TaskFlag(('detection', 'instance')),
    'depth_scale': TaskFlag(('depth',)),
    'patience': TaskFlag(TASKS[:-1]),
    'skip_invalid': TaskFlag(TASKS[:-1]),
}


def check_task_flags(task: str, flags: Iterable[str]) -> None:
    """Raise a ``ConfigError`` if a task does not take one of the flags that are given."""
    for flag in flags:
        tasks, remedy = TASK_FLAGS.get(flag, TaskFlag(TASKS))
        if task not in tasks:
            name = flag.replace('_', '-')
            raise ConfigError(f'--{name} needs --task {alternatives(tasks)}; {remedy}.')


def check_model(task: str, model: str | None) -> None:
    """Raise a ``ConfigError`` if a task has no such ``--model``."""
    if model and not models_of(task):
        raise ConfigError(
            f'--model {model!r}: {task} has one model around its backbone; give that by --arch, or '
            '--task detection, instance, panoptic, segmentation or depth.'
        )
    tasks = [one for one in TASKS if model in models_of(one)]
    if tasks and task not in tasks:
        raise ConfigError(f'--model {model} is for --task {" or ".join(tasks)}; give that task.')
    check_choice('--model', model, models_of(task))
