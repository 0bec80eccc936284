"""PMT equals the authors' code, and its encoder is frozen as in the paper.

As a program, it records the outputs of the authors' code that a test compares with.
"""

from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from authors import recorded
from mmengine.model import revert_sync_batchnorm
from rejection import rejects
from tiny_models import CENTRED, randomize
from torch import nn

from vit_plugin.models import PMT
from vit_plugin.weights import FORMATS

SIZE = (32, 48)  # height and width of the images
DEPTHS = (0, 2)  # indices of the blocks whose output the decoder reads
RECORDED = Path(__file__).parents[2] / 'golden/eomt/PMT.npz'
ARCH = dict(embed_dims=8, num_layers=3, num_heads=2, feedforward_channels=16, patch_size=16)


def pmt(**kwargs) -> PMT:
    """A small PMT, with a plain BatchNorm instead of a synchronized one."""
    return revert_sync_batchnorm(
        PMT(
            **{
                **dict(
                    num_classes=5,
                    num_queries=6,
                    num_blocks=2,
                    feedforward_channels=16,
                    arch=ARCH,
                    img_size=SIZE,
                    numerics='timm',
                    out_indices=DEPTHS,
                    encoder=dict(reg_token=4, layer_scale_init_value=1.0),
                    pos_embed=dict(prefix_rows=False, source_grid=(2, 3)),
                ),
                **kwargs,
            }
        )
    )


def randomized(model: nn.Module) -> nn.Module:
    """The model with random weights, in float64 and eval mode."""
    torch.manual_seed(0)
    return randomize(model, std=0.1).double().eval()


@pytest.mark.parametrize('probs', [(0.0, 0.0), (1.0, 1.0)])
def test_equals_recorded_outputs(probs):
    """Outputs of tue-mps/pmt, recorded by
    ``PYTHONPATH=pmt/image python tests/projects/eomt/test_pmt.py``.
    """
    arrays = {key: torch.from_numpy(value) for key, value in recorded(RECORDED).items()}
    ours = pmt().double().eval()
    ours.load(
        {
            key.removeprefix('params/'): value
            for key, value in arrays.items()
            if key.startswith('params/')
        }
    )
    ours.queries.set_probs(probs)
    with torch.no_grad():
        classes, masks = ours(arrays['images'].double())[-1]
    for name, actual in (('classes', classes), ('masks', masks)):
        expected = arrays[f'{name}{int(probs[0])}']
        torch.testing.assert_close(
            actual, expected, rtol=0, atol=1e-10 * expected.abs().max().item()
        )


def test_exported_weights_are_read_back():
    """This holds for both formats of the authors, and for files without the encoder."""
    model, other = randomized(pmt()), pmt()
    exported, unexported = FORMATS['pmt'].export(model.state_dict(), 2)
    assert not unexported
    assert {f'params/{key}' for key in exported} == {
        key for key in recorded(RECORDED) if key.startswith('params/')
    }
    other.load(exported)
    for key, value in model.float().state_dict().items():
        torch.testing.assert_close(other.state_dict()[key], value, msg=key)
    report = pmt().load({key: value for key, value in exported.items() if '.encoder.' not in key})
    assert {key.partition('.')[0] for key in report.matched} == {'decoder', 'queries'}
    dinov3 = dict(
        pos_embed=CENTRED,
        encoder=dict(reg_token=4, layer_scale_init_value=1.0, qkv_bias='qv'),
    )
    exported, unexported = FORMATS['pmt_dinov3'].export(pmt(**dinov3).state_dict(), 2)
    assert not unexported
    assert not pmt(**dinov3).load(exported).untrained


def test_only_decoder_and_queries_learn():
    model = pmt(img_size=32, pos_embed='learned').train()
    predictions = model(torch.randn(2, 3, 32, 32))
    assert len(predictions) == 3
    sum(part.square().mean() for pair in predictions for part in pair).backward()
    trained = {
        name.partition('.')[0]
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }
    assert trained == {'decoder', 'queries'}
    assert not [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and (parameter.grad is None)
    ]
    assert not model.blocks[0].training
    assert model.decoder.blocks[0].training


@pytest.mark.parametrize(('num_layers', 'indices'), [(8, (1, 3, 5, 7)), (2, (0, 1))])
def test_default_out_indices_are_evenly_spaced(num_layers, indices):
    model = PMT(num_classes=2, arch=dict(ARCH, num_layers=num_layers), img_size=32)
    assert model.out_indices == indices


def test_an_out_type_raises():
    with rejects('out_type is not an option'):
        pmt(out_type='raw')


def record() -> None:
    """Write the golden file with the authors' code."""
    from models import pmt as authors

    encoder = timm.create_model(
        'vit_small_patch14_reg4_dinov2',
        img_size=SIZE,
        patch_size=16,
        num_classes=0,
        depth=3,
        embed_dim=8,
        num_heads=2,
        mlp_ratio=2,
    )
    authors_encoder = nn.Module()
    authors_encoder.backbone = encoder
    authors_encoder.is_dinov3 = False
    authors_encoder.is_frozen = True
    authors_encoder.image_size = SIZE
    authors_encoder.pixel_mean, authors_encoder.pixel_std = 0.0, 1.0
    theirs = authors.PMT(authors_encoder, 5, 6, 2, interaction_indices=list(DEPTHS), hidden_dim=16)
    randomized(theirs).float()
    names = {
        f'network.{key}': value
        for key, value in theirs.state_dict().items()
        if key != 'rope.inv_freq'
    }
    arrays = {f'params/{key}': value for key, value in names.items()} | {
        'images': torch.randn(1, 3, *SIZE)
    }
    theirs.double()
    for prob in (0, 1):
        theirs.attn_mask_probs.fill_(prob)
        with torch.no_grad():
            masks, classes = theirs(arrays['images'].double())
        arrays |= {f'masks{prob}': masks[-1], f'classes{prob}': classes[-1]}
    np.savez_compressed(RECORDED, **arrays)


if __name__ == '__main__':
    record()
