"""The pipelines, files and metrics of data in configs."""

import sys

import mmpretrain.datasets  # noqa: F401  # registers the steps
import pytest
import torch
from mmcv.transforms import Compose
from mmengine.config import Config, ConfigDict
from mmengine.registry import DefaultScope
from rejection import rejects

from vit_plugin.config import read_config, with_pipeline
from vit_plugin.config.data import missing_files
from vit_plugin.config.sections import check_sections
from vit_plugin.errors import MissingExtraError
from vit_plugin.inference.image_transforms import PipelineTransform

PLAIN = ConfigDict(type='CustomDataset', pipeline=[])


@pytest.mark.parametrize(
    'dataset',
    [
        PLAIN,
        ConfigDict(type='vit_plugin.stratified_subset', dataset=PLAIN),
        ConfigDict(
            type='RepeatDataset', dataset=dict(type='vit_plugin.stratified_subset', dataset=PLAIN)
        ),
    ],
)
def test_with_pipeline_returns_the_innermost_data_set(dataset):
    assert with_pipeline(dataset) == PLAIN


def test_with_pipeline_of_several_data_sets_raises():
    with rejects("'ConcatDataset' has no pipeline of its own; give a plain data set"):
        with_pipeline(ConfigDict(type='ConcatDataset', datasets=[PLAIN]))


def test_prediction_uses_the_pipeline_inside_a_wrapper():
    cfg = read_config('configs/vit/vit-d6-w144-p4_1xb256-16e_cifar10-folder-choice.py')
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        pixels = PipelineTransform(cfg)
    assert pixels.custom_reader is None  # plain files need no reader of their own
    assert [type(step).__name__ for step in pixels.from_pixels.transforms] == [
        'Resize',  # added, to resize photographs to the size of the data
        'PackInputs',
    ]


def test_views_of_cifar_are_flipped_and_shifted():
    steps = Config.fromfile('configs/_base_/datasets/cifar10_bs256.py').tta_pipeline
    image = torch.randint(256, (3, 32, 32), dtype=torch.uint8)
    with DefaultScope.overwrite_default_scope('mmpretrain'):
        views = Compose(steps)(dict(img=image.permute(1, 2, 0).numpy()))['inputs']
    padded = [
        torch.nn.functional.pad(view.float(), (1, 1, 1, 1), 'reflect').byte()
        for view in (image, image.flip(-1))
    ]
    expected = [
        view[:, start : start + 32, start : start + 32] for view in padded for start in (1, 0, 2)
    ]
    torch.testing.assert_close(views, expected)


@pytest.mark.parametrize('scope', ['mmdet', 'vit_plugin'])
def test_missing_packages_of_metrics_raise_before_the_training(monkeypatch, scope):
    pytest.importorskip('mmdet')
    monkeypatch.setitem(sys.modules, 'faster_coco_eval', None)
    settings = dict(val_evaluator=[dict(type=f'{scope}.FasterCocoMetric')])
    with pytest.raises(
        MissingExtraError,
        match=r"val_evaluator.0 \(FasterCocoMetric\) needs faster_coco_eval, .*-e '.\[coco\]",
    ):
        check_sections(settings)


def test_missing_files_of_a_list_are_not_looked_up(tmp_path):
    dataset = dict(data_root=str(tmp_path), data_prefix=dict(img='train'))
    assert list(missing_files(dict(dataset, ann_file='a.json'))) == [
        f'folder {str(tmp_path / "train")!r}',
        f'file {str(tmp_path / "a.json")!r}',
    ]
    assert len(list(missing_files(dict(dataset, ann_file=['a.json', 'b.json'])))) == 1
