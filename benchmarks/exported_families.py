"""Tiny models of all families for the tests of export and inference, saved as checkpoints.

A family is a kind of classifier, segmentor or detector. ``FAMILIES`` has the config of each with
its framework's scope, ``TestSettings`` the preprocessing, and ``save`` writes a checkpoint with
random weights and a config, as a training would.
"""

from tiny_models import TINY

import vit_plugin.detection  # noqa: F401  isort: skip  must be imported before mmdet

from pathlib import Path
from typing import Any, NamedTuple

import torch
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from torch import nn

FASTER_RCNN_TRAIN_CFG = dict(
    rpn=dict(
        assigner=dict(type='MaxIoUAssigner', pos_iou_thr=0.7, neg_iou_thr=0.3),
        sampler=dict(type='RandomSampler', num=16, pos_fraction=0.5),
        allowed_border=-1,
        pos_weight=-1,
    ),
    rpn_proposal=dict(nms_pre=20, max_per_img=10, nms=dict(type='nms', iou_threshold=0.7)),
    rcnn=dict(
        assigner=dict(type='MaxIoUAssigner', pos_iou_thr=0.5, neg_iou_thr=0.5),
        sampler=dict(type='RandomSampler', num=16, pos_fraction=0.25),
        pos_weight=-1,
    ),
)
ARCH = dict(TINY, num_layers=3)
POS_EMBED = dict(pos_embed=dict(type='learned', interpolate_mode='bicubic'))
VIT = dict(
    type='vit_plugin.VisionTransformer', arch=ARCH, img_size=64, out_type='featmap', **POS_EMBED
)
CLASSIFIER_VIT = dict(type='vit_plugin.VisionTransformer', arch=ARCH, img_size=64, **POS_EMBED)
PYRAMID = dict(VIT, out_type='pyramid', out_indices=(0, 1, 2))
HYBRID = dict(
    VIT,
    out_type='pyramid',
    arch=dict(ARCH, patch_size=1, resnet=dict(stage_depths=(1, 1), width=32)),
)
TRANSUNET = dict(
    VIT,
    out_type='pyramid',
    arch=dict(ARCH, patch_size=1),
    patch_embed=dict(type='ResNetEmbed', stage_depths=(1, 1, 1), width=32, with_root=True),
    numerics='transunet',
)
ADAPTER = dict(
    type='vit_plugin.ViTAdapter',
    backbone=dict(arch=dict(ARCH, num_layers=4, patch_size=16), img_size=64, **POS_EMBED),
    attention=dict(num_heads=2, num_points=3),
    conv_inplane=4,
    norm_cfg=dict(type='BN'),
)
EOMT = dict(type='vit_plugin.EoMT', arch=ARCH, img_size=64, num_queries=4, num_blocks=2)
SIMPLE_FPN = dict(
    type='vit_plugin.SimpleFPN', in_channels=32, out_channels=16, num_outs=4, scales=(2, 1, 0.5)
)
NORM = dict(type='BN')
HEAD = dict(num_classes=3, norm_cfg=NORM, channels=16)
PYRAMID_INPUT = dict(in_channels=[32] * 3, in_index=[0, 1, 2])  # of a head on PYRAMID
THINGS = dict(num_things_classes=2, num_stuff_classes=1)
INSTANCES = dict(num_things_classes=3, num_stuff_classes=0)
LW_DETR = dict(
    type='vit_plugin.LWDETRHead',
    num_classes=3,
    num_queries=20,
    num_groups=2,
    embed_dims=16,
    decoder=dict(
        num_layers=1, num_heads=2, num_cross_heads=2, num_points=2, feedforward_channels=32
    ),
)
HGNET = dict(
    type='vit_plugin.HGNetV2',
    arch=dict(
        stem=(4, 8),
        stages=[
            (8, 4, 16, 1, False, False, 3, 1),
            *[(16, 8, 16, 1, True, True, 3, 1)] * 3,
        ],
    ),
)
RT_DETR = dict(
    type='vit_plugin.RTDETRHead',
    num_classes=3,
    num_queries=20,
    in_channels=[16] * 3,
    embed_dims=16,
    decoder=dict(num_layers=2, num_heads=2, num_points=(1, 2, 1), feedforward_channels=32),
)
D_FINE = dict(RT_DETR, type='vit_plugin.DFINEHead', distributions=dict(bins=8, quality_channels=8))


