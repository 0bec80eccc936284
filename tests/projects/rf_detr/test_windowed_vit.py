"""RF-DETR's backbone; test_lw_detr_head.py compares it with that of transformers."""

import pytest
import torch
from model_states import assert_all_learn
from rejection import rejects
from tiny_models import TINY

from vit_plugin.models import VisionTransformer, WindowedViT

SMALL = dict(arch=dict(TINY, num_layers=3), img_size=48)


def windows(size: int, *global_blocks: int) -> dict:
    """Settings of ``encoder`` for windows of ``size`` x ``size`` patches."""
    return dict(window=dict(size=size, global_blocks=global_blocks))


def seeded_model(cls: type, **kwargs) -> VisionTransformer:
    torch.manual_seed(0)
    model = cls(**SMALL, **kwargs)
    torch.nn.init.normal_(model.cls_token)
    return model.eval()


def test_one_window_equals_a_plain_transformer():
    plain, windowed = (
        seeded_model(VisionTransformer, out_type='featmap'),
        seeded_model(WindowedViT, encoder=windows(6)),
    )
    windowed.load_state_dict(plain.state_dict())
    images = torch.randn(2, 3, 48, 48)
    torch.testing.assert_close(windowed(images)[0], plain(images)[0])


@pytest.mark.parametrize('size', [(48, 48), (24, 48), (40, 56)])
def test_windows_are_separate_until_a_global_block(size):
    images = torch.randn(1, 3, *size)
    changed = images.clone()
    changed[..., :8, :8] = 0  # the first patch
    for global_blocks, spreads in (((), False), ((2,), True)):
        model = seeded_model(WindowedViT, encoder=windows(3, *global_blocks))
        same = torch.isclose(model(images)[0], model(changed)[0], atol=1e-6).all(1)[0]
        assert tuple(same.shape) == (size[0] // 8, size[1] // 8)
        assert same[:3, :3].logical_not().any()
        if spreads:
            assert not same[:, 3:].any()
        else:
            assert same[3:].all()
            assert same[:, 3:].all()


def test_number_of_windows_divides_a_rectangle():
    images = torch.randn(1, 3, 48, 64)
    changed = images.clone()
    changed[..., :8, :8] = 0  # the first patch
    model = seeded_model(WindowedViT, encoder=dict(window=dict(number=2)))
    same = torch.isclose(model(images)[0], model(changed)[0], atol=1e-6).all(1)[0]
    assert same[:3, :4].logical_not().all()
    assert same[3:].all()
    assert same[:, 4:].all()


def test_every_parameter_learns():
    model = seeded_model(WindowedViT, encoder=windows(3, 1), out_indices=(1, 2)).train()
    sum(out.square().mean() for out in model(torch.randn(2, 3, 48, 40))).backward()
    assert_all_learn(model)


@pytest.mark.parametrize(
    ('kwargs', 'message'),
    [
        (dict(), 'no block has windows'),
        (dict(encoder=windows(3, 0, 1, 2)), 'no block has windows'),
        (dict(encoder=dict(window=dict(size=3, number=2))), 'give one of them'),
        (dict(encoder=dict(window=dict(global_blocks=(1,)))), 'give one of them'),
        (dict(encoder=windows(3) | dict(reg_token=2)), 'a class token, but no other extra token'),
        (dict(encoder=windows(3), with_cls_token=False), 'a class token, but no other extra token'),
        (
            dict(encoder=windows(3), pos_embed=dict(rotary=dict(form='centred'))),
            'no rotary positions',
        ),
        (dict(encoder=windows(3), out_type='cls_token'), "take 'featmap' or 'pyramid'"),
    ],
)
def test_wrong_arguments_raise(kwargs, message):
    with rejects(message):
        WindowedViT(**SMALL, **kwargs)
