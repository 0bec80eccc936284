import pytest
from mmengine.config import Config

from vit_plugin.errors import ConfigError
from vit_plugin.measure.planning.cost import Cluster, images_of_run

CLUSTER = Cluster(
    gpus=4,
    gpus_per_node=8,
    memory=1,
    peak_tflops=100.0,
    utilization=0.5,
    gigabytes_per_s=dict(within=500.0, between=50.0),
)


def test_seconds_of_arithmetic_and_messages():
    assert CLUSTER.arithmetic_s(1e12) == pytest.approx(1 / 50)
    assert CLUSTER.messages_s(dict(within=500e9, between=25e9)) == pytest.approx(1)
    assert CLUSTER.messages_s(dict(within=0, between=100e9)) == pytest.approx(2)
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
def test_images_of_a_run(cfg, images, expected):
    assert images_of_run(Config(cfg), 16, images) == expected


def test_epochs_of_unknown_data():
    cfg = Config(
        dict(
            train_cfg=dict(max_epochs=3), train_dataloader=dict(dataset=dict(type='CustomDataset'))
        )
    )
    with pytest.raises(
        ConfigError, match='images in a CustomDataset is not known; give --num-images NUMBER'
    ):
        images_of_run(cfg, 16)
