"""Find out which task a model is for, by its head and its framework."""

from typing import Any

from mmengine.config import Config

from vit_plugin.config import of_framework
from vit_plugin.task import of_tasks


def has_part(model: Any, part: str, name: str) -> bool:
    """Whether an attribute of a model is an instance of the class with this name."""
    return name in (base.__name__ for base in type(getattr(model, part, None)).__mro__)


def find_task(model: Any, cfg: Config) -> str:
    """The task of a model's head, or else of its framework.

    Raises:
        ConfigError: if the ``default_scope`` of the config is not a framework.
    """
    for task, heads in of_tasks('heads').items():
        if any(has_part(model, *head) for head in heads):
            return task
    return find_framework_task(cfg)


def find_framework_task(cfg: Config) -> str:
    """The task of the framework that a config names, see :func:`find_task`."""
    return of_framework({scope: task for task, scope in of_tasks('framework').items()}, cfg)
