"""Detect whether a tensor has changed since something was computed from it.

The passes cache results that depend on parameters, and must not return them after a parameter was
trained, loaded or replaced.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor


class ChangeDetector(NamedTuple):
    """A way to detect changes of a tensor.

    Attributes:
        state_of: a tensor (or None) -> a record of its state.
        has_state: such a record and a tensor -> whether the tensor still has this state.
    """

    state_of: Callable[[Tensor | None], Any]
    has_state: Callable[[Any, Tensor | None], bool]


def change_detector(frozen: bool) -> ChangeDetector:
    """A detector that compares values, or if ``frozen``, only identity, storage and version.

    The latter reads no values, and misses writes that bypass autograd: ``p.data.copy_`` and
    collectives of ``torch.distributed`` do not change the version.
    """
    if frozen:
        return ChangeDetector(_identity_and_version, _has_version)
    return ChangeDetector(_values, _has_values)


def _values(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.clone()


def _has_values(values: Tensor | None, tensor: Tensor | None) -> bool:
    if values is None or tensor is None:
        return values is tensor
    return (
        values.dtype == tensor.dtype
        and values.device == tensor.device
        and torch.equal(values, tensor)
    )


def _identity_and_version(tensor: Tensor | None) -> tuple[Any, ...]:
    return (tensor,) if tensor is None else (tensor, tensor.data_ptr(), tensor._version)


def _has_version(state: tuple[Any, ...], tensor: Tensor | None) -> bool:
    return state[0] is tensor and state[1:] == _identity_and_version(tensor)[1:]