def real_time_detector(backbone: dict, kind: str, head: dict) -> tuple[str, dict]:
    """An entry of `FAMILIES`: a detector with a neck of this kind, see `HybridEncoder`."""
    return (
        'mmdet',
        dict(
            type='SingleStageDetector',
            backbone=backbone,
            neck=dict(
                type='vit_plugin.HybridEncoder',
                in_channels=[16] * 3,
                out_channels=16,
                kind=kind,
                depth=0.34,
                expansion=0.5,
                num_heads=2,
                feedforward_channels=32,
                projects=backbone['type'].endswith('HGNetV2'),
            ),
            bbox_head=head,
            test_cfg=dict(max_per_img=20),
        ),
    )


RETINA = dict(
    type='RetinaHead',
    num_classes=3,
    in_channels=16,
    feat_channels=16,
    stacked_convs=1,
    anchor_generator=dict(
        type='AnchorGenerator',
        octave_base_scale=4,
        scales_per_octave=2,
        ratios=[0.5, 1.0],
        strides=[4, 8, 16, 32],
    ),
    bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
)
RETINA_TEST = dict(
    nms_pre=600,
    score_thr=0.05,
    nms=dict(type='nms', iou_threshold=0.5),
    max_per_img=20,
    min_bbox_size=0,
)


def classifier(backbone: dict, head: dict | None = None, neck: dict | None = None) -> dict:
    """A classifier with changes of the usual backbone and head."""
    usual_head = dict(type='vit_plugin.ViTClsHead', num_classes=5, in_channels=32)
    return dict(
        type='ImageClassifier',
        backbone=CLASSIFIER_VIT | backbone,
        neck=neck,
        head=usual_head if head is None else {**usual_head, **head},
    )


def segmentor(backbone: dict, **head: Any) -> dict:
    return dict(
        type='EncoderDecoder',
        backbone=backbone,
        decode_head=head,
        train_cfg={},
        test_cfg=dict(mode='whole'),
    )


def detector(kind: str, **parts: Any) -> dict:
    return dict(type=kind, **parts)


def eomt_detector(classes: dict, **test: bool) -> dict:
    """EoMT in MMDetection, for instance or panoptic segmentation."""
    return detector(
        'Mask2Former',
        backbone=dict(EOMT, num_classes=3),
        panoptic_head=dict(type='vit_plugin.EoMTHead', **classes),
        panoptic_fusion_head=dict(
            type='MaskFormerFusionHead', **classes, loss_panoptic=None, init_cfg=None
        ),
        test_cfg=dict(max_per_image=10, iou_thr=0.8, filter_low_score=True, **test),
    )


