"""Distillation runs: resumed, compiled and sharded; their checkpoints do not have the teacher."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from extras import needs_task
from ranks import on_ranks
from rejection import rejects
from torch._dynamo import register_backend
from torch.distributed.tensor import DTensor

import vit_plugin
from benchmarks.exactness import stop_and_resume, train
from benchmarks.tiny_run import (
    BATCH,
    EMA_HOOKS,
    MODEL,
    build,
    differences,
    final_checkpoint,
    tiny_cfg,
)
from vit_plugin.engine.sharding import parts_to_shard

pytestmark = pytest.mark.filterwarnings('ignore')
TEACHER = dict(type='ImageClassifier', backbone=MODEL['backbone'], head=MODEL['head'])
LOSSES = [
    dict(type='vit_plugin.LogitDistillation', temperature=2.0),
    dict(type='vit_plugin.SimilarityDistillation', length=100),
]


def options(**changes: Any) -> dict[str, Any]:
    """Settings of the tiny run that distill, with changes of the model."""
    arguments = dict(MODEL, type='vit_plugin.Distiller', teacher=TEACHER, losses=LOSSES)
    return dict(model=dict(arguments, **changes))


@pytest.mark.nightly
def test_resumed_run_ends_as_an_uninterrupted_one(tmp_path):
    """The same holds for the queue, which had dropped vectors before the run was stopped."""
    runner = train(tiny_cfg(tmp_path / 'whole', **options()))
    stop_and_resume(tmp_path / 'stopped', 7, 'epoch', **options())
    files = [final_checkpoint(tmp_path / name) for name in ('whole', 'stopped')]
    assert differences(*files) == []
    saved = torch.load(files[0], map_location='cpu', weights_only=False)
    assert saved['state_dict']['losses.similarity.queue'].shape == (100, 32)
    assert not any('teacher' in name for name in saved['state_dict'])
    assert saved['meta']['run']['teacher'][1] == runner.model.teacher.fingerprint
    optimized = {
        id(parameter)
        for group in runner.optim_wrapper.param_groups
        for parameter in group['params']
    }
    assert optimized == {id(parameter) for parameter in runner.model.parameters()}


SHORT = {'custom_hooks': EMA_HOOKS, 'train_cfg.max_epochs': 1}  # one epoch, with EMA weights


@pytest.fixture(scope='module')
def run(tmp_path_factory) -> Path:
    """The folder of a short run with a teacher."""
    folder = tmp_path_factory.mktemp('run')
    train(tiny_cfg(folder, **options(losses=LOSSES[:1]), **SHORT))
    return folder


def test_resuming_with_another_teacher_raises(run):
    teacher = dict(TEACHER, backbone=dict(MODEL['backbone'], with_cls_token=True))
    runner = build(tiny_cfg(run, resume=True, **options(losses=LOSSES[:1], teacher=teacher)))
    with rejects('What determines the run has changed.*the teacher: '):
        runner.train()


@needs_task('classification')
def test_a_checkpoint_predicts_without_the_teacher_and_can_teach(run):
    model = vit_plugin.load(run, device='cpu').model
    assert model.teacher is None
    assert not model.losses
    second = build(tiny_cfg(run / 'second', **options(teacher=str(run))))
    assert second.model.teacher.size == (8, 8)
    assert second.model.teacher.fingerprint != ''
    weights = second.model.teacher.model.state_dict()
    assert all(torch.equal(weights[name], value) for name, value in model.state_dict().items())


@needs_task('classification')
def test_a_backbone_distilled_without_labels_can_teach(tmp_path):
    no_validation = {
        'val_dataloader': None,
        'val_cfg': None,
        'val_evaluator': None,
        **SHORT,
        'default_hooks.checkpoint.save_best': None,
    }
    no_head = options(head=None, train_cfg=None, losses=LOSSES[1:])
    train(tiny_cfg(tmp_path, **no_head, **no_validation))
    with rejects('gives features of an image and no classes, since it has no head'):
        vit_plugin.load(tmp_path, device='cpu')
    first = vit_plugin.load(tmp_path, device='cpu', classify=False).model
    second = build(
        tiny_cfg(tmp_path / 'second', **options(teacher=str(tmp_path), losses=LOSSES[1:]))
    )
    images = torch.randn(2, 1, 8, 8)
    output = second.model.teacher(images, second.model.pixels)
    assert output.logits is None
    assert torch.equal(output.vector, first.extract_feat(images)[-1])


# Settings with which a run has the same batches and no other randomness on any number of ranks.
EXACT: dict[str, Any] = {
    'model.train_cfg': None,
    'model.backbone.drop_rate': 0.0,
    'model.backbone.drop_path_rate': 0.0,
    'train_dataloader.dataset.pipeline': [dict(type='PackInputs')],
    'default_hooks.checkpoint': None,
    'custom_hooks': [],
}


def grad_norms(folder: Path, **changes: Any) -> torch.Tensor:
    """Train, and return the norm of the gradient in each step.

    Args:
        folder: the work directory.
        **changes: changes of the settings.
    """
    # A queue that drops whole batches, so that the order of images within a batch has no effect.
    losses = [LOSSES[0], dict(LOSSES[1], length=6 * BATCH)]
    runner = build(tiny_cfg(folder, **options(losses=losses), **EXACT, **changes))
    runner.train()
    if runner.sharding:
        parts = parts_to_shard(runner.model.teacher.module)
        assert all(
            isinstance(parameter, DTensor) for part in parts for parameter in part.parameters()
        )
    return torch.as_tensor(runner.message_hub.log_scalars['train/grad_norm'].data[0])


def run_sharded(folder: str, expected: torch.Tensor) -> None:
    """Compare the gradient norms of a sharded run with those of a plain one."""
    torch.manual_seed(dist.get_rank())  # each rank draws other weights for its teacher
    batch = {'train_dataloader.batch_size': BATCH // dist.get_world_size()}
    sharded_norms = grad_norms(Path(folder), sharding=dict(), **batch)
    torch.testing.assert_close(sharded_norms, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.nightly
def test_two_sharded_ranks_train_as_a_plain_run(tmp_path):
    on_ranks(2, tmp_path, run_sharded, str(tmp_path), grad_norms(tmp_path))


SIZES_SEEN: set[int] = set()


@register_backend
def record_sizes(graph: torch.fx.GraphModule, inputs: list) -> torch.fx.GraphModule:
    """A compiler backend that runs eagerly, and records the sizes of all inputs of graphs."""
    SIZES_SEEN.update(size for value in inputs for size in getattr(value, 'shape', ()))
    return graph


@pytest.mark.nightly
@pytest.mark.parametrize('compile_options', [dict(blocks=True), {}])
def test_a_run_compiles_its_teacher(tmp_path, compile_options):
    """It does so both if each block is compiled on its own, and if the whole step is."""
    teacher = deepcopy(MODEL['backbone'])
    teacher['arch']['embed_dims'] = 48  # a width that only the teacher has
    model = dict(
        MODEL,
        type='vit_plugin.Distiller',
        teacher=dict(type='ImageClassifier', backbone=teacher),
        losses=[dict(type='vit_plugin.VectorDistillation')],
    )
    torch._dynamo.reset()
    SIZES_SEEN.clear()
    losses = []
    for setting in (False, dict(compile_options, backend='record_sizes')):
        folder = tmp_path / type(setting).__name__
        cfg = tiny_cfg(folder, model=model, compile=setting, **{'train_cfg.max_epochs': 1})
        runner = build(cfg)
        runner.train()
        losses.append(torch.as_tensor(runner.message_hub.log_scalars['train/loss'].data[0]))
    assert 48 in SIZES_SEEN
    torch._dynamo.reset()
    torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-6)
