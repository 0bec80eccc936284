"""Files in the layout of the authors' training become the same model: weights, sizes, constants.

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
from safetensors.torch import save_file
from torch import nn

from vit_plugin.__main__ import main
from vit_plugin.inference.load import load

pytestmark = needs_task('detection')

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
NECK = dict(depth=0.67, expansion=0.6, feedforward_channels=16, num_heads=8)


def detector(variant: str, backbone: dict, channels: list[int], kind: str) -> dict[str, Any]:
    """The config of a small detector on a backbone with these channels."""
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
    'D-FINE': detector('d_fine', HGNET, HGNET_CHANNELS, 'elan'),
    'DEIMv2 on a CNN': detector('deimv2', HGNET, HGNET_CHANNELS, 'split_trailing'),
    'ECDet': detector('ecdet', ECVIT, [64] * 3, 'split'),
    'ECDet, all maps projected': detector('ecdet', dict(ECVIT, out_channels=32), [32] * 3, 'split'),
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
    """The state of a model as in the authors' files."""
    return {
        **authors_state(model, POINTS),
        'decoder.reg_scale': torch.tensor([8]),  # an integer, as their config has it
        'decoder.anchors': torch.zeros(1, 4, 4),
    }


@pytest.mark.parametrize('case', CASES)
def test_authors_files_are_read(case, tmp_path):
    model = model_of(case)
    state = file_of(model)
    zeros = {name: torch.zeros_like(value) for name, value in state.items()}
    file = tmp_path / 'best.pth'
    # The EMA weights are read, if a file has both.
    torch.save(dict(model=zeros, ema=dict(module=state, updates=3), last_epoch=1), file)
    loaded = load(file, device='cpu').model
    assert_same_outputs(loaded, model)


def test_hub_folder_is_read(tmp_path):
    """Its config has the arguments of the authors' classes, which are not needed."""
    model = model_of('ECDet')
    save_file({name: value.clone() for name, value in file_of(model).items()}, tmp_path / FILE)
    (tmp_path / 'config.json').write_text('{"backbone": {"name": "ecvitt"}, "encoder": {}}')
    trained = load(tmp_path, device='cpu')
    assert trained.classes == [f'class {i}' for i in range(CLASSES)]
    assert_same_outputs(trained.model, model)
    colors = trained.model.data_preprocessor.mean.flatten()
    torch.testing.assert_close(colors, torch.tensor([123.675, 116.28, 103.53]))


def test_file_is_converted_to_other_formats(tmp_path):
    """From our names to those of transformers and of the authors; other formats raise."""
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


def test_activations_of_deim_are_read_from_the_file_name(tmp_path, monkeypatch):
    """DEIM's files have the arrays of D-FINE. A file without a hint in its name becomes a D-FINE,
    and a message is logged.
    """
    print_log, messages = 'vit_plugin.projects.d_fine.authors_arrays.print_log', []
    monkeypatch.setattr(print_log, lambda text, _: messages.append(text))
    state = file_of(model_of('D-FINE'))
    for name, act, is_logged in (
        ('d-fine_s', nn.ReLU, False),
        ('DEIM_DFINE_S', nn.SiLU, False),
        ('finetuned', nn.ReLU, True),
    ):
        torch.save(state, tmp_path / f'{name}.pth')
        head = load(tmp_path / f'{name}.pth', device='cpu').model.bbox_head
        for module in (head.position, head.fc_reg[0], head.quality[0].mlp):
            assert type(module.act) is act
        assert type(head.layers[0].mlp[1]) is act
        assert ("begins with 'deim'" in ''.join(messages)) == is_logged


def test_invalid_num_points_scales_raise(tmp_path):
    state = file_of(model_of('D-FINE'))
    name = 'decoder.decoder.layers.0.cross_attn.num_points_scale'
    for scales, words in (
        (torch.full((12,), 0.7), 'are not reciprocals of numbers of points'),
        (torch.full((3,), 0.25), 'are not reciprocals of numbers of points'),
        (None, f'lacks {name}; give the complete file'),
    ):
        changed = {key: value for key, value in state.items() if key != name}
        if scales is not None:
            changed[name] = scales
        torch.save(changed, tmp_path / 'x.pth')
        with rejects(words):
            load(tmp_path / 'x.pth', device='cpu')
