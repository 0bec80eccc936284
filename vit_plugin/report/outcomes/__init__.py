"""Outcomes of a validation: one file per task, and one path to scores, tables and pictures."""

from typing import Any

from .class_outcomes import ClassOutcomes
from .depth_outcomes import DepthOutcomes
from .instance_outcomes import InstanceOutcomes
from .map_outcomes import MapOutcomes, PanopticOutcomes
from .outcomes import Outcomes

KINDS: tuple[type[Outcomes], ...] = (
    InstanceOutcomes,
    PanopticOutcomes,
    MapOutcomes,
    DepthOutcomes,
    ClassOutcomes,
)


def kind_of(sample: Any) -> type[Outcomes] | None:
    """The kind of outcomes that a data sample has, by what is true and predicted in it."""
    return next((kind for kind in KINDS if kind.has(sample)), None)


__all__ = [
    'ClassOutcomes',
    'DepthOutcomes',
    'InstanceOutcomes',
    'MapOutcomes',
    'Outcomes',
    'PanopticOutcomes',
    'kind_of',
]
