"""Exported detectors and segmentors: equal to the model, and to the framework's predictions."""

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
QUICK = ('linear', '.onnx', (64, 96))  # the one case that does not run only nightly
REAL_TIME = ('RT-DETR', 'D-FINE', 'DEIMv2', 'ECDet')
FAMILY_NAMES = (*REAL_TIME, 'LW-DETR', 'RetinaNet', 'linear', 'TransUNet', 'EoMT', 'EoMT, panoptic')


def build(family: str, **changes) -> nn.Module:
    """A small model of a family with changed settings; RetinaNet keeps boxes of any score."""
    scope, _ = FAMILIES[family]
    if not find_spec(scope):
        pytest.skip(f'{scope} is not installed')
    if family == 'RetinaNet':
        changes = dict(test_cfg=dict(score_thr=0.0)) | changes
    return exported_families.build(
        family, exported_families.TestSettings([], model=dict(model=changes))
    )[1]


@pytest.mark.parametrize(
    ('family', 'suffix', 'size'),
    [
        pytest.param(*row, marks=() if row == QUICK else pytest.mark.nightly)
        for row in product(FAMILY_NAMES, ('.pt2', '.onnx'), ((64, 64), (64, 96)))
    ],
)
def test_exported_files_equal_the_model(tmp_path, family, suffix, size):
    if suffix == '.onnx':
        pytest.importorskip('onnxscript')
    model = deploy(build(family))
    file = tmp_path / f'model{suffix}'
    assert export(model, file, size) < 1e-4
    if suffix == '.onnx':  # operators of the standard only, which any runtime has
        graph = pytest.importorskip('onnx').load(file).graph
        assert {node.domain for node in graph.node} <= {'', 'ai.onnx'}
    if family in ('linear', 'EoMT', 'TransUNet'):
        assert len(model.outputs) == 1
    else:
        assert len(model.outputs) == (2 if family == 'EoMT, panoptic' else 3)


@pytest.mark.parametrize('size', [(64, 96), (30, 40)])
@pytest.mark.parametrize('family', [*REAL_TIME, 'LW-DETR', 'RetinaNet'])
def test_boxes_equal_mmdetections(family, size):
    """For an unpadded image and a padded one, where boxes in the padding become empty."""
    from mmdet.structures import DetDataSample

    model, image = build(family), torch.randint(0, 256, (3, 64, 96)).float()
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
        output[0] for output in deploy(model)(image.flip(0)[None], torch.tensor([size]))
    )
    with torch.no_grad():
        expected = model.test_step(dict(inputs=[image], data_samples=[sample]))[0].pred_instances
    torch.testing.assert_close(scores, expected.scores)
    torch.testing.assert_close(boxes, expected.bboxes)
    assert torch.equal(labels, expected.labels)


@pytest.mark.parametrize('family', ['linear', 'EoMT'])
def test_maps_equal_mmsegmentations(family):
    from mmseg.structures import SegDataSample

    model, image = build(family), torch.randint(0, 256, (3, 64, 96)).float()
    sample = SegDataSample(
        metainfo=dict(img_shape=(64, 96), ori_shape=(64, 96), pad_shape=(64, 96))
    )
    logits = deploy(model)(image.flip(0)[None])
    with torch.no_grad():
        expected = model.test_step(dict(inputs=[image], data_samples=[sample]))[0]
    np.testing.assert_array_equal(logits[0].argmax(0), expected.pred_sem_seg.data[0])


