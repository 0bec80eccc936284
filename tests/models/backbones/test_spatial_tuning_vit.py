"""DEIMv2's backbone: equal to its authors' code, and as large."""

import importlib
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.models import SpatialTuningViT, VisionTransformer
from vit_plugin.weights import FORMATS

RECORDED = Path(__file__).parents[2] / 'golden/deimv2/backbone.npz'
BN = dict(type='BN')


def tuned(width: int = 8, heads: int = 2, blocks: int = 12, **kwargs) -> SpatialTuningViT:
    """The backbone of DEIMv2-S at this width."""
    return SpatialTuningViT(**{**dict(
        arch=dict(embed_dims=width, num_layers=blocks, num_heads=heads, feedforward_channels=4 * width, patch_size=16),
        img_size=64, tuning_width=4, norm_cfg=BN, out_indices=(3, 7, 11), numerics='timm',
        pos_embed=dict(type='none', rotary=dict(form='centred', planes='halves')),
        encoder=dict(final_norm=False)), **kwargs})


def small(**kwargs) -> SpatialTuningViT:
    return tuned(blocks=3, **{**dict(out_indices=(0, 1, 2)), **kwargs})


def test_equals_recorded_outputs():
    """Those of DEIMv2, recorded by ``PYTHONPATH=DEIMv2 python tests/models/backbones/test_spatial_tuning_vit.py``."""
    arrays = {key: torch.from_numpy(value) for key, value in np.load(RECORDED).items()}
    weights = {key.removeprefix('params/'): value for key, value in arrays.items() if key.startswith('params/')}
    model = tuned().double().eval()
    model.load(weights)
    with torch.no_grad():
        outs = model(arrays['images'].double())
    for i, out in enumerate(outs):
        torch.testing.assert_close(out, arrays[f'out{i}'], rtol=0, atol=1e-12)
    exported, left = FORMATS['deimv2'].export(model.state_dict(), 2)
    assert not left
    assert exported.keys() == {f'backbone.{name}' for name in weights if 'rope_embed' not in name}


def test_as_many_parameters_as_published():
    """With the authors' encoder (1,367,360) and decoder (2,723,118), these are the 9.8 million of DEIMv2-S."""
    model = tuned(192, 3, tuning_width=16)
    assert sum(parameter.numel() for parameter in model.parameters()) == 5_689_360


@pytest.mark.parametrize('size', [(64, 96), (72, 41)])
def test_maps_of_any_image(size):
    model = small().eval()
    outs = model(torch.randn(2, 3, *size))
    assert [tuple(out.shape) for out in outs] == [
        (2, channels, -(-size[0] // stride), -(-size[1] // stride))
        for channels, stride in zip(model.channels, model.strides, strict=True)]
    alone = small(out_indices=2, out_channels=16).eval()
    assert [out.shape[1] for out in alone(torch.randn(2, 3, *size))] == [16, 16, 16]


def test_starts_from_a_plain_transformer():
    plain = VisionTransformer(
        arch=dict(embed_dims=8, num_layers=3, num_heads=2, feedforward_channels=32, patch_size=16), img_size=64,
        pos_embed=dict(type='none', rotary=dict(form='centred', planes='halves')), numerics='timm')
    nn.init.normal_(plain.cls_token)
    model = small(encoder=None)
    report = model.load(plain.state_dict())
    assert {name.partition('.')[0] for name in report.initialised} == {'tuning'}
    assert torch.equal(model.cls_token, plain.cls_token)


def test_every_parameter_learns():
    model = small()
    sum(out.square().mean() for out in model(torch.randn(2, 3, 64, 64))).backward()
    assert not [name for name, parameter in model.named_parameters() if parameter.grad is None]


def test_the_adapter_is_the_last_depth():
    model = small()
    assert model.get_layer_depth('tuning.fuse.0.conv.weight') == model.get_layer_depth('norm.weight')
    assert model.tuning in model.parts_to_shard()


@pytest.mark.parametrize(('kwargs', 'message'), [
    (dict(out_type='featmap'), 'out_type is no option'), (dict(out_indices=(0, 1)), 'must be three blocks')])
def test_errors(kwargs, message):
    with pytest.raises(ConfigError, match=message):
        small(**kwargs)


def record() -> None:
    """Record the authors' outputs, with their modules and no other part of their package."""
    for name in ('engine', 'engine.backbone'):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [next(  # type: ignore[attr-defined]
            str(folder) for path in sys.path if (folder := Path(path, *name.split('.'))).is_dir())]
    sys.modules['engine.core'] = types.ModuleType('engine.core')
    sys.modules['engine.core'].register = lambda: lambda kind: kind  # type: ignore[attr-defined]
    module = importlib.import_module('engine.backbone.dinov3_adapter')
    torch.manual_seed(0)
    model = module.DINOv3STAs('vit_tiny', interaction_indexes=[3, 7, 11], embed_dim=8, num_heads=2, conv_inplane=4)
    for name, value in model.state_dict().items():
        if 'periods' not in name and value.is_floating_point():
            nn.init.normal_(value, std=0.3) if value.ndim > 1 else nn.init.uniform_(value, 0.5, 1.5)
    params = {f'params/{name}': value.numpy().copy() for name, value in model.state_dict().items()}
    images = torch.randn(2, 3, 64, 96)
    with torch.no_grad():
        model.double().eval().dinov3._model.rope_embed.float().dtype = torch.float32  # as ours, whose table is float32
        outs = {f'out{i}': out.numpy() for i, out in enumerate(model(images.double()))}
    np.savez_compressed(RECORDED, images=images.numpy(), **params, **outs)


if __name__ == '__main__':
    record()
