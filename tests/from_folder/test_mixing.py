"""``train --data --augment``: the mixed samples, and the epochs in which the mixing ends."""

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
from vit_plugin.data.seeded import PositionedIndex, build_seeded_dataset
from vit_plugin.from_folder.choices import AUGMENTS
from vit_plugin.from_folder.mixing import PHASES
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'shapes', polygons=True)


def config(augment: str, **flags):
    """The checked config of a training on the shapes with a value of the flag."""
    request = Request('shapes', task='detection', augment=augment, **{'epochs': 10, **flags})
    cfg = read_config(write_config(request))
    check_config(cfg)
    init_default_scope('mmdet')
    import mmdet.datasets
    import mmdet.engine  # noqa: F401

    return cfg


def dataset_of(cfg):
    return build_seeded_dataset(cfg.train_dataloader.dataset, seed=0)


def mean_objects(dataset, count=40) -> float:
    """The mean number of objects in a sample, over ``count`` samples."""
    samples = [dataset[PositionedIndex(i % len(dataset), i)] for i in range(count)]
    return float(np.mean([len(sample['data_samples'].gt_instances) for sample in samples]))


def test_every_value_of_the_flag_has_ordered_phases():
    assert {*AUGMENTS} == {*PHASES}
    for phases in PHASES.values():
        assert [phase.end for phase in phases] == sorted(phase.end for phase in phases)
        assert phases[-1].end < 1


@pytest.mark.parametrize('flags', [{}, dict(tiles=32, img_size=64), dict(balance=True)])
@pytest.mark.parametrize('augment', AUGMENTS)
def test_mixed_samples_depend_only_on_their_position(shapes, augment, flags):
    dataset = dataset_of(config(augment, **flags))
    first = dataset[PositionedIndex(1, 5)]
    for position in range(3):
        dataset[PositionedIndex(0, position)]
    again = dataset[PositionedIndex(1, 5)]
    assert torch.equal(first['inputs'], again['inputs'])
    others = [dataset[PositionedIndex(1, position)]['inputs'] for position in range(8)]
    assert len({image.sum().item() for image in others}) > 2


@pytest.mark.parametrize('augment', AUGMENTS)
def test_boxes_fit_the_mixed_pixels(shapes, augment):
    """Squares are bright and bars are dark, also where they are mixed with other images."""
    dataset, compared = dataset_of(config(augment)), 0
    for position in range(40):
        sample = dataset[PositionedIndex(position % len(dataset), position)]
        objects = sample['data_samples'].gt_instances
        for box, label in zip(objects.bboxes.tensor, objects.labels, strict=True):
            left, top, right, bottom = box.round().int().tolist()
            if min(right - left, bottom - top) < 4:
                continue
            mean = sample['inputs'][:, top:bottom, left:right].float().mean()
            assert (mean > 130) if label == 0 else (mean < 130), (position, box)
            compared += 1
    assert compared > 60  # enough objects were large enough to compare


def test_dense_o2o_has_more_objects_in_a_sample(shapes):
    """Half of the samples are mosaics of four images."""
    plain = mean_objects(dataset_of(config('', work_dir='plain')))
    assert plain == 2
    assert mean_objects(dataset_of(config('dense-o2o', work_dir='dense'))) > 1.8 * plain


def test_phases_end_one_after_another(shapes):
    cfg = config('dense-o2o')
    dataset = dataset_of(cfg)
    hooks = [HOOKS.build(hook) for hook in cfg.custom_hooks if 'Switch' in hook['type']]
    loader = DataLoader(dataset, batch_size=1)
    runner = SimpleNamespace(train_dataloader=loader, logger=MMLogger.get_current_instance())
    objects_in_epoch = []
    for epoch in range(10):
        runner.epoch = epoch
        for hook in hooks:
            hook.before_train_epoch(runner)
        objects_in_epoch.append(mean_objects(dataset))
    (dense,), (blended,) = {*objects_in_epoch[:5]}, {*objects_in_epoch[5:9]}
    assert dense > blended > objects_in_epoch[9] == 2
    for hook in hooks:  # a run that is resumed here begins with the last phase
        hook._has_switched = False
        hook.before_train_epoch(runner)
    assert mean_objects(dataset) == 2
    # The last phase has the pipeline of a training without the flag.
    plain = config('', work_dir='plain').train_dataloader.dataset.pipeline
    assert [*cfg.load_pipeline, *hooks[-1].switch_pipeline] == plain


def test_no_flip_applies_to_mixed_in_images(tmp_path, monkeypatch):
    """Each image is bright on its left side only, so a bright right side would show a flip."""
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


def test_the_summary_states_when_the_mixing_changes(shapes, capsys):
    config('dense-o2o')
    assert 'mix several images; that changes after epoch 5 and 9.' in capsys.readouterr().out


@pytest.mark.parametrize(
    ('epochs', 'words'),
    [
        (1, ' --augment mixes no images in so few epochs; give more --epochs.'),
        (2, 'after epoch 1.'),
    ],
)
def test_the_summary_of_a_short_run_names_only_phases_that_it_has(shapes, capsys, epochs, words):
    config('dense-o2o', epochs=epochs)
    assert words in capsys.readouterr().out
