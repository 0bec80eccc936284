"""Steps of the optimizer wrapper: norms, skipped steps, accumulation, clipping."""

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


def wrap(model: torch.nn.Module, **options: Any) -> OptimWrapper:
    return OptimWrapper(torch.optim.SGD(model.parameters(), lr=0.1), **options)


def linear(**options: Any) -> tuple[torch.nn.Module, OptimWrapper]:
    """A linear layer and its optimizer wrapper."""
    model = torch.nn.Linear(2, 1)
    return model, wrap(model, **options)


def test_norm_is_recorded_once_for_accumulated_gradients():
    model, wrapper = linear(accumulative_counts=2, clip_grad=dict(max_norm=1))
    wrapper.initialize_count_status(model, 0, 4)
    wrapper.defer_grad_norm()
    has_norm = []
    for _ in range(4):
        wrapper.update_params(model(torch.ones(2)).sum())
        has_norm.append(wrapper.last_update.grad_norm is not None)
    assert has_norm == [False, True, False, True]


def test_norm_is_recorded_in_the_hub_unless_it_is_deferred():
    model, wrapper = linear(clip_grad=dict(max_norm=1))
    wrapper.message_hub = MessageHub.get_instance('without_the_hook')
    wrapper.update_params(model(torch.ones(2)).sum())
    assert 'train/grad_norm' in wrapper.message_hub.log_scalars


@pytest.mark.parametrize(
    ('losses', 'is_stepped'),
    [
        ([1.0, nan, 1.0, 1.0], [True, False, True, True]),
        ([nan, inf, 1.0, nan], [False, False, True, False]),
    ],
)
def test_steps_with_non_finite_losses_are_skipped(losses, is_stepped):
    model = torch.nn.Linear(2, 1)
    wrapper = OptimWrapper(torch.optim.AdamW(model.parameters(), lr=0.1))
    wrapper.defer_grad_norm(skips_non_finite=True)
    for loss, steps in zip(losses, is_stepped, strict=True):
        before = model.weight.clone()
        wrapper.update_params(model(torch.ones(2)).sum() * loss)
        assert wrapper.last_update.skipped is not steps
        assert torch.equal(model.weight, before) is not steps
        assert model.weight.isfinite().all()


def test_step_with_a_non_finite_norm_is_skipped():
    model, wrapper = linear(clip_grad=dict(max_norm=1))
    wrapper.defer_grad_norm(skips_non_finite=True)
    before = model.weight.clone()
    model.weight.register_hook(lambda grad: grad * nan)
    wrapper.update_params(model(torch.ones(2)).sum())
    assert wrapper.last_update.skipped
    assert torch.equal(model.weight, before)


def test_accumulated_gradients_are_dropped_with_a_skipped_step():
    model, wrapper = linear(accumulative_counts=2)
    wrapper.initialize_count_status(model, 0, 4)
    wrapper.defer_grad_norm(skips_non_finite=True)
    before = model.weight.clone()
    for loss in (1.0, nan):
        wrapper.update_params(model(torch.ones(2)).sum() * loss)
    assert torch.equal(model.weight, before)
    assert model.weight.grad is None
    for _ in range(2):
        wrapper.update_params(model(torch.ones(2)).sum())
    assert not torch.equal(model.weight, before)


def train_with_bad_loss(folder: Path) -> None:
    """Take three steps with DDP. In the second one, the loss is NaN on rank 1 only."""
    model, wrapper = linear()
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    wrapper.defer_grad_norm(skips_non_finite=True)
    skipped = []
    for step in range(3):
        loss = parallel(torch.ones(2)).sum()
        wrapper.update_params(loss * nan if (step, dist.get_rank()) == (1, 1) else loss)
        skipped.append(wrapper.last_update.skipped)
    torch.save((skipped, model.state_dict()), folder / f'{dist.get_rank()}.pt')


def test_all_ranks_skip_a_step_together(tmp_path):
    torch.manual_seed(0)
    on_ranks(2, tmp_path, train_with_bad_loss, tmp_path)
    skipped_0, state_0 = torch.load(tmp_path / '0.pt')
    skipped_1, state_1 = torch.load(tmp_path / '1.pt')
    assert skipped_0 == skipped_1 == [False, True, False]
    assert all(torch.equal(state_0[name], state_1[name]) for name in state_0)


def count_reductions(accumulative_counts: int, tiny: dict) -> list[int]:
    """The number of reductions of gradients in each of seven iterations of a sharded model."""
    with pretended_ranks(2):
        model = shard(VisionTransformer(**tiny), Sharding(), 'cpu')
        wrapper = wrap(model, accumulative_counts=accumulative_counts)
        wrapper.initialize_count_status(model, 0, 7)
        counts = []
        for _ in range(7):
            with CommDebugMode() as communication, wrapper.optim_context(model):
                wrapper.update_params(model(torch.ones(1, 3, 32, 32))[0].sum())
            counts.append(communication.comm_counts[torch.ops.c10d._reduce_scatter_base_])
        return counts


@pytest.mark.nightly
@pytest.mark.filterwarnings(
    'ignore:FSDP2-wrapped module:UserWarning', 'ignore:For backward hooks:UserWarning'
)
def test_sharded_gradients_are_reduced_only_before_a_step(tiny):
    parts = 4  # the stem, two blocks, the remaining parameters
    assert count_reductions(1, tiny) == [parts] * 7
    # The optimizer also steps after the last iteration.
    assert count_reductions(3, tiny) == [0, 0, parts, 0, 0, parts, parts]


@pytest.mark.parametrize('defers', [True, False])
def test_the_norm_of_sharded_gradients_is_a_plain_number(defers, tiny):
    with pretended_ranks(2):
        model = shard(VisionTransformer(**tiny), Sharding(), 'cpu')
        wrapper = wrap(model, clip_grad=dict(max_norm=1))
        wrapper.message_hub = MessageHub.get_instance(f'sharded_{defers}')
        if defers:
            wrapper.defer_grad_norm()
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
def test_wrong_arguments_of_clipping_raise(clip, words):
    optimizer = torch.optim.SGD(torch.nn.Linear(2, 2).parameters(), lr=0.1)
    with rejects(words):
        OptimWrapper(optimizer=optimizer, clip_grad=clip)
    OptimWrapper(optimizer=optimizer, clip_grad=dict(type='value', clip_value=1.0))
