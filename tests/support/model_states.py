"""Assertions about the state and the gradients of models."""

from collections.abc import Mapping

import torch
from torch import Tensor, nn

State = nn.Module | Mapping[str, Tensor]


def assert_same_state(part: State, whole: State) -> None:
    """Assert that every tensor of the part is in the whole, bit for bit."""
    part_state = part.state_dict() if isinstance(part, nn.Module) else part
    whole_state = whole.state_dict() if isinstance(whole, nn.Module) else whole
    assert not [
        name for name, value in part_state.items() if not torch.equal(whole_state[name], value)
    ]


def assert_all_learn(model: nn.Module) -> None:
    """Assert that every parameter has a gradient."""
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]