# Name of a family -> the default scope of its framework, and the config of its model.
FAMILIES: dict[str, tuple[str, dict]] = {
    'class token': ('mmpretrain', classifier({})),
    'mean of patches': ('mmpretrain', classifier(dict(out_type='avg_featmap'))),
    'pre-logits': ('mmpretrain', classifier({}, dict(hidden_dim=16))),
    'distilled': (
        'mmpretrain',
        classifier(
            dict(out_type='raw', encoder=dict(dist_token=1)),
            dict(type='vit_plugin.DistilledViTClsHead'),
        ),
    ),
    'attention pooling': (
        'mmpretrain',
        classifier(
            dict(out_type='raw', with_cls_token=False),
            neck=dict(
                type='vit_plugin.TokenPooling',
                mode='map',
                in_channels=32,
                num_prefix_tokens=0,
                map_cfg=dict(num_heads=2),
            ),
        ),
    ),
    'several labels': (
        'mmpretrain',
        classifier({}, dict(type='MultiLabelLinearClsHead', num_classes=5, in_channels=32)),
    ),
    'hybrid': (
        'mmpretrain',
        classifier(dict(arch=HYBRID['arch'])),
    ),
    'linear': (
        'mmseg',
        segmentor(
            VIT,
            **HEAD | dict(channels=32),
            type='FCNHead',
            in_channels=32,
            num_convs=0,
            concat_input=False,
        ),
    ),
    'one class': (
        'mmseg',
        segmentor(
            VIT,
            **{**HEAD, 'num_classes': 2},
            type='FCNHead',
            in_channels=32,
            num_convs=1,
            concat_input=False,
            out_channels=1,
            threshold=0.5,
        ),
    ),
    'SegFormer': (
        'mmseg',
        segmentor(PYRAMID, **HEAD, **PYRAMID_INPUT, type='SegformerHead'),
    ),
    'SegFormer, align_corners': (
        'mmseg',
        segmentor(
            PYRAMID,
            **HEAD,
            **PYRAMID_INPUT,
            type='SegformerHead',
            align_corners=True,
        ),
    ),
    'UPerNet': (
        'mmseg',
        segmentor(
            PYRAMID,
            **HEAD,
            **PYRAMID_INPUT,
            type='UPerHead',
            pool_scales=(1, 2, 3),
        ),
    ),
    'UPerNet on ViT-Adapter': (
        'mmseg',
        segmentor(
            ADAPTER,
            **HEAD,
            type='UPerHead',
            in_channels=[32] * 4,
            in_index=[0, 1, 2, 3],
            pool_scales=(1, 2),
        ),
    ),
    'depth': (
        'mmseg',
        segmentor(
            PYRAMID,
            type='vit_plugin.LinearDepthHead',
            in_channels=[32] * 3,
            max_depth=10.0,
            num_bins=8,
        )
        | dict(type='DepthEstimator'),
    ),
    'TransUNet': (
        'mmseg',
        segmentor(
            TRANSUNET,
            type='vit_plugin.TransUNetHead',
            in_channels=(32, 128, 256, 32),
            strides=(2, 4, 8, 16),
            num_classes=3,
            hidden_channels=16,
            decoder_channels=(16, 8, 8, 8),
        ),
    ),
    'EoMT': (
        'mmseg',
        segmentor(dict(EOMT, num_classes=3), type='vit_plugin.EoMTDecodeHead', num_classes=3),
    ),
    'EoMT, instances': ('mmdet', eomt_detector(INSTANCES, instance_on=True, panoptic_on=False)),
    'EoMT, panoptic': ('mmdet', eomt_detector(THINGS, panoptic_on=True, instance_on=False)),
    'RetinaNet': (
        'mmdet',
        detector(
            'RetinaNet', backbone=VIT, neck=SIMPLE_FPN, bbox_head=RETINA, test_cfg=RETINA_TEST
        ),
    ),
    'LW-DETR': (
        'mmdet',
        detector(
            'SingleStageDetector',
            backbone=HYBRID,
            neck=dict(
                type='FPN',
                in_channels=[128, 32],
                out_channels=16,
                num_outs=3,
                add_extra_convs='on_output',  # else the third map subsamples the second
            ),
            bbox_head=dict(LW_DETR, num_levels=3),
            test_cfg=dict(max_per_img=20),
        ),
    ),
    'RF-DETR': (
        'mmdet',
        detector(
            'SingleStageDetector',
            backbone=dict(
                type='vit_plugin.WindowedViT',
                arch=ARCH,
                img_size=64,
                numerics='timm',
                out_indices=(0, 1, 2),
                encoder=dict(window=dict(size=4, global_blocks=(1,))),
            ),
            neck=dict(
                type='vit_plugin.C2fProjector',
                in_channels=[32] * 3,
                out_channels=16,
                norm_cfg=dict(type='LN2d', eps=1e-5),
            ),
            bbox_head=LW_DETR,
            test_cfg=dict(max_per_img=20),
        ),
    ),
    'RT-DETR': real_time_detector(HGNET, 'csp', RT_DETR),
    'D-FINE': real_time_detector(HGNET, 'elan', D_FINE),
    'DEIMv2': real_time_detector(
        dict(
            type='vit_plugin.SpatialTuningAdapter',
            arch=ARCH,
            img_size=64,
            out_channels=16,
            conv_inplane=4,
            out_indices=(0, 1, 2),
            pos_embed=dict(type='none', rotary=dict(form='centred', planes='halves')),
        ),
        'split',
        dict(D_FINE, variant='deimv2'),
    ),
    'ECDet': real_time_detector(
        dict(type='vit_plugin.ECViT', arch=ARCH, img_size=64, out_channels=16, **POS_EMBED),
        'split',
        dict(D_FINE, variant='ecdet'),
    ),
    'Faster R-CNN': (
        'mmdet',
        detector(
            'FasterRCNN',
            train_cfg=FASTER_RCNN_TRAIN_CFG,
            backbone=VIT,
            neck=SIMPLE_FPN,
            rpn_head=dict(
                type='RPNHead',
                in_channels=16,
                feat_channels=16,
                anchor_generator=dict(
                    type='AnchorGenerator', scales=[8], ratios=[1.0], strides=[4, 8, 16, 32]
                ),
            ),
            roi_head=dict(
                type='StandardRoIHead',
                bbox_roi_extractor=dict(
                    type='SingleRoIExtractor',
                    roi_layer=dict(type='RoIAlign', output_size=7, sampling_ratio=0),
                    out_channels=16,
                    featmap_strides=[4, 8, 16],
                ),
                bbox_head=dict(
                    type='Shared2FCBBoxHead', in_channels=16, fc_out_channels=16, num_classes=3
                ),
            ),
            test_cfg=dict(
                rpn=dict(
                    nms_pre=100,
                    max_per_img=20,
                    nms=dict(type='nms', iou_threshold=0.7),
                    min_bbox_size=0,
                ),
                rcnn=dict(score_thr=0.05, nms=dict(type='nms', iou_threshold=0.5), max_per_img=20),
            ),
        ),
    ),
}
# Number of classes of the families that differ from the others of their framework: 5 or 3.
NUM_CLASSES = {'one class': 2, 'depth': 0}
PREPROCESSORS = dict(
    mmpretrain='ClsDataPreprocessor', mmseg='SegDataPreProcessor', mmdet='DetDataPreprocessor'
)
DATA_SETS = dict(mmpretrain='CustomDataset', mmseg='BaseSegDataset', mmdet='CocoDataset')
PACKS = dict(mmpretrain='PackInputs', mmseg='PackSegInputs', mmdet='PackDetInputs')
PIXELS = dict(mean=[123.675, 116.28, 103.53], std=[58.395, 57.12, 57.375])


