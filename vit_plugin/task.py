"""The declaration of a task, such as detection, as a folder in ``vit_plugin/tasks``.

The ``__init__.py`` of a folder declares the task, as ``TASK``. The rest of the package reads these
tables and names no task, so a folder can be removed. Declarations import nothing: objects are named
as ``'module:name'``, and imported when they are used.
"""

import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Option(NamedTuple):
    """A numeric flag of ``vit-plugin train`` for one task only.

    Attributes:
        kind: ``int`` or ``float``.
        minimum: the smallest value.
        metavar: the name of the value in ``--help``.
        help: the description in ``--help``.
    """

    kind: type
    minimum: float
    metavar: str
    help: str


@dataclass(frozen=True, kw_only=True)
class Task:
    """The declaration of a task.

    Attributes:
        position: its place in lists and messages.
        recipe: the :class:`~vit_plugin.from_folder.task_recipe.TaskRecipe` for a folder of data.
        chooses_model: whether ``--model`` chooses the model around the backbone. The task then
            exists only if it has at least one model.
        models: the :class:`~vit_plugin.config.task_model.TaskModel` of each name, the default
            first. Projects declare more, see :attr:`vit_plugin.project.Project.models`.
        flags: the fields of a :class:`~vit_plugin.from_folder.request.Request` that this task
            supports, but not every task.
        options: flags that no other task has, by their names in ``Request.options``.
        extends: the tasks whose folders this one imports. A test compares them with the imports.
        outcomes: the :class:`~vit_plugin.report.outcomes.Outcomes` of a validation.
        labels: the :class:`~vit_plugin.report.pictures.data_labels.DataLabels` of a data set.
        prediction: the :class:`~vit_plugin.inference.predictions.Prediction` of an image, which is
            written, drawn and exported.
        framework: the ``default_scope`` of configs for this task, unless their head belongs to
            another task.
        heads: attributes of a model -> the class name that only models of this task have there.
        deployed: export adapters, by the attribute of the model and, if needed, the name of its
            class.
        hub: the name of the task on Hugging Face's hub, such as ``'object-detection'``.
        written: the :class:`~vit_plugin.deploy.hub.written_task.WrittenTask`: how models are
            written for other libraries, if these have such models.
        ability: completes the sentence "This model ...".
        registered: for each registry of :mod:`vit_plugin.registry`, the module of each class.
    """

    position: int
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
    written: str = ''
    ability: str = ''
    registered: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@cache
def tasks() -> dict[str, Task]:
    """All tasks by folder name, ordered by ``position``."""
    path = str(Path(__file__).with_name('tasks'))
    folders = [module.name for module in pkgutil.iter_modules([path]) if module.ispkg]
    declarations = {name: import_module(f'vit_plugin.tasks.{name}').TASK for name in folders}
    return dict(sorted(declarations.items(), key=lambda pair: (pair[1].position, pair[0])))


def task_declarations(table: str) -> dict[str, Any]:
    """The declarations with this name, such as ``'recipe'``, of all tasks that have it."""
    return {name: value for name, task in tasks().items() if (value := getattr(task, table))}
