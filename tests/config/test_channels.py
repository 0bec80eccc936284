import pytest

from vit_plugin.config import check_channels
from vit_plugin.errors import ConfigError


@pytest.mark.parametrize(
    ('part', 'fits', 'asked'),
    [
        ('neck', True, [128, 256, 32]),
        ('neck', False, [128, 256, 64]),
        ('neck', True, 32),
        ('neck', False, [256, 512, 1024, 2048]),
        ('head', True, 32),
        ('head', False, 64),
    ],
)
def test_channels_are_compared_with_the_backbones(tiny_hybrid, part, fits, asked):
    backbone = dict(
        tiny_hybrid, type='vit_plugin.VisionTransformer', with_cls_token=False, out_type='pyramid'
    )
    # Below the tokens there are two maps, of 128 and 256 channels.
    backbone['arch']['patch_size'] = 2
    model = dict(
        backbone=backbone,
        **{part: dict(type='Part' if part == 'neck' else None, in_channels=asked)},
    )
    if fits:
        check_channels(model)
    else:
        with pytest.raises(
            ConfigError, match=rf'model.{part}.in_channels=.* does not fit the backbone'
        ):
            check_channels(model)


def test_a_segmentors_head_chooses_maps(tiny):
    backbone = dict(
        tiny, type='vit_plugin.VisionTransformer', out_type='featmap', out_indices=(0, 1)
    )
    check_channels(dict(backbone=backbone, decode_head=dict(in_channels=[32], in_index=[1])))
    with pytest.raises(ConfigError, match=r'set it to \[32\]'):
        check_channels(
            dict(backbone=backbone, decode_head=dict(in_channels=[32, 32], in_index=[1]))
        )


def test_more_maps_than_the_backbone_gives():
    model = dict(
        backbone=dict(type='vit_plugin.VisionTransformer', arch='B/16', out_type='featmap'),
        decode_head=dict(in_channels=768, in_index=3),
    )  # as in MMSegmentation's bases
    with pytest.raises(
        ConfigError, match='model.decode_head.in_index=3 needs more maps than the backbone returns'
    ):
        check_channels(model)


def pooled(tiny: dict, neck: dict, **backbone) -> dict:
    return dict(
        backbone=dict(tiny, type='vit_plugin.VisionTransformer', **backbone),
        neck=dict(type='vit_plugin.TokenPooling', **neck),
    )


@pytest.mark.parametrize(('with_cls_token', 'number'), [(True, 1), (False, 0)])
def test_pooling_is_told_the_prefix_tokens(tiny, with_cls_token, number):
    model = pooled(tiny, {}, out_type='raw', with_cls_token=with_cls_token)
    check_channels(model)
    assert model['neck']['num_prefix_tokens'] == number


@pytest.mark.parametrize(
    ('neck', 'words'),
    [
        (
            dict(num_prefix_tokens=1),
            'num_prefix_tokens=1 does not fit the backbone, which adds 0 tokens',
        ),
        (dict(mode='cls'), "mode='cls' takes the class token, and the backbone has none"),
    ],
)
def test_pooling_is_compared_with_the_prefix_tokens(tiny, neck, words):
    with pytest.raises(ConfigError, match=words):
        check_channels(pooled(tiny, neck, out_type='raw', with_cls_token=False))


def test_pooling_of_a_map_needs_no_number(tiny):
    model = pooled(tiny, {}, out_type='featmap')
    check_channels(model)
    assert 'num_prefix_tokens' not in model['neck']


@pytest.mark.parametrize(
    ('backbone', 'channels'),
    [
        (
            dict(type='vit_plugin.TimmBackbone', model_name='resnet18', out_indices=(3, 4)),
            (256, 512),
        ),
        (dict(type='vit_plugin.MMVisionTransformer', arch='b', out_type='featmap'), (768,)),
        (
            dict(
                type='vit_plugin.WindowedViT',
                arch='S/16',
                encoder=dict(window=dict(size=2, global_blocks=(11,))),
            ),
            (384,),
        ),
    ],
)
@pytest.mark.filterwarnings('ignore')
def test_every_backbone_that_has_channels_is_compared(backbone, channels):
    check_channels(
        dict(
            backbone=backbone,
            decode_head=dict(in_channels=list(channels), in_index=range(len(channels))),
        )
    )
    with pytest.raises(ConfigError, match=rf'model.head.in_channels=7 .* set it to {channels[-1]}'):
        check_channels(dict(backbone=backbone, head=dict(in_channels=7)))
