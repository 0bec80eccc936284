import pytest
from mmengine.config import Config

from vit_plugin.apps.planning.cost import estimate, images_of_run, paper_core_days
from vit_plugin.errors import ConfigError

RUN = dict(images=1e6, batch=10, gpus=4, flops=1e12, traffic=dict(within=1e9, between=1e9), peak_tflops=100.,
           utilisation=0.5)


def test_arithmetic_bounds_the_step():
    run = estimate(**RUN, price=2.)
    assert run.step_s == run.arithmetic_s == pytest.approx(10 * 1e12 / 50e12)
    assert run.messages_s == pytest.approx(1e9 / 50e9)
    assert run.days == pytest.approx(1e6 / 40 * 0.2 / 86400)
    assert run.price == pytest.approx(4 * run.days * 24 * 2)
    assert run.exaflops == pytest.approx(1)


def test_messages_bound_the_step():
    run = estimate(**{**RUN, 'traffic': dict(within=0, between=50e9)})
    assert run.step_s == run.messages_s == pytest.approx(1)


def test_recomputing_takes_time_and_is_not_the_models_arithmetic():
    plain, recomputing = estimate(**RUN), estimate(**RUN, repeated_flops=0.5e12)
    assert recomputing.arithmetic_s == pytest.approx(1.5 * plain.arithmetic_s)
    assert recomputing.core_days == plain.core_days
    assert recomputing.exaflops == plain.exaflops


@pytest.mark.parametrize(('cfg', 'images', 'expected'), [
    (dict(train_cfg=dict(max_iters=100)), None, 1600),
    (dict(train_cfg=dict(max_epochs=3)), 50, 150),
    (dict(train_cfg=dict(max_epochs=2), train_dataloader=dict(dataset=dict(type='mmpretrain.ImageNet'))), None,
     2 * 1281167),
    ({}, None, None),
])
def test_images_of_a_run(cfg, images, expected):
    assert images_of_run(Config(cfg), 16, images) == expected


def test_epochs_of_unknown_data():
    cfg = Config(dict(train_cfg=dict(max_epochs=3), train_dataloader=dict(dataset=dict(type='CustomDataset'))))
    with pytest.raises(ConfigError, match='images in a CustomDataset is not known; give --images NUMBER'):
        images_of_run(cfg, 16)


def test_core_days_of_the_paper():
    assert paper_core_days('h/14') == {'JFT-300M': 2500}
    assert paper_core_days('B/16') == {}
    assert paper_core_days(dict(embed_dims=32)) == {}
