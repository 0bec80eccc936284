from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from mmengine.logging import MessageHub
from ranks import on_ranks
from rejection import rejects
from torch.distributed.tensor.debug import CommDebugMode

from vit_plugin.engine import OptimWrapper
from vit_plugin.engine.sharding import Sharding, shard
from vit_plugin.measure.planning.traced_step import pretended_ranks
from vit_plugin.models import VisionTransformer


def wrapped(model: torch.nn.Module, **options: Any) -> OptimWrapper:
    return OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1), **options)


def linear(**options: Any) -> tuple[torch.nn.Module, OptimWrapper]:
    model = torch.nn.Linear(2, 1)
    return model, wrapped(model, **options)


def test_a_norm_is_recorded_once_when_gradients_are_accumulated():
    model, wrapper = linear(accumulative_counts=2, clip_grad=dict(max_norm=1))
    wrapper.initialize_count_status(model, 0, 4)
    wrapper.begin()
    norms = []
    for _ in range(4):
        wrapper.update_params(model(torch.ones(2)).sum())
        norms.append(wrapper.last_update.grad_norm is not None)
    assert norms == [False, True, False, True]


def test_without_the_hook_a_norm_is_recorded_as_mmengine_does():
    model, wrapper = linear(clip_grad=dict(max_norm=1))
    wrapper.message_hub = MessageHub.get_instance('without_the_hook')
    wrapper.update_params(model(torch.ones(2)).sum())
    assert 'train/grad_norm' in wrapper.message_hub.log_scalars


@pytest.mark.parametrize(
    ('losses', 'stepped'),
    [
        ([1.0, nan, 1.0, 1.0], [True, False, True, True]),
        ([nan, inf, 1.0, nan], [False, False, True, False]),
    ],
)
def test_a_step_with_a_loss_that_is_not_finite_is_left_out(losses, stepped):
    model = torch.nn.Linear(2, 1)
    wrapper = OptimWrapper(torch.optim.AdamW(model.parameters(), lr=0.1))
    wrapper.begin(skips_non_finite=True)
    for loss, steps in zip(losses, stepped, strict=True):
        before = model.weight.clone()
        wrapper.update_params(model(torch.ones(2)).sum() * loss)
        assert wrapper.last_update.skipped is not steps
        assert torch.equal(model.weight, before) is not steps
        assert model.weight.isfinite().all()


def test_a_norm_that_is_not_finite_counts_too():
    model, wrapper = linear(clip_grad=dict(max_norm=1))
    wrapper.begin(skips_non_finite=True)
    before = model.weight.clone()
    model.weight.register_hook(lambda grad: grad * nan)
    wrapper.update_params(model(torch.ones(2)).sum())
    assert wrapper.last_update.skipped
    assert torch.equal(model.weight, before)


def test_what_was_accumulated_is_left_out_with_the_step():
    model, wrapper = linear(accumulative_counts=2)
    wrapper.initialize_count_status(model, 0, 4)
    wrapper.begin(skips_non_finite=True)
    before = model.weight.clone()
    for loss in (1.0, nan):
        wrapper.update_params(model(torch.ones(2)).sum() * loss)
    assert torch.equal(model.weight, before)
    assert model.weight.grad is None
    for _ in range(2):
        wrapper.update_params(model(torch.ones(2)).sum())
    assert not torch.equal(model.weight, before)


def one_rank_fails(folder: Path) -> None:
    """Three steps with DDP, in the second of which the loss of rank 1 alone is not finite."""
    model, wrapper = linear()
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    wrapper.begin(skips_non_finite=True)
    skipped = []
    for step in range(3):
        loss = parallel(torch.ones(2)).sum()
        wrapper.update_params(loss * nan if (step, dist.get_rank()) == (1, 1) else loss)
        skipped.append(wrapper.last_update.skipped)
    torch.save((skipped, model.state_dict()), folder / f'{dist.get_rank()}.pt')


def test_all_ranks_leave_a_step_out_together(tmp_path):
    torch.manual_seed(0)
    on_ranks(2, tmp_path, one_rank_fails, tmp_path)
    (skipped, first), (others, second) = (torch.load(tmp_path / f'{rank}.pt') for rank in range(2))
    assert skipped == others == [False, True, False]
    assert all(torch.equal(first[name], second[name]) for name in first)


def messages(accumulative_counts: int, tiny: dict) -> list[int]:
    """The number of reductions of gradients in each of eight steps of a sharded model."""
    with pretended_ranks(2):
        model = shard(VisionTransformer(**tiny), Sharding(), 'cpu')
        wrapper = wrapped(model, accumulative_counts=accumulative_counts)
        wrapper.initialize_count_status(model, 0, 7)
        counts = []
        for _ in range(7):
            with CommDebugMode() as messages, wrapper.optim_context(model):
                wrapper.update_params(model(torch.ones(1, 3, 32, 32))[0].sum())
            counts.append(messages.comm_counts[torch.ops.c10d._reduce_scatter_base_])
        return counts


@pytest.mark.nightly
@pytest.mark.filterwarnings(
    'ignore:FSDP2-wrapped module:UserWarning', 'ignore:For backward hooks:UserWarning'
)
def test_sharded_gradients_are_averaged_only_before_a_step(tiny):
    parts = 4  # the stem, two blocks, the rest
    assert messages(1, tiny) == [parts] * 7
    assert messages(3, tiny) == [0, 0, parts, 0, 0, parts, parts]  # the last is a step too


@pytest.mark.parametrize('defers', [True, False])
def test_the_norm_of_sharded_gradients_is_a_plain_number(defers, tiny):
    with pretended_ranks(2):
        model = shard(VisionTransformer(**tiny), Sharding(), 'cpu')
        wrapper = wrapped(model, clip_grad=dict(max_norm=1))
        wrapper.message_hub = MessageHub.get_instance(f'sharded_{defers}')
        if defers:
            wrapper.begin()
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        wrapper.step()
    if defers:
        assert type(wrapper.last_update.grad_norm) is torch.Tensor
    else:
        assert wrapper.message_hub.get_scalar('train/grad_norm').current() > 0


@pytest.mark.parametrize(
    ('clip', 'words'),
    [
        (
            dict(type='value', max_norm=1),
            r'clip_grad takes no max_norm \(given max_norm=1\); it takes type, clip_value',
        ),
        (dict(type='value'), 'clip_grad needs clip_value'),
        (dict(norm_type=2), 'clip_grad needs max_norm'),
        (dict(type='both', max_norm=1), "clip_grad.type='both' must be 'norm'"),
    ],
)
def test_clipping_takes_what_its_type_needs(clip, words):
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    with rejects(words):
        OptimWrapper(optimizer=optimizer, clip_grad=clip)
    OptimWrapper(optimizer=optimizer, clip_grad=dict(type='value', clip_value=1.0))
