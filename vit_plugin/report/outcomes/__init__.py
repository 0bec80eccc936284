"""Outcomes of a validation: ground truth and predictions, from which scores and pictures are made.

Each task of :mod:`vit_plugin.tasks` declares a subclass of :class:`Outcomes`.
"""

from pkgutil import resolve_name
from typing import Any

from vit_plugin.task import task_declarations

from .outcomes import Outcomes


def outcomes_class(sample: Any) -> type[Outcomes] | None:
    """The class of outcomes for a validated data sample; None if no task knows its fields."""
    classes = map(resolve_name, dict.fromkeys(task_declarations('outcomes').values()))
    return next((outcomes for outcomes in classes if outcomes.matches(sample)), None)


__all__ = ['Outcomes', 'outcomes_class']
