"""Find out which task a model is for, by its head and its framework."""

from typing import Any

from mmengine.config import Config

from vit_plugin.config import entry_for_framework
from vit_plugin.task import task_declarations

# MMPretrain's base class of multi-label heads, and the replacement of a head without MMPretrain.
MULTI_LABEL_HEADS = ('MultiLabelClsHead', 'MultiLabelLinearClsHead')


def has_component(model: Any, component: str, name: str) -> bool:
    """Whether an attribute of a model is an instance of the class with this name, or of a subclass.

    By the name, so that the class need not be imported.
    """
    return name in (base.__name__ for base in type(getattr(model, component, None)).__mro__)


def is_multi_label(model: Any) -> bool:
    """Whether the scores of a classifier's classes are independent, from 0 to 1 each."""
    return any(has_component(model, 'head', name) for name in MULTI_LABEL_HEADS)


def find_task(model: Any, cfg: Config) -> str:
    """The task of a model's head, or else of its framework.

    Raises:
        ConfigError: if the ``default_scope`` of the config is not a framework.
    """
    for task, heads in task_declarations('heads').items():
        if any(has_component(model, *head) for head in heads):
            return task
    return entry_for_framework(
        {scope: task for task, scope in task_declarations('framework').items()}, cfg
    )
