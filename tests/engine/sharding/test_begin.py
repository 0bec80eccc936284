"""Runs with ``sharding=dict(...)`` train and validate as plain ones."""

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from mmengine.config import Config
from mmengine.runner import Runner
from ranks import on_ranks
from rejection import rejects
from torch.distributed.tensor import DTensor

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import distributed
from vit_plugin.engine.sharding import Sharding, is_sharded, shard
from vit_plugin.engine.sharding.begin import ensure_process_group
from vit_plugin.measure.planning.traced_step import pretended_ranks
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers import StdConv2d
from vit_plugin.passes import optimize
from vit_plugin.passes.fold import Folded

# Settings with which a run has no randomness that depends on the number of ranks.
EXACT = {
    'model.train_cfg': None,
    'model.backbone.drop_rate': 0.0,
    'model.backbone.drop_path_rate': 0.0,
    'train_dataloader.dataset.pipeline': [dict(type='PackInputs')],
    'default_hooks.checkpoint': None,
    'custom_hooks': [
        dict(type='vit_plugin.EMAHook', momentum=0.3),
        dict(type='vit_plugin.OptimizeHook'),
    ],
}

pytestmark = pytest.mark.filterwarnings('ignore')


def exact_cfg(folder: Path, **options: object) -> Config:
    return tiny_cfg(folder, **{**EXACT, **options})


@pytest.fixture
def destroy_group():
    """Destroy the group of one process that a test joins."""
    yield
    dist.destroy_process_group()


def history(runner: Runner) -> dict[str, torch.Tensor]:
    """The gradient norms and validation accuracies of a run."""
    scalars = runner.message_hub.log_scalars
    return {
        name: torch.as_tensor(scalars[name].data[0])
        for name in ('train/grad_norm', 'val/accuracy/top1')
    }


def full_state(runner: Runner) -> dict[str, torch.Tensor]:
    """The state of the model, with sharded tensors gathered."""
    return {
        name: value.full_tensor() if isinstance(value, DTensor) else value
        for name, value in runner.model.state_dict().items()
    }


def assert_same_run(
    runner: Runner, scalars_of_plain: dict[str, torch.Tensor], weights: dict[str, torch.Tensor]
) -> None:
    """Assert that a sharded run has a plain run's gradient norms, accuracies and final weights."""
    assert all(isinstance(parameter, DTensor) for parameter in runner.model.parameters())
    for name, values in scalars_of_plain.items():
        torch.testing.assert_close(history(runner)[name], values, rtol=1e-3, atol=1e-5)
    for name, value in full_state(runner).items():
        # Rounding in float32 with AdamW, at a learning rate of 1e-2.
        torch.testing.assert_close(value, weights[name], rtol=0, atol=2e-3)


def run_sharded(
    folder: str, scalars_of_plain: dict[str, torch.Tensor], weights: dict[str, torch.Tensor]
) -> None:
    """Train with sharding on each rank, and compare with a plain run."""
    batch = 16 // dist.get_world_size()
    torch.manual_seed(dist.get_rank())  # each rank draws other weights
    runner = build(
        exact_cfg(
            Path(folder), sharding=dict(group='node'), **{'train_dataloader.batch_size': batch}
        )
    )
    runner.train()
    assert_same_run(runner, scalars_of_plain, weights)


@pytest.mark.nightly
def test_two_ranks_and_one_train_as_a_plain_run(tmp_path: Path, destroy_group):
    plain = build(exact_cfg(tmp_path))
    plain.train()
    scalars_of_plain, weights = history(plain), full_state(plain)
    on_ranks(2, tmp_path, run_sharded, str(tmp_path), scalars_of_plain, weights)
    runner = build(exact_cfg(tmp_path, sharding=dict(cpu_offload=True)))
    runner.train()
    assert_same_run(runner, scalars_of_plain, weights)


@pytest.mark.parametrize(
    ('options', 'message'),
    [
        (
            dict(find_unused_parameters=True),
            'find_unused_parameters do not go together',
        ),
        (dict(sync_bn='torch'), 'sharding and sync_bn do not go together'),
        (
            dict(model_wrapper_cfg=dict(type='MMDistributedDataParallel')),
            'sharding and model_wrapper_cfg do not go together',
        ),
        (dict(sharding='all'), "sharding='all' must be a dict"),
        (dict(sharding=dict(group=0)), 'group=0 must be'),
        (dict(sharding=dict(group=4)), 'group=4 does not divide the 6 ranks'),
        (dict(custom_hooks=[dict(type='EMAHook')]), "write type='vit_plugin.EMAHook'"),
        (
            {'optim_wrapper.optimizer': dict(type='SGD', lr=0.1, fused=True)},
            'SGD does not step sharded parameters .*; leave out fused=True',
        ),
    ],
)
def test_wrong_settings_raise(tmp_path, monkeypatch, options, message):
    # Pretended ranks cannot form a gloo group.
    monkeypatch.setattr(distributed, 'get_world_size', lambda: 1)
    with pretended_ranks(6), rejects(message):
        build(exact_cfg(tmp_path, **{'sharding': dict(), **options})).train()


def validate_sharded(folder: str, checkpoint: str, accuracy: float) -> None:
    """Validate a checkpoint with a sharded model."""
    runner = build(exact_cfg(Path(folder), sharding=dict(), load_from=checkpoint))
    assert runner.val()['accuracy/top1'] == accuracy
    assert is_sharded(runner.model)


@pytest.mark.nightly
def test_two_ranks_validate_a_plain_checkpoint(tmp_path: Path):
    plain = build(exact_cfg(tmp_path, **{'default_hooks.checkpoint': dict(type='CheckpointHook')}))
    plain.train()
    accuracy = history(plain)['val/accuracy/top1'][-1].item()
    on_ranks(2, tmp_path, validate_sharded, str(tmp_path), str(tmp_path / 'epoch_3.pth'), accuracy)


def test_passes_use_the_gathered_weights(tiny_hybrid, destroy_group):
    torch.manual_seed(0)
    plain, images = VisionTransformer(**tiny_hybrid), torch.randn(2, 3, 32, 32)
    weights = plain.state_dict()
    ensure_process_group('cpu')
    model = optimize(shard(VisionTransformer(**tiny_hybrid), Sharding(), 'cpu').eval())
    assert any(
        isinstance(module.kernel, Folded)
        for module in model.modules()
        if isinstance(module, StdConv2d)
    )
    for factor in (1.0, 0.5):  # kernels folded in the first round are out of date in the second
        changed = {
            name: value * factor if value.is_floating_point() else value
            for name, value in weights.items()
        }
        plain.load_state_dict(changed)
        model.load_state_dict(changed)
        with torch.no_grad():
            expected = plain.eval()(images)[0]
            for _ in range(2):
                torch.testing.assert_close(model(images)[0], expected)
