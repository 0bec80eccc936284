"""Batches predict like single images, and all readable inputs are predicted."""

from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config, ConfigDict
from mmengine.registry import MODELS, DefaultScope
from rejection import rejects

from vit_plugin.inference import predicting
from vit_plugin.inference.inputs import Reading, find_inputs
from vit_plugin.inference.predicting import batches, predict_all
from vit_plugin.inference.prediction_files import create_writer
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.tasks.classification.class_prediction import ClassPrediction

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks
STEPS = dict(
    mmpretrain=[dict(type='Resize', scale=32), dict(type='PackInputs')],
    mmdet=[
        dict(type='Resize', scale=(64, 32), keep_ratio=True),
        dict(type='PackDetInputs', meta_keys=('ori_shape', 'img_shape', 'scale_factor')),
    ],
    mmseg=[dict(type='Resize', scale=(64, 32), keep_ratio=True), dict(type='PackSegInputs')],
)


@pytest.fixture
def files(tmp_path) -> list[str]:
    """Images of different content, some of equal size."""
    rng = np.random.default_rng(0)
    shapes = [(40, 60), (60, 40), (40, 60), (50, 50), (60, 40), (40, 60), (80, 120)]
    for i, shape in enumerate(shapes):
        cv2.imwrite(str(tmp_path / f'{i}.png'), rng.integers(0, 256, (*shape, 3), dtype=np.uint8))
    return [str(tmp_path / f'{i}.png') for i in range(len(shapes))]


@pytest.fixture
def make_model(tiny) -> Callable[[str], TrainedModel]:
    """A function that makes a model with random weights, for the default scope of a framework."""

    def make(scope: str) -> TrainedModel:
        backbone = dict(type='vit_plugin.VisionTransformer', **tiny, with_cls_token=False)
        pad = dict(pad_size_divisor=8)
        anchors = dict(
            type='AnchorGenerator',
            octave_base_scale=4,
            scales_per_octave=1,
            ratios=[1.0],
            strides=[8],
        )
        head = dict(
            type='RetinaHead',
            num_classes=3,
            in_channels=32,
            feat_channels=16,
            anchor_generator=anchors,
            bbox_coder=dict(type='DeltaXYWHBBoxCoder'),
        )
        cfg: dict = dict(
            mmpretrain=dict(
                type='ImageClassifier',
                backbone=dict(backbone, out_type='avg_featmap'),
                head=dict(type='vit_plugin.ViTClsHead', num_classes=3, in_channels=32),
            ),
            mmdet=dict(
                type='RetinaNet',
                data_preprocessor=dict(type='DetDataPreprocessor', **pad),
                backbone=dict(backbone, out_type='featmap'),
                bbox_head=head,
                neck=dict(type='ChannelMapper', in_channels=[32], out_channels=32),
                test_cfg=dict(
                    nms_pre=100,
                    score_thr=0.0,
                    min_bbox_size=0,
                    max_per_img=20,
                    nms=dict(type='nms', iou_threshold=0.5),
                ),
            ),
            mmseg=dict(
                type='EncoderDecoder',
                data_preprocessor=dict(type='SegDataPreProcessor'),
                backbone=dict(backbone, out_type='featmap'),
                test_cfg=dict(mode='whole'),
                decode_head=dict(
                    type='FCNHead', in_channels=32, channels=16, num_classes=3, norm_cfg=None
                ),
            ),
        )[scope]
        with DefaultScope.overwrite_default_scope(scope):
            model = MODELS.build(ConfigDict(cfg))
        for parameter in model.parameters():
            if parameter.ndim > 1:
                torch.nn.init.normal_(parameter, std=0.2)
        pipeline = [dict(type='LoadImageFromFile'), *STEPS[scope]]
        loader = dict(dataset=dict(type='BaseDataset', pipeline=pipeline))
        return TrainedModel(
            model,
            Config(dict(default_scope=scope, test_dataloader=loader, model=dict(backbone={}))),
            dict(classes=list('abc')),
        )

    return make


@pytest.mark.parametrize('scope', ['mmpretrain', 'mmdet', 'mmseg'])
def test_a_batch_predicts_like_single_images(make_model, files, scope):
    pytest.importorskip(scope)
    model = make_model(scope)
    batch = model.predict(files)
    assert len({tuple(prediction.scores.tolist()) for prediction in batch}) == len(files)
    for path, prediction in zip(files, batch, strict=True):
        single = model(path)
        assert prediction.names == single.names
        np.testing.assert_allclose(prediction.scores, single.scores, atol=1e-5)
        if scope == 'mmdet':
            np.testing.assert_allclose(prediction.boxes, single.boxes, atol=0.02)  # pixels
        if scope == 'mmseg':
            assert prediction.map.shape == cv2.imread(path).shape[:2]
            assert (prediction.map == single.map).mean() > 0.999


def test_batches_are_full_except_the_last():
    assert list(batches(range(7), 3)) == [[0, 1, 2], [3, 4, 5], [6]]
    assert list(batches([], 3)) == []


def test_each_readable_image_is_predicted_with_a_line(files, tmp_path, capsys):
    Path(files[2]).write_text('no image')
    sizes = []

    def predict(frames):
        sizes.append(len(frames))
        return [ClassPrediction(None, np.array([0]), ['cat'], np.array([1.0])) for _ in frames]

    with rejects('^1 of 7 inputs could not be read'):
        predict_all(Reading(find_inputs(files)), predict, [], batch_size=4, score_thr=0.3)
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == [f'{path}: cat 1.00' for path in files if path != files[2]]
    assert sizes == [4, 2]
    assert last.startswith('6 images in ')
    assert last.endswith(' images/s; 1 could not be read.')


@pytest.mark.parametrize('writes_table', [False, True])
def test_prediction_ends_if_nobody_reads_and_nothing_is_written(
    files, tmp_path, monkeypatch, writes_table
):
    monkeypatch.setattr(predicting, 'is_read', lambda: False)
    tables = [create_writer(tmp_path / 'found.jsonl', (), 0.3)] if writes_table else []
    sizes = []

    def predict(frames):
        sizes.append(len(frames))
        return [ClassPrediction(None, np.array([0]), ['cat'], np.array([1.0])) for _ in frames]

    with nullcontext() if writes_table else pytest.raises(SystemExit, match='141'):
        predict_all(Reading(find_inputs(files)), predict, tables, batch_size=4, score_thr=0.3)
    assert sizes == ([4, 3] if writes_table else [4])


def test_line_breaks_and_control_characters_are_escaped(tmp_path, capsys):
    name = tmp_path / 'a\n\x1b[2J.png'
    cv2.imwrite(str(name), np.zeros((8, 8, 3), np.uint8))
    prediction = ClassPrediction(None, np.array([0]), ['\u202ecat'], np.array([1.0]))
    predict_all(Reading(find_inputs([str(name)])), lambda frames: [prediction], [], 1, 0.3)
    line = capsys.readouterr().out.splitlines()[0]
    assert line == f'{tmp_path}/a\\n\\x1b[2J.png: \\u202ecat 1.00'
