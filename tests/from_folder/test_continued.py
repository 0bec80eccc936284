"""A complete model of a run is recognized, and gets the classes of other data."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from mmengine.config import Config

from vit_plugin.from_folder.continued import ContinuedModel, adapt_model, read_continued_model
from vit_plugin.weights import open_checkpoint

DETR_HEAD = dict(type='vit_plugin.LWDETRHead', num_classes=2)


def complete(cfg: dict[str, Any], *classes: str) -> ContinuedModel:
    return ContinuedModel(Config(cfg), [*classes], tasks=('detection',))


def written(folder: Path, model: dict[str, Any], **meta: Any) -> ContinuedModel | None:
    """The complete model of a checkpoint whose config states only the model, no framework."""
    path = folder / 'run.pth'
    torch.save(dict(meta=dict(cfg=f'model = {model!r}', **meta), state_dict={}), path)
    return read_continued_model(open_checkpoint(str(path)))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('backbone', 'parts', 'tasks'),
    [
        ('EoMT', {}, ('instance', 'panoptic')),
        ('VisionTransformer', dict(test_cfg=dict(panoptic_on=True)), ('panoptic',)),
        ('VisionTransformer', dict(bbox_head=DETR_HEAD), ('detection',)),
    ],
)
def test_model_shows_the_tasks_that_it_can_be_trained_for(tmp_path, backbone, parts, tasks):
    pytest.importorskip('mmdet')
    model = dict(backbone=dict(type=f'vit_plugin.{backbone}', arch='Ti/16'), **parts)
    saved = written(tmp_path, model, dataset_meta=dict(classes=('a', 'b')))
    assert (saved.tasks, saved.classes, saved.img_size) == (tasks, ['a', 'b'], 224)
    model['backbone']['img_size'] = (32, 64)
    assert written(tmp_path, model).img_size == (32, 64)


def test_model_that_is_not_complete_is_none(tmp_path):
    assert written(tmp_path, dict(backbone=dict(type='vit_plugin.VisionTransformer'))) is None
    assert written(tmp_path, dict(bbox_head=DETR_HEAD)) is None


def test_sections_that_mmengine_reads_elsewhere_or_adds_are_not_needed():
    """A preprocessor next to the model, and a model with the default ``test_cfg``."""
    preprocessor = dict(type='DetDataPreprocessor', mean=[1.0, 2.0, 3.0], std=[1.0, 1.0, 1.0])
    model = dict(backbone=dict(type='A'), bbox_head=dict(type='B', num_classes=80))
    saved = complete(dict(model=model, data_preprocessor=preprocessor), 'a')
    adapted = adapt_model(saved, SimpleNamespace(classes=('b', 'c'), bands=0, stuff=None))
    assert adapted == dict(
        backbone=dict(type='A'),
        bbox_head=dict(type='B', num_classes=2),
        data_preprocessor=preprocessor,
    )


def eomt_of(*classes: str, **test_cfg: bool) -> ContinuedModel:
    """A complete EoMT whose config leaves out defaults, such as the number of queries."""
    heads = dict(
        panoptic_head=dict(type='vit_plugin.EoMTHead', num_things_classes=len(classes)),
        panoptic_fusion_head=dict(num_things_classes=len(classes), num_stuff_classes=0),
    )
    backbone = dict(type='vit_plugin.EoMT', num_classes=len(classes))
    model = dict(backbone=backbone, **heads, test_cfg=test_cfg)
    return complete(dict(model=model), *classes)


def test_classes_of_a_backbone_with_the_default_number_of_queries_are_adapted():
    saved = eomt_of('a', 'b', 'c', panoptic_on=False, instance_on=True)
    adapted = adapt_model(saved, SimpleNamespace(classes=('b', 'c'), bands=0, stuff=1))
    counts = dict(num_things_classes=1, num_stuff_classes=1)
    assert adapted == dict(
        backbone=dict(type='vit_plugin.EoMT', num_classes=2),
        panoptic_head=dict(type='vit_plugin.EoMTHead', **counts),
        panoptic_fusion_head=counts,
        test_cfg=dict(panoptic_on=True, instance_on=False, max_per_image=100),
        data_preprocessor={},
    )


def test_same_classes_of_another_task_change_the_output():
    saved = eomt_of('a', 'b', panoptic_on=False, instance_on=True)
    adapted = adapt_model(saved, SimpleNamespace(classes=('a', 'b'), bands=0, stuff=0))
    assert adapted['test_cfg'] == dict(panoptic_on=True, instance_on=False, max_per_image=100)
