"""The channels and strides in a model's config are compared with those of its features."""

import re
from typing import Any

import pytest
from rejection import rejects
from wrong_values import RIGHT

from vit_plugin.config import check_channels


@pytest.mark.parametrize(
    ('part', 'fits', 'in_channels'),
    [
        ('neck', True, [128, 256, 32]),
        ('neck', False, [128, 256, 64]),
        ('neck', True, 32),
        ('neck', False, [256, 512, 1024, 2048]),
        ('head', True, 32),
        ('head', False, 64),
    ],
)
def test_in_channels_are_compared_with_the_backbone(tiny_hybrid, part, fits, in_channels):
    backbone = dict(
        tiny_hybrid, type='vit_plugin.VisionTransformer', with_cls_token=False, out_type='pyramid'
    )
    # The CNN gives two maps, of 128 and 256 channels, and the transformer one of 32.
    backbone['arch']['patch_size'] = 2
    model = dict(
        backbone=backbone,
        **{part: dict(type='Part' if part == 'neck' else None, in_channels=in_channels)},
    )
    if fits:
        check_channels(model)
    else:
        with rejects(rf'model.{part}.in_channels=.* does not fit the backbone'):
            check_channels(model)


def test_in_channels_of_decode_heads_follow_in_index(tiny):
    backbone = dict(
        tiny, type='vit_plugin.VisionTransformer', out_type='featmap', out_indices=(0, 1)
    )
    check_channels(dict(backbone=backbone, decode_head=dict(in_channels=[32], in_index=[1])))
    with rejects(r'set it to \[32\]'):
        check_channels(
            dict(backbone=backbone, decode_head=dict(in_channels=[32, 32], in_index=[1]))
        )


@pytest.mark.parametrize(
    'head',
    [
        dict(in_channels=32, in_index=[0]),
        dict(in_channels=[32], in_index=1),
        dict(in_channels=[32, 32], in_index=None),
        dict(in_channels=32, in_index=None),
    ],
)
def test_in_index_and_in_channels_may_be_numbers_or_lists(tiny, head):
    backbone = dict(
        tiny, type='vit_plugin.VisionTransformer', out_type='featmap', out_indices=(0, 1)
    )
    check_channels(dict(backbone=backbone, decode_head=head))
    with rejects('in_channels=7 does not fit the backbone'):
        check_channels(dict(backbone=backbone, decode_head=dict(head, in_channels=7)))


def test_in_index_beyond_the_maps_raises():
    model = dict(
        backbone=dict(type='vit_plugin.VisionTransformer', arch='B/16', out_type='featmap'),
        decode_head=dict(in_channels=768, in_index=3),
    )  # in_index=3 is in MMSegmentation's base configs
    with rejects('model.decode_head.in_index=3 needs more maps than the backbone returns'):
        check_channels(model)


def test_pooling_of_maps_without_maps_raises(tiny):
    backbone = dict(tiny, type='vit_plugin.VisionTransformer', out_type='cls_token')
    for name in ('GlobalAveragePooling', 'mmpretrain.GlobalAveragePooling'):
        model = dict(backbone=backbone, neck=dict(type=name))
        with rejects(f'model.neck: {name} takes maps, and the backbone returns none; set'):
            check_channels(model)
    check_channels(dict(model, backbone=dict(backbone, out_type='featmap')))


def model_with_pooling(tiny: dict, neck: dict, **backbone) -> dict:
    return dict(
        backbone=dict(tiny, type='vit_plugin.VisionTransformer', **backbone),
        neck=dict(type='vit_plugin.TokenPooling', **neck),
    )


@pytest.mark.parametrize(('with_cls_token', 'number'), [(True, 1), (False, 0)])
def test_num_prefix_tokens_of_the_pooling_is_set(tiny, with_cls_token, number):
    model = model_with_pooling(tiny, {}, out_type='raw', with_cls_token=with_cls_token)
    check_channels(model)
    assert model['neck']['num_prefix_tokens'] == number


@pytest.mark.parametrize(
    ('neck', 'words'),
    [
        (
            dict(num_prefix_tokens=1),
            'num_prefix_tokens=1 does not fit the backbone, which adds 0 tokens',
        ),
        (dict(mode='cls'), "mode='cls' takes the class token, but the backbone has none"),
    ],
)
def test_pooling_that_does_not_fit_the_prefix_tokens_raises(tiny, neck, words):
    with rejects(words):
        check_channels(model_with_pooling(tiny, neck, out_type='raw', with_cls_token=False))


def test_num_prefix_tokens_is_not_set_for_maps(tiny):
    model = model_with_pooling(tiny, {}, out_type='featmap')
    check_channels(model)
    assert 'num_prefix_tokens' not in model['neck']


