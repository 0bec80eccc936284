"""``train --data --augment``: what a sample has, when that ends, and for what it is refused."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from image_folders import write_coco
from mmengine.logging import MMLogger
from mmengine.registry import HOOKS, init_default_scope
from torch.utils.data import DataLoader

from vit_plugin.config import read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.data.seeded import PositionedIndex, seeded_dataset
from vit_plugin.from_folder.choices import AUGMENTS
from vit_plugin.from_folder.mixing import PHASES
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'shapes', polygons=True)


def config(augment: str, **flags):
    request = Request('shapes', task='detection', augment=augment, **{'epochs': 10, **flags})
    cfg = read_config(write_config(request))
    check_config(cfg)
    init_default_scope('mmdet')
    import mmdet.datasets
    import mmdet.engine  # noqa: F401

    return cfg


def dataset_of(cfg):
    return seeded_dataset(cfg.train_dataloader.dataset, seed=0)


def objects(dataset, number=40) -> float:
    """The mean number of objects in a sample."""
    samples = [dataset[PositionedIndex(i % len(dataset), i)] for i in range(number)]
    return float(np.mean([len(one['data_samples'].gt_instances) for one in samples]))


def test_every_value_of_the_flag_has_phases():
    assert {*AUGMENTS} == {*PHASES}
    for phases in PHASES.values():
        assert [phase.end for phase in phases] == sorted(phase.end for phase in phases)
        assert phases[-1].end < 1


@pytest.mark.parametrize('flags', [{}, dict(tiles=32, img_size=64), dict(balance=True)])
@pytest.mark.parametrize('augment', AUGMENTS)
def test_samples_are_mixed_by_their_position_alone(shapes, augment, flags):
    dataset = dataset_of(config(augment, **flags))
    first = dataset[PositionedIndex(1, 5)]
    for position in range(3):
        dataset[PositionedIndex(0, position)]
    again = dataset[PositionedIndex(1, 5)]
    assert torch.equal(first['inputs'], again['inputs'])
    others = [dataset[PositionedIndex(1, position)]['inputs'] for position in range(8)]
    assert len({one.sum().item() for one in others}) > 2


@pytest.mark.parametrize('augment', AUGMENTS)
def test_boxes_are_around_their_pixels(shapes, augment):
    """A square is bright and a bar dark, mixed with gray at least halfway."""
    dataset, seen = dataset_of(config(augment)), 0
    for position in range(40):
        sample = dataset[PositionedIndex(position % len(dataset), position)]
        found = sample['data_samples'].gt_instances
        for box, label in zip(found.bboxes.tensor, found.labels, strict=True):
            left, top, right, bottom = box.round().int().tolist()
            if min(right - left, bottom - top) < 4:
                continue
            mean = sample['inputs'][:, top:bottom, left:right].float().mean()
            assert (mean > 130) if label == 0 else (mean < 130), (position, box)
            seen += 1
    assert seen > 60


def test_dense_matching_has_more_objects_to_match(shapes):
    """Half of the samples have quarters, a quarter of theirs is about one object of four images."""
    plain = objects(dataset_of(config('', work_dir='plain')))
    assert plain == 2
    assert objects(dataset_of(config('dense-o2o', work_dir='dense'))) > 1.8 * plain


def test_phases_end_one_after_another(shapes):
    cfg = config('dense-o2o')
    dataset = dataset_of(cfg)
    hooks = [HOOKS.build(hook) for hook in cfg.custom_hooks if 'Switch' in hook['type']]
    loader = DataLoader(dataset, batch_size=1)
    runner = SimpleNamespace(train_dataloader=loader, logger=MMLogger.get_current_instance())
    numbers = {}
    for epoch in range(10):
        runner.epoch = epoch
        for hook in hooks:
            hook.before_train_epoch(runner)
        numbers[epoch] = objects(dataset)
    dense, blended, plain = (
        {numbers[i] for i in part} for part in ((*range(5),), (*range(5, 9),), (9,))
    )
    assert len(dense) == len(blended) == 1
    assert min(dense) > max(blended) > max(plain) == 2
    for hook in hooks:  # a resumed run begins with the last phase
        hook._has_switched = False
        hook.before_train_epoch(runner)
    assert objects(dataset) == 2
    # The last part has the steps of a training without the flag.
    plain = config('', work_dir='plain').train_dataloader.dataset.pipeline
    assert [*cfg.load_pipeline, *hooks[-1].switch_pipeline] == plain


def test_no_image_is_mirrored_where_left_and_right_matter(tmp_path, monkeypatch):
    """The left half of each image is bright; what is mixed in is never bright on the right."""
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'shapes')
    for path in (tmp_path / 'shapes').rglob('*.jpg'):
        image = np.zeros((48, 64, 3), np.uint8)
        image[:, :8] = 255
        cv2.imwrite(str(path), image)
    cfg = config('dense-o2o', no_flip=True)
    (mix,) = (step for step in cfg.train_pipeline if 'MixUp' in str(step))
    mix['prob'] = 1.0
    load = cfg.train_dataloader.dataset
    load.pipeline = [dict(type='Resize', scale=(64, 48)), mix, dict(type='PackDetInputs')]
    dataset = dataset_of(cfg)
    for position in range(30):
        pixels = dataset[PositionedIndex(0, position)]['inputs'].float()
        assert pixels[:, :, 40:].mean() < 80  # the padding is 114, halved


def test_the_summary_says_until_when(shapes, capsys):
    config('dense-o2o')
    assert 'mix several images; that changes after epoch 5 and 9.' in capsys.readouterr().out
