"""Detectors and segmentors as files: equal to the model, and to what the framework predicts."""

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest
import torch
from rejection import rejects
from torch import nn

from benchmarks import exported_families
from benchmarks.exported_families import FAMILIES
from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export

pytestmark = pytest.mark.filterwarnings('ignore')
QUICK = ('linear', '.onnx', (64, 96))
REAL_TIME = ('RT-DETR', 'D-FINE', 'DEIMv2', 'ECDet')
KINDS = (*REAL_TIME, 'LW-DETR', 'RetinaNet', 'linear', 'TransUNet', 'EoMT', 'EoMT, panoptic')


def build(kind: str, **changes) -> nn.Module:
    """A model of the family, whose boxes of any score are kept, with other settings."""
    scope, _ = FAMILIES[kind]
    if not find_spec(scope):
        pytest.skip(f'{scope} is not installed')
    if kind == 'RetinaNet':
        changes = dict(test_cfg=dict(score_thr=0.0)) | changes
    return exported_families.build(kind, exported_families.Test([], model=dict(model=changes)))[1]


@pytest.mark.parametrize(
    ('kind', 'suffix', 'size'),
    [
        pytest.param(*row, marks=() if row == QUICK else pytest.mark.nightly)
        for row in product(KINDS, ('.pt2', '.onnx'), ((64, 64), (64, 96)))
    ],
)
def test_the_file_is_the_model(tmp_path, kind, suffix, size):
    if suffix == '.onnx':
        pytest.importorskip('onnxscript')
    model = deploy(build(kind))
    file = tmp_path / f'model{suffix}'
    assert export(model, file, size) < 1e-4
    if suffix == '.onnx':  # no operator of a library
        graph = pytest.importorskip('onnx').load(file).graph
        assert {node.domain for node in graph.node} <= {'', 'ai.onnx'}
    assert len(model.outputs) == (
        1 if kind in ('linear', 'EoMT', 'TransUNet') else 2 if kind == 'EoMT, panoptic' else 3
    )


@pytest.mark.parametrize('size', [(64, 96), (30, 40)])
@pytest.mark.parametrize('kind', [*REAL_TIME, 'LW-DETR', 'RetinaNet'])
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


@pytest.mark.parametrize('kind', ['RetinaNet', 'LW-DETR', 'EoMT, panoptic', 'linear'])
def test_what_is_beyond_an_image_is_the_exact_value_of_the_preprocessor(kind):
    """Whatever the caller pads with, in images of a batch that differ in size."""
    from mmseg.structures import SegDataSample

    changes = dict(pad_size_divisor=32, pad_value=0.7)
    if kind == 'linear':
        changes = dict(test_cfg=dict(size_divisor=32), pad_val=0.7)
    model = build(kind, data_preprocessor=changes)
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
            'class_agnostic.* cannot be exported',
        ),
        ('test_cfg', dict(min_bbox_size=4), 'model.test_cfg.min_bbox_size: 4'),
        (
            'bbox_head',
            dict(loss_cls=dict(type='CrossEntropyLoss', use_sigmoid=False)),
            'use_sigmoid: False cannot be exported; export with True',
        ),
    ],
)
def test_what_is_chosen_in_another_way_is_refused(part, changes, words):
    with rejects(words):
        deploy(build('RetinaNet', **{part: changes}))


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
            dict(bbox_head=dict(_delete_=True, type='FCOSHead', num_classes=3, in_channels=16)),
            'steps that cannot be exported',
        ),
        (
            'RetinaNet',
            dict(backbone=dict(_delete_=True, type='ResNet', depth=18)),
            'ResNet is not one of vit_plugin',
        ),
    ],
)
def test_what_is_no_graph(kind, changes, words):
    with rejects(words):
        deploy(build(kind, **changes))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('kind', 'unit', 'least'),
    [('RetinaNet', 8, 8), ('LW-DETR', 8, 4), *((kind, 32, 2) for kind in REAL_TIME)],
)
def test_a_detector_takes_any_multiple_of_its_padding(tmp_path, kind, unit, least):
    pytest.importorskip('onnxscript')
    model = build(kind)
    deployed = deploy(model)
    assert (deployed.unit, deployed.least) == (unit, least)  # two rows of the coarsest map
    # It is run at three sizes, in batches.
    assert export(deployed, tmp_path / 'model.onnx', None) < 1e-4
    model.data_preprocessor.pad_size_divisor = 32
    assert deploy(model).unit == 32


def test_the_smallest_image_has_an_element_for_each_query():
    """Of 64 x 64 pixels, these maps have 84 elements."""
    for queries, least in ((84, 2), (85, 3)):
        test = dict(max_per_img=20)
        model = build('RT-DETR', bbox_head=dict(num_queries=queries), test_cfg=test)
        assert deploy(model).least == least


def test_how_far_boxes_are_apart():
    model = deploy(build('LW-DETR'))
    boxes = torch.rand(2, 40, 4) * 64
    scores, labels = torch.rand(2, 40).sort(descending=True).values, torch.randint(0, 3, (2, 40))
    same = (boxes, scores, labels)
    assert model.difference(same, same) == 0
    swapped = torch.arange(40)
    swapped[[3, 4]] = swapped[[4, 3]]
    # Their scores are alike.
    assert model.difference((boxes[:, swapped], scores, labels[:, swapped]), same) < 0.2
    assert model.difference((boxes + 6.4, scores, labels), same) > 0.05
    assert model.difference((boxes, scores, (labels + 1) % 3), same) > 0.05
    assert model.difference(tuple(part[:, :0] for part in same), same) == 1