BACKBONES = [  # with their channels
    (dict(type='VisionTransformer', arch='S/16', out_type='featmap'), (384,)),
    (dict(type='TimmBackbone', model_name='resnet18', out_indices=(3, 4)), (256, 512)),
    (dict(type='MMVisionTransformer', arch='b', out_type='featmap'), (768,)),
    (
        dict(
            type='WindowedViT',
            arch='S/16',
            encoder=dict(window=dict(size=2, global_blocks=(11,))),
        ),
        (384,),
    ),
]


@pytest.mark.parametrize(
    ('backbone', 'channels'), [row for row in BACKBONES if row[0]['type'] in RIGHT]
)
@pytest.mark.filterwarnings('ignore')
def test_channels_of_other_backbones_are_compared(backbone, channels):
    backbone = dict(backbone, type=f'vit_plugin.{backbone["type"]}')
    check_channels(
        dict(
            backbone=backbone,
            decode_head=dict(in_channels=list(channels), in_index=range(len(channels))),
        )
    )
    with rejects(rf'model.head.in_channels=7 .* set it to {channels[-1]}'):
        check_channels(dict(backbone=backbone, head=dict(in_channels=7)))


PYRAMID = dict(
    type='vit_plugin.VisionTransformer', arch='R50+B/16', img_size=64, out_type='pyramid'
)  # maps of 256, 512 and 768 channels with strides 4, 8 and 16
FPN = dict(type='mmdet.FPN', in_channels=[256, 512, 768], out_channels=16, num_outs=4)
ANCHORS = dict(type='AnchorGenerator', ratios=[1.0], scales=[8])
SQUARES = [(4, 4), (8, 8), (16, 16), (32, 32)]


def detector(**parts: Any) -> dict:
    return dict(backbone=PYRAMID, neck=FPN, **parts)


@pytest.mark.parametrize(
    ('parts', 'words'),
    [
        (dict(rpn_head=dict(in_channels=16)), None),
        (
            dict(rpn_head=dict(in_channels=256)),
            'model.rpn_head.in_channels=256 does not fit the neck, whose outputs are 16, 16, 16, '
            '16 wide: set it to 16.',
        ),
        (dict(bbox_head=dict(anchor_generator=dict(ANCHORS, strides=SQUARES))), None),
        (
            dict(bbox_head=dict(anchor_generator=dict(ANCHORS, strides=[8, 16, 32, 64]))),
            'model.bbox_head.anchor_generator.strides=[8, 16, 32, 64] does not fit the neck, whose '
            'maps have the strides 4, 8, 16, 32: set it to [4, 8, 16, 32].',
        ),
        (
            dict(bbox_head=dict(anchor_generator=dict(ANCHORS, strides=[4, 8, 16]))),
            'set it to [4, 8, 16, 32].',
        ),
        (dict(roi_head=dict(bbox_roi_extractor=dict(featmap_strides=[4, 8]))), None),
        (
            dict(roi_head=dict(bbox_roi_extractor=dict(featmap_strides=[4, 7]))),
            'model.roi_head.bbox_roi_extractor.featmap_strides=[4, 7] does not fit the neck',
        ),
        (dict(auxiliary_head=[dict(in_channels=16, in_index=3)]), None),
        (
            dict(auxiliary_head=[dict(in_channels=16, in_index=4)]),
            'model.auxiliary_head.0.in_index=4 needs more maps than the neck returns, which are 4: '
            'change it, or num_outs of the neck.',
        ),
    ],
)
@pytest.mark.filterwarnings('ignore')
def test_heads_are_compared_with_the_outputs_of_the_neck(parts, words):
    pytest.importorskip('mmdet')
    if words is None:
        check_channels(detector(**parts))
        return
    with rejects(re.escape(words)):
        check_channels(detector(**parts))


def test_rounded_strides_are_not_compared():
    """MMDetection's SSD has strides such as 100 and 300, which fit one image size."""
    generator = dict(strides=[4, 8, 100])
    neck = dict(FPN, type='vit_plugin.SimpleFPN', in_channels=768, scales=(4, 2, 0.125), num_outs=3)
    model = dict(backbone=PYRAMID, neck=neck, bbox_head=dict(anchor_generator=generator))
    check_channels(model)
    generator['strides'][1] = 16
    with rejects('have the strides 4, 8, 128'):
        check_channels(model)


def test_strides_of_decode_heads_follow_in_index():
    head = dict(in_channels=[256, 768], in_index=[0, 2], strides=[4, 16])
    check_channels(dict(backbone=PYRAMID, decode_head=head))
    head['strides'] = [8, 16]
    with rejects(r'strides=\[8, 16\] .*: set it to \[4, 16\]'):
        check_channels(dict(backbone=PYRAMID, decode_head=head))
