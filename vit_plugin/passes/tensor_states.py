"""Detect whether a tensor has changed since something was computed from it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class Memory(NamedTuple):
    """A way to detect changes of a tensor.

    Attributes:
        remember: the tensor -> its state.
        same: a state and the tensor -> whether it still has this state.
    """

    remember: Callable[[Tensor | None], Any]
    same: Callable[[Any, Tensor | None], bool]


def memory(frozen: bool) -> Memory:
    """Compare values, since some writes leave no trace; if ``frozen``, version and identity.

    Writes without a trace are ``p.data.copy_`` and collectives of ``torch.distributed``.
    """
    return Memory(_state, _is_unwritten) if frozen else Memory(_values, _has_values)


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
