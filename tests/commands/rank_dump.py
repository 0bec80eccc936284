"""Makes each process of a run write its weights when training ends, for tests of DDP."""

import os

import torch
from mmengine.dist import get_rank
from mmengine.hooks import RuntimeInfoHook


def dump(hook: RuntimeInfoHook, runner) -> None:
    """Write the weights and the number of steps to ``rank_N.pt`` in the folder RANK_DUMP."""
    state = {name: value.cpu() for name, value in runner.model.module.state_dict().items()}
    torch.save(
        dict(state=state, steps=runner.iter),
        os.path.join(os.environ['RANK_DUMP'], f'rank_{get_rank()}.pt'),
    )


RuntimeInfoHook.after_train = dump
