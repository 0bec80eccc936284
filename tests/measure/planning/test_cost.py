"""Times by the speeds of a cluster, and the number of images of a run."""

from pathlib import Path

import pytest
from mmengine.config import Config
from rejection import rejects

from vit_plugin.config import read_config
from vit_plugin.measure.planning.cost import Cluster, count_run_images, images_in

CLUSTER = Cluster(
    gpus=4,
    gpus_per_node=8,
    memory=1,
    peak_tflops=100.0,
    utilization=0.5,
    gigabytes_per_s=dict(within=500.0, between=50.0),
)


def test_times_follow_from_the_speeds_of_the_cluster():
    assert CLUSTER.arithmetic_s(1e12) == pytest.approx(1 / 50)
    # Messages within and between machines are sent at the same time.
    assert CLUSTER.messages_s(dict(within=500e9, between=25e9)) == pytest.approx(1)
    assert CLUSTER.messages_s(dict(within=0, between=100e9)) == pytest.approx(2)
    # A core of a TPUv3 has 61.5 TFLOP/s.
    assert CLUSTER.core_days(61.5e12 * 0.5 * 86400) == pytest.approx(1)


@pytest.mark.parametrize(
    ('cfg', 'images', 'expected'),
    [
        (dict(train_cfg=dict(max_iters=100)), None, 1600),
        (dict(train_cfg=dict(max_epochs=3)), 50, 150),
        (
            dict(
                train_cfg=dict(max_epochs=2),
                train_dataloader=dict(dataset=dict(type='mmpretrain.ImageNet')),
            ),
            None,
            2 * 1281167,
        ),
        ({}, None, None),
    ],
)
def test_images_of_a_run_are_counted(cfg, images, expected):
    assert count_run_images(Config(cfg), 16, images) == expected


@pytest.mark.parametrize(
    ('dataset', 'images'),
    [
        (dict(type='CustomDataset', data_root='data/cifar100-jpeg'), 50_000),
        (dict(type='vit_plugin.Digits'), 1437),
        (dict(type='vit_plugin.Digits', val_fraction=0.972), 50),
        (dict(type='CustomDataset', ann_file='two.txt'), 2),
        (dict(type='CustomDataset', data_root='data/ImageNet', ann_file='meta/part.txt'), 2),
        (dict(type='CustomDataset', ann_file='none.txt'), None),
        (dict(type='CustomDataset', ann_file=['two.txt']), None),
        (dict(type='ClassBalancedDataset', dataset=dict(type='CIFAR10')), None),
        (dict(type='stratified_subset', fraction=0.01, dataset=dict(type='CIFAR10')), 500),
        (
            dict(type='stratified_subset', fraction=0.1, rest=True, dataset=dict(type='CIFAR10')),
            45_000,
        ),
    ],
)
def test_images_of_a_data_set_are_counted(dataset, images, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    part = tmp_path / 'data/ImageNet/meta/part.txt'
    part.parent.mkdir(parents=True)
    for path in (tmp_path / 'two.txt', part):
        path.write_text('a/1.png 0\nb/2.png 1\n')
    assert images_in(dataset) == images


@pytest.mark.nightly
def test_images_of_each_recipe_of_a_classifier_are_known():
    folders = ('vit', 'hybrid_vit', 'distillation', 'self_supervised')
    for path in (path for folder in folders for path in Path('configs', folder).glob('*.py')):
        assert images_in(read_config(str(path)).train_dataloader.dataset), path


def test_epochs_of_unknown_data_raise():
    cfg = Config(
        dict(
            train_cfg=dict(max_epochs=3), train_dataloader=dict(dataset=dict(type='CustomDataset'))
        )
    )
    with rejects('images in a CustomDataset is unknown; give --num-images NUMBER'):
        count_run_images(cfg, 16)
