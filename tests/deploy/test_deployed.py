"""Detectors and segmentors as files: equal to the model, and to what the framework predicts."""

from tiny_models import TINY, randomize

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
import torch
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, init_default_scope
from torch import nn

from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export
from vit_plugin.errors import ConfigError

pytestmark = pytest.mark.filterwarnings('ignore')
ARCH = dict(TINY, num_layers=3)
BACKBONE = dict(type='vit_plugin.VisionTransformer', arch=ARCH, img_size=64, out_type='featmap')
HYBRID = dict(
    BACKBONE,
    out_type='pyramid',
    arch=dict(ARCH, patch_size=1, resnet=dict(stage_depths=(1, 1), width=32)),
)
EOMT = dict(
    type='vit_plugin.EoMT', arch=ARCH, img_size=64, num_classes=3, num_queries=4, num_blocks=2
)
DETECTOR = dict(
    type='SingleStageDetector',
    data_preprocessor=dict(
        type='mmdet.DetDataPreprocessor',
        mean=[120.0, 110.0, 100.0],
        std=[60.0, 60.0, 50.0],
        bgr_to_rgb=True,
    ),
)
SEGMENTOR = dict(
    type='EncoderDecoder',
    train_cfg={},
    test_cfg=dict(mode='whole'),
    data_preprocessor=dict(
        type='mmseg.SegDataPreProcessor',
        mean=[120.0, 110.0, 100.0],
        std=[60.0, 60.0, 50.0],
        bgr_to_rgb=True,
    ),
)
QUICK = ('linear', '.onnx', (64, 96))
THINGS = dict(num_things_classes=2, num_stuff_classes=1)
MODELS_OF = {
    'DETR': (
        'mmdet',
        dict(
            DETECTOR,
            backbone=HYBRID,
            test_cfg=dict(max_per_img=40),
            neck=dict(type='FPN', in_channels=[128, 32], out_channels=16, num_outs=3),
            bbox_head=dict(
                type='vit_plugin.LWDETRHead',
                num_classes=3,
                num_queries=40,
                num_groups=2,
                num_levels=3,
                embed_dims=16,
                decoder=dict(
                    num_layers=1,
                    num_heads=2,
                    num_cross_heads=2,
                    num_points=2,
                    feedforward_channels=32,
                ),
            ),
        ),
    ),
    'RetinaNet': (
        'mmdet',
        dict(
            DETECTOR,
            type='RetinaNet',
            backbone=BACKBONE,
            neck=dict(
                type='vit_plugin.SimpleFPN',
                in_channels=32,
                out_channels=16,
                num_outs=3,
                scales=(2, 1, 0.5),
            ),
            bbox_head=dict(
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
                    strides=[4, 8, 16],
                ),
                bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
            ),
            test_cfg=dict(
                nms_pre=600,
                score_thr=0.0,
                nms=dict(type='nms', iou_threshold=0.5),
                max_per_img=10,
                min_bbox_size=0,
            ),
        ),
    ),
    'linear': (
        'mmseg',
        dict(
            SEGMENTOR,
            backbone=BACKBONE,
            decode_head=dict(
                type='FCNHead',
                in_channels=32,
                channels=32,
                num_convs=0,
                concat_input=False,
                num_classes=3,
            ),
        ),
    ),
    'TransUNet': (
        'mmseg',
        dict(
            SEGMENTOR,
            backbone=dict(
                HYBRID,
                arch=dict(ARCH, patch_size=1),
                patch_embed=dict(
                    type='ResNetEmbed', stage_depths=(1, 1, 1), width=32, with_root=True
                ),
                numerics='transunet',
            ),
            decode_head=dict(
                type='vit_plugin.TransUNetHead',
                in_channels=(32, 128, 256, 32),
                strides=(2, 4, 8, 16),
                num_classes=3,
                hidden_channels=16,
                decoder_channels=(16, 8, 8, 8),
            ),
        ),
    ),
    'EoMT': (
        'mmseg',
        dict(
            SEGMENTOR,
            backbone=EOMT,
            decode_head=dict(type='vit_plugin.EoMTDecodeHead', num_classes=3),
        ),
    ),
    'EoMT, panoptic': (
        'mmdet',
        dict(
            DETECTOR,
            type='Mask2Former',
            backbone=EOMT,
            panoptic_head=dict(type='vit_plugin.EoMTHead', **THINGS),
            panoptic_fusion_head=dict(
                type='MaskFormerFusionHead', **THINGS, loss_panoptic=None, init_cfg=None
            ),
            test_cfg=dict(panoptic_on=True),
        ),
    ),
}


