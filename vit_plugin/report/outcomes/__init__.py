"""What a validation found: what tasks share of it, and the kind that a sample has."""

from pkgutil import resolve_name
from typing import Any

from vit_plugin.task import of_tasks

from .outcomes import Outcomes


def outcomes_kind(sample: Any) -> type[Outcomes] | None:
    """The kind of outcomes that a data sample has, by what is true and predicted in it."""
    kinds = map(resolve_name, dict.fromkeys(of_tasks('outcomes').values()))
    return next((kind for kind in kinds if kind.has(sample)), None)


__all__ = ['Outcomes', 'kind_of']
