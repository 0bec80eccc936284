"""Models of the task segmentation with MMSegmentation's own heads, as :class:`TaskModel`."""

from typing import Any

from vit_plugin.arguments.fields import Section
from vit_plugin.config import framework_model
from vit_plugin.config.task_model import NORM, ModelFacts, TaskModel
from vit_plugin.from_folder.mask2former import QUERY_SCHEDULES, mask2former_head
from vit_plugin.from_folder.schedule import muon

# The mean is over pixels with a class, not over all.
MAP_LOSS = dict(type='CrossEntropyLoss', avg_non_ignore=True)
MMSEG_MASK2FORMER = 'mmseg::mask2former/mask2former_r50_8xb2-160k_ade20k-512x512.py'


def _head(facts: ModelFacts, in_channels: Any, **arguments: Any) -> Section:
    """A head on all feature maps if ``in_channels`` is a list, else on the first one."""
    common = dict(
        in_channels=in_channels,
        in_index=list(range(len(in_channels))) if isinstance(in_channels, list) else 0,
        num_classes=facts.classes,
        norm_cfg=NORM,
        align_corners=False,
        loss_decode=MAP_LOSS,
    )
    return {**common, **arguments}


def _segformer(facts: ModelFacts) -> Section:
    """SegFormer's all-MLP head on a hybrid's CNN maps and tokens, or on a plain ViT's tokens."""
    channels = list(facts.meta_backbone.channels)
    head = _head(facts, channels, type='SegformerHead', channels=128 if facts.is_wide else 64)
    return dict(
        backbone=facts.backbone('pyramid' if len(channels) > 1 else 'featmap'), decode_head=head
    )


def _upernet(facts: ModelFacts) -> Section:
    """UPerNet on a hybrid's CNN maps and tokens.

    On a plain ViT, it gets the tokens of four depths, resized to a pyramid.
    """
    width, channels = (512 if facts.is_wide else 128), list(facts.meta_backbone.channels)
    neck: Section = {}
    if len(channels) > 1:
        backbone = facts.backbone('pyramid')
    else:
        depths = facts.depths()
        backbone, channels = facts.backbone('featmap', out_indices=depths), channels * len(depths)
        scales = [4, 2, 1, 0.5]
        if len(depths) > 1:  # the deepest map becomes the coarsest; a single one is repeated
            scales = scales[-len(depths) :]
        rescale = dict(in_channels=channels, out_channels=channels[0], scales=scales)
        neck = dict(neck=dict(type='MultiLevelNeck', **rescale))
        channels = channels[:1] * len(scales)
    head = _head(facts, channels, type='UPerHead', channels=width, pool_scales=(1, 2, 3, 6))
    auxiliary = _head(
        facts,
        channels[-2],
        type='FCNHead',
        in_index=len(channels) - 2,
        channels=width // 2,
        num_convs=1,
        concat_input=False,
        loss_decode=dict(MAP_LOSS, loss_weight=0.4),
    )
    return dict(backbone=backbone, **neck, decode_head=head, auxiliary_head=auxiliary)


def _mask2former(facts: ModelFacts) -> Section:
    width = 256 if facts.is_wide else 128
    backbone, neck, strides = facts.pyramid(width, 4, finest=4)
    head = framework_model(MMSEG_MASK2FORMER)['decode_head']
    head = mask2former_head(head, width, strides) | dict(
        num_classes=facts.classes,
        # Fewer than for objects: an image has at most one segment of each class.
        num_queries=facts.queries('mask2former', least=100 if facts.is_wide else 20),
    )
    head['loss_cls']['class_weight'] = [1.0] * facts.classes + [0.1]  # the last: no object
    head['train_cfg']['num_points'] = facts.mask_points
    return dict(backbone=backbone, neck=neck, decode_head=head)


def _linear(facts: ModelFacts) -> Section:
    """A 1x1 convolution with batch norm, then the 1x1 classifier; linear at inference."""
    width = facts.meta_backbone.embed_dims
    head = _head(
        facts,
        width,
        type='FCNHead',
        in_index=0,
        channels=width,
        num_convs=1,
        kernel_size=1,
        concat_input=False,
        dropout_ratio=0.0,
        norm_cfg=dict(type='BN'),
        act_cfg=None,
    )
    return dict(backbone=facts.backbone('featmap'), decode_head=head)


SEGFORMER = TaskModel(
    "SegFormer's head",
    _segformer,
    schedules=dict(small=dict(rate=4e-3, optimizer=muon)),
    allows_wrapped=True,
)
UPERNET = TaskModel('a UPerNet', _upernet, allows_wrapped=True)
MASK2FORMER_MAPS = TaskModel(
    'a Mask2Former',
    _mask2former,
    schedules=QUERY_SCHEDULES,
    imports=('vit_plugin.detection', 'mmdet.models'),
    allows_wrapped=True,
)
LINEAR_MAPS = TaskModel('a linear head', _linear, allows_wrapped=True)
