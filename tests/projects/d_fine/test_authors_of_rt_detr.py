"""Files in the layout of RT-DETR's authors become the same model.

They have no settings. Sizes show in the tensors, and the rest in the name of the file.

``benchmarks/fine_detectors.py`` compares with the authors' own code.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from typing import Any

import pytest
import torch
from extras import needs_task
from real_time_detectors import (
    HGNET,
    HGNET_CHANNELS,
    assert_same_outputs,
    authors_state,
    built,
)
from rejection import rejects
from torch import Tensor

from vit_plugin.inference.load import load

pytestmark = needs_task('detection')

DIMS, CLASSES, POINTS = 16, 4, (2, 4, 1)
RESNET = dict(type='vit_plugin.ResNetD', depth=18)


def config(backbone: dict[str, Any], channels: list[int], **head: Any) -> dict[str, Any]:
    """The config of a small RT-DETR on a backbone with these channels."""
    decoder = dict(
        num_layers=2, num_heads=8, num_points=POINTS, feedforward_channels=24
    ) | head.pop('decoder', {})
    return dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.HybridEncoder',
            in_channels=channels,
            out_channels=DIMS,
            kind='csp',
            expansion=0.5,
            feedforward_channels=16,
        ),
        bbox_head=dict(
            type='vit_plugin.RTDETRHead',
            num_classes=CLASSES,
            num_queries=300,
            in_channels=[DIMS] * 3,
            embed_dims=DIMS,
            decoder=decoder,
        )
        | head,
    )


WIDTHS = [128, 256, 512]  # of the last three maps of a ResNet-18
# Names of files, from which some settings are read.
CASES = {
    'rtdetrv2_r18vd': config(RESNET, WIDTHS),
    'rtdetrv2_r18vd_unfrozen': config(dict(RESNET, frozen_norms=False), WIDTHS),
    'rtdetrv2_hgnetv2': config(HGNET, HGNET_CHANNELS),
    'rtdetrv2_r18vd_dsp_3x': config(RESNET, WIDTHS, decoder=dict(discrete=True)),
    'deim_rtdetrv2_r18vd': config(RESNET, WIDTHS, variant='rt_detr_deim'),
}
VERSION_1 = config(RESNET, WIDTHS, decoder=dict(num_points=(4, 4, 4)))


def version_1_names(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The state by the names of RT-DETR's version 1, without the scales of points."""
    parts = {
        f'encoder.input_proj.{i}.{part}': f'encoder.input_proj.{i}.{k}'
        for i in range(3)
        for k, part in enumerate(('conv', 'norm'))
    }
    parts |= {
        f'decoder.enc_output.{part}': f'decoder.enc_output.{k}'
        for k, part in enumerate(('proj', 'norm'))
    }
    renamed = {}
    for name, value in state.items():
        start = next((part for part in parts if name.startswith(f'{part}.')), '')
        renamed[parts[start] + name[len(start) :] if start else name] = value
    return {name: value for name, value in renamed.items() if not name.endswith('_scale')}


@pytest.mark.parametrize('case', CASES)
def test_files_are_read_back(case, tmp_path):
    model = built(CASES[case])
    state, file = authors_state(model, POINTS), tmp_path / f'{case}.pth'
    zeros = {name: torch.zeros_like(value) for name, value in state.items()}
    # The EMA weights are read, if a file has both.
    torch.save(dict(model=zeros, ema=dict(module=state, updates=3), last_epoch=1), file)
    trained = load(file, device='cpu')
    assert_same_outputs(trained.model, model)
    is_deim = case.startswith('deim')
    loss = type(trained.model.bbox_head.loss_cls).__name__
    assert loss == ('MatchabilityAwareLoss' if is_deim else 'OverlapVarifocalLoss')
    # Frozen norms have no counter.
    counter = trained.model.backbone.state_dict().keys() & {'stem.1.num_batches_tracked'}
    assert bool(counter) == case.endswith('unfrozen')


def test_version_1_is_read_back(tmp_path):
    model = built(VERSION_1)
    state = version_1_names(authors_state(model, POINTS))
    assert 'encoder.input_proj.0.0.weight' in state
    torch.save(dict(ema=dict(module=state)), tmp_path / 'rtdetr_r18vd.pth')
    assert_same_outputs(load(tmp_path / 'rtdetr_r18vd.pth', device='cpu').model, model)


def test_discrete_sampling_is_read_from_the_file_name(tmp_path, monkeypatch):
    """Without a hint in the name, the model gets the usual sampling, and a message is logged."""
    print_log, messages = 'vit_plugin.projects.d_fine.authors_arrays.print_log', []
    monkeypatch.setattr(print_log, lambda text, _: messages.append(text))
    model = built(CASES['rtdetrv2_r18vd_dsp_3x'])
    for name, discrete, is_logged in (
        ('rtdetrv2_r18vd_sp1', False, False),
        ('x_DSP', True, False),
        ('x', False, True),
    ):
        torch.save(authors_state(model, POINTS), tmp_path / f'{name}.pth')
        loaded = load(tmp_path / f'{name}.pth', device='cpu').model
        assert loaded.bbox_head.layers[0].cross_attn.discrete == discrete
        assert ("begins with 'dsp'" in ''.join(messages)) == is_logged


def test_unsupported_models_raise(tmp_path):
    state, file = authors_state(built(CASES['rtdetrv2_r18vd']), POINTS), tmp_path / 'rtdetrv2.pth'
    agnostic = {  # proposals with one score instead of one for each class
        name: value[:1] if 'enc_score_head' in name else value for name, value in state.items()
    }
    torch.save(agnostic, file)
    with rejects('propose boxes without classes'):
        load(file, device='cpu')
    shorter = {
        name: value for name, value in state.items() if '.res_layers.3.blocks.1.' not in name
    }
    torch.save(shorter, file)
    with rejects('neither HGNetV2 nor a ResNet-D of 18, 34, 50, 101 layers'):
        load(file, device='cpu')