def build(kind: str, **changes) -> nn.Module:
    scope, cfg = MODELS_OF[kind]
    if not find_spec(scope):
        pytest.skip(f'{scope} is not installed')
    __import__(f'{scope}.models')
    init_default_scope(scope)
    torch.manual_seed(0)
    model = MODELS.build(ConfigDict(cfg | changes)).eval()
    randomize(model)
    if hasattr(model.backbone, 'queries'):
        model.backbone.queries.set_probs([0.0, 0.0])  # as after training
    return model


@pytest.mark.parametrize(
    ('kind', 'suffix', 'size'),
    [
        pytest.param(*row, marks=() if row == QUICK else pytest.mark.nightly)
        for row in product(MODELS_OF, ('.pt2', '.onnx'), ((64, 64), (64, 96)))
    ],
)
def test_the_file_is_the_model(tmp_path, kind, suffix, size):
    if suffix == '.onnx':
        pytest.importorskip('onnxscript')
    model = deploy(build(kind))
    assert export(model, tmp_path / f'model{suffix}', size) < 1e-4
    assert len(model.outputs) == (
        1 if kind in ('linear', 'EoMT', 'TransUNet') else 2 if kind == 'EoMT, panoptic' else 3
    )


@pytest.mark.parametrize('size', [(64, 96), (30, 40)])
@pytest.mark.parametrize('kind', ['DETR', 'RetinaNet'])
def test_boxes_are_the_frameworks(kind, size):
    """Of an image, and of one that is padded, where boxes beyond it are cut to nothing."""
    from mmdet.structures import DetDataSample

    model, image = build(kind), torch.randint(0, 256, (3, 64, 96)).float()
    mean = model.data_preprocessor.mean.flip(0)  # the pixels are BGR
    image[:, size[0] :], image[:, :, size[1] :] = mean, mean
    sample = DetDataSample(
        metainfo=dict(
            img_shape=size,
            ori_shape=size,
            scale_factor=(1.0, 1.0),
            batch_input_shape=(64, 96),
        )
    )
    boxes, scores, labels = (
        part[0] for part in deploy(model)(image.flip(0)[None], torch.tensor([size]))
    )
    with torch.no_grad():
        found = model.test_step(dict(inputs=[image], data_samples=[sample]))[0].pred_instances
    torch.testing.assert_close(scores, found.scores)
    torch.testing.assert_close(boxes, found.bboxes)
    assert torch.equal(labels, found.labels)


@pytest.mark.parametrize('kind', ['linear', 'EoMT'])
def test_maps_are_the_frameworks(kind):
    from mmseg.structures import SegDataSample

    model, image = build(kind), torch.randint(0, 256, (3, 64, 96)).float()
    sample = SegDataSample(
        metainfo=dict(img_shape=(64, 96), ori_shape=(64, 96), pad_shape=(64, 96))
    )
    logits = deploy(model)(image.flip(0)[None])
    with torch.no_grad():
        found = model.test_step(dict(inputs=[image], data_samples=[sample]))[0]
    np.testing.assert_array_equal(logits[0].argmax(0), found.pred_sem_seg.data[0])


@pytest.mark.parametrize('kind', ['RetinaNet', 'DETR', 'EoMT, panoptic', 'linear'])
def test_what_is_beyond_an_image_is_the_exact_value_of_the_preprocessor(kind):
    """Whatever the caller pads with, in images of a batch that differ in size."""
    from mmseg.structures import SegDataSample

    changes = dict(pad_size_divisor=32, pad_value=0.7)
    if kind == 'linear':
        changes = dict(test_cfg=dict(size_divisor=32), pad_val=0.7)
    before = MODELS_OF[kind][1]['data_preprocessor']
    model = build(kind, data_preprocessor=before | changes)
    images, sizes = 255 * torch.rand(2, 3, 96, 96), torch.tensor([[96, 70], [41, 96]])
    deployed = deploy(model)
    assert deployed.inputs == ('images', 'sizes')
    seen = deployed.normalized(images, sizes)
    for image, pixels, (height, width) in zip(images, seen, sizes.tolist(), strict=True):
        inner = image[:, :height, :width].flip(0)  # as they are read: BGR
        data = dict(inputs=[inner], data_samples=None)
        wanted = torch.full_like(pixels, 0.7)
        data['data_samples'] = [SegDataSample()] if kind == 'linear' else None
        found = model.data_preprocessor(data, False)['inputs'][0]
        wanted[:, : found.shape[1], : found.shape[2]] = found
        assert torch.equal(pixels, wanted)
    with torch.no_grad():
        first, second = deployed(images, sizes), deployed(images.masked_fill(seen == 0.7, 9), sizes)
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)


