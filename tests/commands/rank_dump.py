"""Makes each process of a run write its weights at the end, to test distributed training."""

import os

import torch
from mmengine.dist import get_rank
from mmengine.hooks import RuntimeInfoHook


def dump(hook: RuntimeInfoHook, runner) -> None:
    state = {name: value.cpu() for name, value in runner.model.module.state_dict().items()}
    torch.save(
        dict(state=state, steps=runner.iter),
        os.path.join(os.environ['RANK_DUMP'], f'rank_{get_rank()}.pt'),
    )


RuntimeInfoHook.after_train = dump
