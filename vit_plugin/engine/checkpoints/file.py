"""A checkpoint in one file, in MMEngine's form."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from mmengine.utils import apply_to
from torch import Tensor

from vit_plugin.files.complete import replacing


def write_file(path: Path, state: dict[str, Any], then: Callable[[], None] | None = None) -> None:
    """Write a state whole or not at all. MMEngine's function has the file in memory twice, and this one has not.

    Args:
        path: the file.
        state: what :func:`on_host` returned.
        then: what to do once the file is whole.
    """
    with replacing(path) as beside:
        torch.save(state, beside)
    if then:
        then()


def on_host(state: dict[str, Any], copy: bool, keep: bool = True) -> dict[str, Any]:
    """The state with its tensors whole and in the memory of the host. If some are divided, every rank calls it.

    Args:
        state: see :func:`~vit_plugin.engine.checkpoints.state.state_of`.
        copy: whether to copy tensors that are there already, so that training may go on.
        keep: whether this rank wants the state, or only helps to gather it and gets an empty one.
    """
    known: dict[tuple, Tensor] = {}
    memo: dict[int, Any] = {}

    def remember(tensor: Tensor) -> None:
        if hasattr(tensor, 'full_tensor'):  # a DTensor
            whole = tensor.full_tensor()
            memo[id(tensor)] = whole.to('cpu') if keep else None
        elif keep:
            place = tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype  # tied weights stay one tensor
            if place not in known or not tensor.numel():
                known[place] = tensor.detach().to('cpu', copy=copy)
            memo[id(tensor)] = known[place]

    apply_to(state, lambda value: isinstance(value, Tensor), remember)
    return deepcopy(state, memo) if keep else {}