@pytest.mark.parametrize('family', ['RetinaNet', 'LW-DETR', 'EoMT, panoptic', 'linear'])
def test_padding_has_the_exact_value_of_the_preprocessor(family):
    """Whatever values the caller pads images of different sizes with."""
    from mmseg.structures import SegDataSample

    changes = dict(pad_size_divisor=32, pad_value=0.7)
    if family == 'linear':
        changes = dict(test_cfg=dict(size_divisor=32), pad_val=0.7)
    model = build(family, data_preprocessor=changes)
    images, sizes = 255 * torch.rand(2, 3, 96, 96), torch.tensor([[96, 70], [41, 96]])
    deployed = deploy(model)
    assert deployed.inputs == ('images', 'sizes')
    normalized = deployed.normalized(images, sizes)
    for image, pixels, (height, width) in zip(images, normalized, sizes.tolist(), strict=True):
        inner = image[:, :height, :width].flip(0)  # the framework reads BGR
        samples = [SegDataSample()] if family == 'linear' else None
        preprocessed = model.data_preprocessor(dict(inputs=[inner], data_samples=samples), False)
        (padded,) = preprocessed['inputs']
        expected = torch.full_like(pixels, 0.7)
        expected[:, : padded.shape[1], : padded.shape[2]] = padded
        assert torch.equal(pixels, expected)
    with torch.no_grad():
        outputs = deployed(images, sizes)
        other_padding = deployed(images.masked_fill(normalized == 0.7, 9), sizes)
    for output, same in zip(outputs, other_padding, strict=True):
        assert torch.equal(output, same)


def test_boxes_below_the_score_threshold_have_the_score_0():
    model = build('RetinaNet')
    image, size = 255 * torch.rand(1, 3, 64, 96), torch.tensor([[64, 96]])
    with torch.no_grad():
        scores = deploy(model)(image, size)[1]
        threshold = scores[0, 5].item()
        model.bbox_head.test_cfg['score_thr'] = threshold
        thresholded = deploy(model)(image, size)[1]
    assert torch.equal(thresholded, scores * (scores > threshold))
    assert 0 < (thresholded > 0).sum() < (scores > 0).sum()


@pytest.mark.parametrize(
    ('section', 'changes', 'words'),
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
def test_unsupported_selections_of_boxes_raise(section, changes, words):
    with rejects(words):
        deploy(build('RetinaNet', **{section: changes}))


@pytest.mark.parametrize(
    ('family', 'changes', 'words'),
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
def test_models_that_cannot_be_a_graph_raise(family, changes, words):
    with rejects(words):
        deploy(build(family, **changes))


@pytest.mark.nightly
@pytest.mark.parametrize(
    ('family', 'unit', 'min_units'),
    [('RetinaNet', 8, 8), ('LW-DETR', 8, 4), *((family, 32, 2) for family in REAL_TIME)],
)
def test_a_detector_takes_any_multiple_of_its_padding(tmp_path, family, unit, min_units):
    pytest.importorskip('onnxscript')
    model = build(family)
    deployed = deploy(model)
    assert (deployed.unit, deployed.min_units) == (unit, min_units)  # two rows of the coarsest map
    # It is compared at several sizes, in batches.
    assert export(deployed, tmp_path / 'model.onnx', None) < 1e-4
    model.data_preprocessor.pad_size_divisor = 32
    assert deploy(model).unit == 32


def test_the_smallest_image_has_a_map_element_for_each_query():
    """The maps of an image of 64 x 64 pixels have 84 elements together."""
    for queries, min_units in ((84, 2), (85, 3)):
        test_cfg = dict(max_per_img=20)
        model = build('RT-DETR', bbox_head=dict(num_queries=queries), test_cfg=test_cfg)
        assert deploy(model).min_units == min_units


def test_difference_ignores_the_order_of_boxes_with_similar_scores():
    model = deploy(build('LW-DETR'))
    boxes = torch.rand(2, 40, 4) * 64
    scores, labels = torch.rand(2, 40).sort(descending=True).values, torch.randint(0, 3, (2, 40))
    same = (boxes, scores, labels)
    assert model.difference(same, same) == 0
    swapped = torch.arange(40)
    swapped[[3, 4]] = swapped[[4, 3]]
    # Boxes of similar scores may change places.
    assert model.difference((boxes[:, swapped], scores, labels[:, swapped]), same) < 0.2
    assert model.difference((boxes + 6.4, scores, labels), same) > 0.05
    assert model.difference((boxes, scores, (labels + 1) % 3), same) > 0.05
    # Without any boxes, the difference is the largest.
    assert model.difference(tuple(output[:, :0] for output in same), same) == 1
