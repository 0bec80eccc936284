"""Files as the authors' training saves them are read back: names, sizes, constants, averages.

``benchmarks/fine_detectors.py`` compares with the authors' own code.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from typing import Any

import pytest
import torch
from real_time_detectors import (
    HGNET,
    HGNET_CHANNELS,
    assert_same_outputs,
    authors_state,
    built,
)
from rejection import rejects
from safetensors.torch import save_file
from torch import nn

from vit_plugin.__main__ import main
from vit_plugin.inference.load import load

FILE = 'model.safetensors'
DIMS, CLASSES, POINTS = 16, 4, (3, 6, 3)
ECVIT = dict(
    type='vit_plugin.ECViT',
    arch=dict(embed_dims=64, num_layers=2, num_heads=1, feedforward_channels=64),
    patch_embed=dict(
        type='ConvEmbed',
        channels=(8, 16, 32, 64),
        strides=(2,) * 4,
        kernel_sizes=(3,) * 4,
        conv_act='ReLU',
    ),
    pos_embed=dict(type='none', rotary=dict(form='centred', planes='halves')),
    with_cls_token=False,
    encoder=dict(reg_token=1, final_norm=False),
    numerics='timm',
)
NECK = dict(out_channels=DIMS, depth=0.67, expansion=0.6, feedforward_channels=16, num_heads=8)


def config(variant: str, backbone: dict, channels: list[int], kind: str) -> dict[str, Any]:
    is_ec = variant == 'ecdet'
    dims = channels[-1] if is_ec else DIMS
    neck = dict(
        NECK,
        type='vit_plugin.HybridEncoder',
        in_channels=channels,
        out_channels=dims,
        kind=kind,
        projects=not is_ec,
        attention_act='SiLU' if is_ec else 'GELU',
    )
    head = dict(
        type='vit_plugin.DFINEHead',
        num_classes=CLASSES,
        num_queries=300,
        in_channels=[dims] * 3,
        embed_dims=dims,
        variant=variant,
        decoder=dict(num_layers=2, num_heads=4, num_points=POINTS, feedforward_channels=24),
        distributions=dict(scale=8.0),
    )
    return dict(type='SingleStageDetector', backbone=backbone, neck=neck, bbox_head=head)


CASES = {
    'D-FINE': config('d_fine', HGNET, HGNET_CHANNELS, 'elan'),
    'DEIMv2 on a CNN': config('deimv2', HGNET, HGNET_CHANNELS, 'split_trailing'),
    'ECDet': config('ecdet', ECVIT, [64] * 3, 'split'),
    'ECDet, all maps projected': config('ecdet', dict(ECVIT, out_channels=32), [32] * 3, 'split'),
}
CASES['ECSeg'] = dict(
    CASES['ECDet'],
    bbox_head=dict(CASES['ECDet']['bbox_head'], type='vit_plugin.ECSegHead', predicted_blocks=1),
)


def model_of(case: str) -> nn.Module:
    if case.startswith('EC'):
        pytest.importorskip('vit_plugin.projects.ecdet')
    return built(CASES[case])


def file_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """The state as the authors have it."""
    return {
        **authors_state(model, POINTS),
        'decoder.reg_scale': torch.tensor([8]),  # an integer, as their config has it
        'decoder.anchors': torch.zeros(1, 4, 4),
    }


@pytest.mark.parametrize('case', CASES)
def test_files_are_read_back(case, tmp_path):
    model = model_of(case)
    state = file_of(model)
    others = {name: torch.zeros_like(value) for name, value in state.items()}
    file = tmp_path / 'best.pth'
    torch.save(dict(model=others, ema=dict(module=state, updates=3), last_epoch=1), file)
    found = load(file, device='cpu').model
    assert_same_outputs(found, model)


def test_a_folder_of_a_hub_is_read(tmp_path):
    """Its config has the arguments of the authors' classes, which no reader needs."""
    model = model_of('ECDet')
    save_file({name: value.clone() for name, value in file_of(model).items()}, tmp_path / FILE)
    (tmp_path / 'config.json').write_text('{"backbone": {"name": "ecvitt"}, "encoder": {}}')
    found = load(tmp_path, device='cpu')
    assert found.classes == [f'class {i}' for i in range(CLASSES)]
    assert_same_outputs(found.model, model)
    colors = found.model.data_preprocessor.mean.flatten()
    torch.testing.assert_close(colors, torch.tensor([123.675, 116.28, 103.53]))


def test_a_file_is_converted_to_other_names(tmp_path):
    """From ours to transformers' and the authors', without a block of an encoder."""
    file = str(tmp_path / 'ours.pth')
    torch.save(model_of('D-FINE').state_dict(), file)
    for name, key in (
        ('hf_d_fine', 'model.decoder.layers.0.self_attn.q_proj.weight'),
        ('d_fine_authors', 'decoder.decoder.layers.0.self_attn.in_proj_weight'),
    ):
        out = str(tmp_path / f'{name}.pth')
        main(['convert', file, '--to', name, '--out', out])
        assert key in torch.load(out)
    with pytest.raises(SystemExit, match='has no block of an encoder'):
        main(['convert', file, '--to', 'jax', '--out', str(tmp_path / 'a.npz')])


def test_activations_of_deim_are_in_the_name_alone(tmp_path, monkeypatch):
    """Its files have the arrays of a D-FINE: a name that says neither is one, which is logged."""
    place, logged = 'vit_plugin.projects.d_fine.authors_arrays.print_log', []
    monkeypatch.setattr(place, lambda text, _: logged.append(text))
    state = file_of(model_of('D-FINE'))
    for name, act, said in (
        ('d-fine_s', nn.ReLU, False),
        ('DEIM_DFINE_S', nn.SiLU, False),
        ('finetuned', nn.ReLU, True),
    ):
        torch.save(state, tmp_path / f'{name}.pth')
        head = load(tmp_path / f'{name}.pth', device='cpu').model.bbox_head
        for module in (head.position, head.fc_reg[0], head.quality[0].mlp):
            assert type(module.act) is act
        assert type(head.layers[0].mlp[1]) is act
        assert ("begins with 'deim'" in ''.join(logged)) == said


def test_points_that_are_none_are_an_error(tmp_path):
    state = file_of(model_of('D-FINE'))
    name = 'decoder.decoder.layers.0.cross_attn.num_points_scale'
    for shares, words in (
        (torch.full((12,), 0.7), 'are not reciprocals of numbers of points'),
        (torch.full((3,), 0.25), 'are not reciprocals of numbers of points'),
        (None, f'lacks {name}; give the complete file'),
    ):
        given = {**state, name: shares}
        torch.save(
            {key: value for key, value in given.items() if value is not None}, tmp_path / 'x.pth'
        )
        with rejects(words):
            load(tmp_path / 'x.pth', device='cpu')
