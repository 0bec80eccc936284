"""Configs that a plan can trace, and those that it cannot."""

import pytest
from mmengine.config import Config
from rejection import rejects

from vit_plugin.measure.planning.planned_model import build_classifier, compute_dtype

OPTIMIZER = dict(type='AdamW', lr=1e-3)


def test_configs_without_an_optimizer_raise():
    for cfg in ({}, dict(optim_wrapper=dict(type='OptimWrapper'))):
        with rejects('optim_wrapper: the config has no optimizer'):
            compute_dtype(Config(cfg))


@pytest.mark.parametrize(
    ('options', 'dtype'),
    [
        ({}, 'float32'),
        (dict(optim_wrapper=dict(type='AmpOptimWrapper', optimizer=OPTIMIZER)), 'bfloat16'),
        (dict(sharding=dict(param_dtype='bfloat16')), 'bfloat16'),
    ],
)
def test_the_dtype_of_matrix_products_is_that_of_mixed_precision(options, dtype):
    cfg = dict(optim_wrapper=dict(type='OptimWrapper', optimizer=OPTIMIZER))
    assert compute_dtype(Config({**cfg, **options})) == dtype


def test_models_that_are_not_classifiers_on_a_known_backbone_raise():
    detector = Config(
        dict(model=dict(type='FasterRCNN', backbone=dict(type='vit_plugin.VisionTransformer')))
    )
    with rejects('FasterRCNN is not a classifier .* configs/vit'):
        build_classifier(detector)
    stock = Config(
        dict(model=dict(type='ImageClassifier', backbone=dict(type='ResNet', depth=18), head=None))
    )
    with rejects('is not a classifier on a vit_plugin'):
        build_classifier(stock)