def test_boxes_below_the_score_of_a_test_are_none():
    model = build('RetinaNet')
    image, size = 255 * torch.rand(1, 3, 64, 96), torch.tensor([[64, 96]])
    with torch.no_grad():
        scores = deploy(model)(image, size)[1]
        model.bbox_head.test_cfg['score_thr'] = middle = scores[0, 5].item()
        fewer = deploy(model)(image, size)[1]
    assert torch.equal(fewer, scores * (scores > middle))
    assert 0 < (fewer > 0).sum() < (scores > 0).sum()


@pytest.mark.parametrize(
    ('part', 'changes', 'words'),
    [
        (
            'test_cfg',
            dict(nms=dict(type='soft_nms', iou_threshold=0.5)),
            'model.test_cfg.nms: .*soft_nms',
        ),
        (
            'test_cfg',
            dict(nms=dict(type='nms', iou_threshold=0.5, class_agnostic=True)),
            'class_agnostic.* is not part of a graph',
        ),
        ('test_cfg', dict(min_bbox_size=4), 'model.test_cfg.min_bbox_size: 4'),
        (
            'bbox_head',
            dict(loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=False)),
            'use_sigmoid: False is not part of a graph; export with True',
        ),
    ],
)
def test_what_is_chosen_in_another_way_is_refused(part, changes, words):
    with pytest.raises(ConfigError, match=words):
        deploy(build('RetinaNet', **{part: MODELS_OF['RetinaNet'][1][part] | changes}))


@pytest.mark.parametrize(
    ('kind', 'changes', 'words'),
    [
        (
            'linear',
            dict(test_cfg=dict(mode='slide', crop_size=(64, 64), stride=(32, 32))),
            "mode='slide' cuts an image",
        ),
        (
            'RetinaNet',
            dict(bbox_head=dict(type='FCOSHead', num_classes=3, in_channels=16)),
            'steps that are not a graph',
        ),
        (
            'RetinaNet',
            dict(backbone=dict(type='ResNet', depth=18)),
            'ResNet is not one of vit_plugin',
        ),
    ],
)
def test_what_is_no_graph(kind, changes, words):
    with pytest.raises(ConfigError, match=words):
        deploy(build(kind, **changes))


@pytest.mark.nightly
@pytest.mark.parametrize(('kind', 'least'), [('RetinaNet', 4), ('DETR', 4)])
def test_a_detector_takes_any_multiple_of_its_padding(tmp_path, kind, least):
    pytest.importorskip('onnxscript')
    model = build(kind)
    deployed = deploy(model)
    assert (deployed.unit, deployed.least) == (8, least)  # two rows of the coarsest map
    # It is run at three sizes, in batches.
    assert export(deployed, tmp_path / 'model.onnx', None) < 1e-4
    model.data_preprocessor.pad_size_divisor = 32
    assert deploy(model).unit == 32


def test_how_far_boxes_are_apart():
    model = deploy(build('DETR'))
    boxes = torch.rand(2, 40, 4) * 64
    scores, labels = torch.rand(2, 40).sort(descending=True).values, torch.randint(0, 3, (2, 40))
    same = (boxes, scores, labels)
    assert model.difference(same, same) == 0
    swapped = torch.arange(40)
    swapped[[3, 4]] = swapped[[4, 3]]
    # Whose scores are alike.
    assert model.difference((boxes[:, swapped], scores, labels[:, swapped]), same) < 0.2
    assert model.difference((boxes + 6.4, scores, labels), same) > 0.05
    assert model.difference((boxes, scores, (labels + 1) % 3), same) > 0.05
    assert model.difference(tuple(part[:, :0] for part in same), same) == torch.inf
