"""Detect whether a tensor has changed since something was computed from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class ChangeDetector(NamedTuple):
    """A way to detect changes of a tensor.

    Attributes:
        state_of: the tensor -> its state.
        has_state: a state and the tensor -> whether it still has this state.
    """

    state_of: Callable[[Tensor | None], Any]
    has_state: Callable[[Any, Tensor | None], bool]


def change_detector(frozen: bool) -> ChangeDetector:
    """How to detect changes of a tensor: by its values, or if ``frozen``, by identity and version.

    ``p.data.copy_`` and collectives of ``torch.distributed`` do not change the version.
    """
    return ChangeDetector(_state, _is_unwritten) if frozen else ChangeDetector(_values, _has_values)


def _values(source: Tensor | None) -> Tensor | None:
    return None if source is None else source.clone()


def _has_values(values: Tensor | None, source: Tensor | None) -> bool:
    if values is None or source is None:
        return values is source
    return (
        values.dtype == source.dtype
        and values.device == source.device
        and torch.equal(values, source)
    )


def _state(source: Tensor | None) -> tuple[Any, ...]:
    return (source,) if source is None else (source, source.data_ptr(), source._version)


def _is_unwritten(state: tuple[Any, ...], source: Tensor | None) -> bool:
    return state[0] is source and state[1:] == _state(source)[1:]
