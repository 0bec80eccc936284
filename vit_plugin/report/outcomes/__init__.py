"""Outcomes of a validation: the base classes, and the choice of a class by a sample."""

from pkgutil import resolve_name
from typing import Any

from vit_plugin.task import task_declarations

from .outcomes import Outcomes


def outcomes_class(sample: Any) -> type[Outcomes] | None:
    """The class of outcomes for a data sample, by its ground truth and prediction."""
    classes = map(resolve_name, dict.fromkeys(task_declarations('outcomes').values()))
    return next((outcomes for outcomes in classes if outcomes.has(sample)), None)


__all__ = ['Outcomes', 'outcomes_class']