class TestSettings(NamedTuple):
    """The preprocessing of a model, and changes of its config.

    Attributes:
        steps: transforms of the test pipeline between loading and packing.
        padding: ``size_divisor`` and ``pad_val``, by their names in MMSegmentation.
        rgb: whether the preprocessor turns BGR into RGB.
        loader: arguments of ``LoadImageFromFile``.
        model: changes of the config, by dotted keys.
    """

    steps: list[dict]
    padding: dict[str, Any] = {}
    rgb: bool = True
    loader: dict[str, Any] = {}
    model: dict[str, Any] = {}


def build(family: str, test: TestSettings) -> tuple[Config, nn.Module]:
    """The config of a family with its test pipeline, and the model with random weights."""
    scope, model = FAMILIES[family]
    __import__(f'{scope}.models')
    __import__(f'{scope}.datasets')
    init_default_scope(scope)
    preprocessor = dict(type=f'{scope}.{PREPROCESSORS[scope]}', **PIXELS, **_padding(scope, test))
    preprocessor['to_rgb' if scope == 'mmpretrain' else 'bgr_to_rgb'] = test.rgb
    pipeline = [dict(type='LoadImageFromFile', **test.loader), *test.steps]
    metas: dict[str, Any] = {}
    if scope == 'mmdet':
        metas['meta_keys'] = ('img_id', 'img_path', 'ori_shape', 'img_shape', 'scale_factor')
    pipeline.append(dict(type=PACKS[scope], **metas))
    cfg = Config(
        dict(
            default_scope=scope,
            model=dict(model, data_preprocessor=preprocessor),
            test_dataloader=dict(dataset=dict(type=DATA_SETS[scope], pipeline=pipeline)),
        )
    )
    cfg.merge_from_dict(dict(test.model))
    torch.manual_seed(0)
    network = MODELS.build(cfg.model).eval()
    for name, parameter in network.named_parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=0.06 if 'bbox_head' in name else 0.15)
        elif name.endswith('bias'):
            nn.init.normal_(parameter, std=0.1)
        else:
            nn.init.uniform_(parameter, 0.5, 1.5)
    if hasattr(network.backbone, 'queries'):
        network.backbone.queries.set_probs([0.0, 0.0])  # no masked attention, as after training
    return cfg, network


def _padding(scope: str, test: TestSettings) -> dict[str, Any]:
    """The arguments of the framework's data preprocessor for a test's padding."""
    if scope != 'mmseg':
        named = {'size_divisor': 'pad_size_divisor', 'pad_val': 'pad_value'}
        return {named.get(key, key): value for key, value in test.padding.items()}
    # MMSegmentation pads to a divisor in tests only if test_cfg says so.
    padding = dict(test.padding)
    value = {'pad_val': padding.pop('pad_val')} if 'pad_val' in padding else {}
    return value | ({'test_cfg': padding} if padding else {})


def save(family: str, test: TestSettings, path: Path) -> Path:
    """Write a checkpoint of a family with its config. Returns ``path``."""
    cfg, model = build(family, test)
    classes = [f'class {number}' for number in range(5 if cfg.default_scope == 'mmpretrain' else 3)]
    if family in NUM_CLASSES:
        classes = classes[: NUM_CLASSES[family]]
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=classes))
    torch.save(dict(meta=meta, state_dict=model.state_dict()), path)
    return path
