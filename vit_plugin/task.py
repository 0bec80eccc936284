"""What a task declares: what is asked of an image is a folder in ``vit_plugin/tasks``.

The ``__init__.py`` of a folder says what the task is, as ``TASK``. The rest of the package reads
these tables and names no task, so a folder can be left out. Declarations import nothing: objects
are named as ``'module:name'``, and imported when they are used.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Option(NamedTuple):
    """A flag of ``vit-plugin train`` that one task alone takes: a number.

    Attributes:
        kind: ``int`` or ``float``.
        least: the smallest value.
        metavar: what the value is, in ``--help``.
        help: the rest of its line there.
    """

    kind: type
    least: float
    metavar: str
    help: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """What a task is.

    Attributes:
        place: its place among the others, in lists and messages.
        recipe: the :class:`~vit_plugin.from_folder.task_recipe.TaskRecipe` of a folder of data.
        chooses_model: whether ``--model`` names what is built around the backbone. Then the task is
            there if at least one model is.
        models: the :class:`~vit_plugin.config.task_model.TaskModel` of each name, the default
            first. Projects declare more, see :attr:`vit_plugin.project.Project.models`.
        flags: the fields of a :class:`~vit_plugin.from_folder.request.Request` that the task takes
            and not every task does.
        options: flags that no other task has, by the names of their values in ``Request.options``.
        extends: the tasks whose folders this one imports.
        outcomes: the :class:`~vit_plugin.report.outcomes.Outcomes` of a validation.
        labels: the :class:`~vit_plugin.report.pictures.data_labels.DataLabels` of a data set.
        prediction: the :class:`~vit_plugin.inference.predictions.Prediction` for an image: how it
            is read, written, drawn and exported.
        framework: the ``default_scope`` of configs whose models are of this task, unless a head is
            that of another.
        heads: attributes of a model, each with the name of a class that only this task's models
            have there.
        deployed: adapters of graphs, by the attribute of the model and, where that does not decide,
            the name of its class.
        hub: the name of the task on Hugging Face's hub.
        says: what a model does with a picture, in words.
        registered: for each registry of :mod:`vit_plugin.registry`, the module of each class.
    """

    place: int
    recipe: str
    chooses_model: bool = True
    models: Mapping[str, str] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    options: Mapping[str, Option] = field(default_factory=dict)
    extends: tuple[str, ...] = ()
    outcomes: str = ''
    labels: str = ''
    prediction: str = ''
    framework: str = ''
    heads: tuple[tuple[str, str], ...] = ()
    deployed: Mapping[tuple[str, str], str] = field(default_factory=dict)
    hub: str = ''
    says: str = ''
    registered: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@cache
def tasks() -> dict[str, Task]:
    """The tasks that are here, by the names of their folders, in their places."""
    path = str(Path(__file__).with_name('tasks'))
    folders = [module.name for module in pkgutil.iter_modules([path]) if module.ispkg]
    found = {name: import_module(f'vit_plugin.tasks.{name}').TASK for name in folders}
    return dict(sorted(found.items(), key=lambda pair: (pair[1].place, pair[0])))


def of_tasks(table: str) -> dict[str, Any]:
    """What each task declares under this name, such as ``'recipe'``, of those that declare it."""
    return {name: value for name, task in tasks().items() if (value := getattr(task, table))}
