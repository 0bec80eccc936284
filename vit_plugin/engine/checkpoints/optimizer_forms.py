"""The structure of an optimizer's state, which a saved state must match.

A saved moment of a wrong shape would make a fused optimizer read beyond its end.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from copy import copy
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn


def expected_states(optimizer: torch.optim.Optimizer) -> Iterator[dict[str, Any]]:
    """The structure of each parameter's state, from a step of a copy on the meta device.

    Empty for an optimizer that cannot step there.
    """
    plain_options = dict(fused=False, foreach=False, capturable=False)  # for the meta device
    groups = [
        {
            **group,
            **{name: plain_options[name] for name in plain_options.keys() & group.keys()},
            'params': [
                nn.Parameter(torch.empty(param.shape, dtype=param.dtype, device='meta'))
                for param in group['params']
            ],
        }
        for group in optimizer.param_groups
    ]
    params = list(chain.from_iterable(group['params'] for group in groups))
    for param in params:
        param.grad = torch.empty_like(param)
    shadow = copy(optimizer)
    shadow.param_groups, shadow.state = groups, defaultdict(dict)
    try:
        shadow.step()
    except Exception:  # noqa: BLE001  another library's optimizer
        return
    yield from (structures(shadow.state[param]) for param in params)


def structures(state: Mapping[str, Any]) -> dict[str, Any]:
    """The structure of each entry of a state."""
    return {name: structure(value) for name, value in state.items()}


def structure(value: Any) -> Any:
    """The properties of a value that must match.

    For a tensor, its shape, and ``'float'`` or ``'int'``. For any scalar, ``'number'``. For a list
    or tuple, the structures of its items. For anything else, its type.
    """
    if isinstance(value, Tensor):
        if value.ndim == 0:
            return 'number'
        return tuple(value.shape), 'float' if value.is_floating_point() else 'int'
    if isinstance(value, (list, tuple)):
        return [structure(item) for item in value]
    if isinstance(value, Mapping):  # in a folder, the Counter of MultiStepLR becomes a dict
        return 'dict'
    return 'number' if isinstance(value, (int, float)) else type(value).__name__
