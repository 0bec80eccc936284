"""Outcomes of a validation: the base classes, and the choice of a kind by a sample."""

from pkgutil import resolve_name
from typing import Any

from vit_plugin.task import of_tasks

from .outcomes import Outcomes


def outcomes_kind(sample: Any) -> type[Outcomes] | None:
    """The kind of outcomes for a data sample, by its ground truth and prediction."""
    kinds = map(resolve_name, dict.fromkeys(of_tasks('outcomes').values()))
    return next((kind for kind in kinds if kind.has(sample)), None)


__all__ = ['Outcomes', 'kind_of']
