"""The structure of an optimizer's state, which a saved state must match."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import copy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn


def first_states(optimizer: torch.optim.Optimizer) -> Iterator[dict[str, Any]]:
    """The structure of each parameter's state, from a step on the meta device.

    Empty for an optimizer that cannot step there.
    """
    plain = dict(fused=False, foreach=False, capturable=False)
    groups = [
        {
            **group,
            **{name: plain[name] for name in plain.keys() & group.keys()},
            'params': [
                nn.Parameter(torch.empty(param.shape, dtype=param.dtype, device='meta'))
                for param in group['params']
            ],
        }
        for group in optimizer.param_groups
    ]
    for param in (params := list(chain.from_iterable(group['params'] for group in groups))):
        param.grad = torch.empty_like(param)
    shadow = copy(optimizer)
    shadow.param_groups, shadow.state = groups, defaultdict(dict)
    try:
        shadow.step()
    except Exception:  # noqa: BLE001  another library's optimizer
        return
    yield from (forms(shadow.state[param]) for param in params)


def forms(state: Mapping[str, Any]) -> dict[str, Any]:
    """The structure of each entry of a state."""
    return {name: form(value) for name, value in state.items()}


def form(value: Any) -> Any:
    """The properties that must match: shape and kind of number, or only the kind for a scalar."""
    if isinstance(value, Tensor):
        return (
            (tuple(value.shape), 'float' if value.is_floating_point() else 'int')
            if value.ndim
            else 'number'
        )
    if isinstance(value, (list, tuple)):
        return [form(item) for item in value]
    if isinstance(value, Mapping):  # in a folder, the Counter of MultiStepLR becomes a dict
        return 'dict'
    return 'number' if isinstance(value, (int, float)) else type(value).__name__
