"""DINOv3 runs that train LoRA adapters or the last block: resuming, and shared memory of copies."""

import pytest
import torch
from unlabeled_runs import unlabeled

from benchmarks.exactness import stop_and_resume, train
from benchmarks.tiny_run import differences, final_checkpoint, tiny_cfg
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.source_layout import changed_tensors

VIEW = dict(augments=[dict(type='RandomResizedCrop', scale=8, crop_ratio_range=(0.5, 1.0))])
BACKBONE = dict(
    type='vit_plugin.VisionTransformer',
    img_size=8,
    patch_embed=dict(in_channels=1),
    arch=dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64, patch_size=2),
    encoder=dict(reg_token=1),
)
LORA = dict(lora=dict(r=2, alpha=4.0))


def options_of(trained_part: str) -> dict:
    """Settings of the tiny run that train the ``'lora'`` adapters or the ``'last block'``."""
    backbone = dict(BACKBONE)
    if trained_part == 'last block':
        backbone['frozen_stages'] = 1
    model = dict(
        type='vit_plugin.DINOv3',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.DINONeck',
            in_channels=32,
            hid_channels=16,
            bottleneck=8,
            out_channels=12,
        ),
        head=dict(type='vit_plugin.DINOHead', out_channels=12, centering='sinkhorn_knopp'),
        gram_refresh=5,
    )
    adapters = LORA if trained_part == 'lora' else {}
    return unlabeled(model, dict(VIEW, number=2)) | adapters


@pytest.mark.nightly
@pytest.mark.parametrize('trained_part', ['lora', 'last block'])
def test_resumed_run_ends_as_an_uninterrupted_one(trained_part, tmp_path):
    """Its teacher and anchor are the same, and the anchor was renewed at the same steps."""
    if trained_part == 'lora':
        pytest.importorskip('peft')
    train(tiny_cfg(tmp_path / 'whole', **options_of(trained_part)))
    stop_and_resume(tmp_path / 'stopped', 6, 'epoch', **options_of(trained_part))
    whole, stopped = (final_checkpoint(tmp_path / name) for name in ('whole', 'stopped'))
    assert differences(whole, stopped) == []
    weights = open_checkpoint(whole).content['state_dict']
    changed = {
        name
        for name in weights
        if name.startswith('anchor.module') and differs_from_student(weights, name)
    }
    trained_name = 'lora_' if trained_part == 'lora' else '.1.'
    assert changed
    assert all(trained_name in name or name.startswith('anchor.module.norm') for name in changed)


def differs_from_student(weights: dict, name: str) -> bool:
    """Whether a weight of the anchor differs from that of the backbone."""
    student = weights[name.replace('anchor.module', 'backbone')]
    return not torch.equal(weights[name], student)


def test_copies_share_their_memory_in_a_checkpoint(tmp_path):
    """So a checkpoint is not three times as large as one without teacher and anchor."""
    from vit_plugin.projects.dinov3.dinov3 import DINOv3

    settings = options_of('last block')['model']
    model = DINOv3(**{name: value for name, value in settings.items() if name != 'type'})
    torch.save(model.state_dict(), tmp_path / 'all.pth')
    state = torch.load(tmp_path / 'all.pth')
    memory = {value.untyped_storage().data_ptr() for value in state.values()}
    assert len(memory) < len(state) - 30  # at least 30 tensors are the memory of another one
    original = {
        name.removeprefix('backbone.'): value
        for name, value in state.items()
        if name.startswith('backbone.')
    }
    trained = Checkpoint('run', dict(state_dict=state))
    assert not changed_tensors(Checkpoint('file', original), trained)
