"""The classes of a built data set."""

from typing import Any


def classes_of(dataset: Any) -> tuple[str, ...]:
    """The names of the classes of a data set; empty if it has none."""
    classes = (getattr(dataset, 'metainfo', None) or {}).get('classes') or ()
    return tuple(map(str, (classes,) if isinstance(classes, str) else classes))
