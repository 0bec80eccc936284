from collections.abc import Mapping

import torch
from torch import Tensor, nn

State = nn.Module | Mapping[str, Tensor]


def assert_same_state(part: State, whole: State) -> None:
    """All arrays of the part are in the whole, to the last bit."""
    ours, theirs = (
        one.state_dict() if isinstance(one, nn.Module) else one for one in (part, whole)
    )
    assert not [name for name, value in ours.items() if not torch.equal(theirs[name], value)]


def assert_all_learn(model: nn.Module) -> None:
    """Every parameter has a gradient."""
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]
