"""RF-DETR in `train --data`: the paper's sizes, narrow backbones, and windows that do not fit."""

import pytest
from rejection import rejects
from tiny_models import model_facts

from vit_plugin.config.task_model import ModelFacts
from vit_plugin.projects.rf_detr.rf_detr_model import RF_DETR, RF_DETR_LARGE, RF_DETR_NANO


def facts(arch: object, side: int = 384) -> ModelFacts:
    """Facts about a backbone for square images of this side in pixels."""
    size = (side, side)
    return model_facts(dict(arch=arch, img_size=size, with_cls_token=False), size)


@pytest.mark.parametrize(
    ('task_model', 'layers', 'side'), [(RF_DETR_NANO, 2, 384), (RF_DETR_LARGE, 4, 704)]
)
def test_sizes_are_those_of_the_paper(task_model, layers, side):
    model = task_model.build(facts(task_model.arch, side))
    assert (task_model.side, task_model.stretched, task_model.arch) == (side, True, 'S/16')
    head, backbone = model['bbox_head'], model['backbone']
    assert (head['decoder']['num_layers'], head['num_queries']) == (layers, 300)
    assert head['embed_dims'] == model['neck']['out_channels'] == 256
    assert backbone['out_indices'] == (2, 5, 8, 11)
    assert backbone['encoder']['window'] == dict(number=2, global_blocks=[3, 6, 9])
    assert backbone['encoder']['layer_scale_init_value'] == 1.0


def test_a_narrow_backbone_has_a_narrow_head():
    head = RF_DETR.build(facts('Ti/16'))['bbox_head']
    assert (head['embed_dims'], head['num_groups'], head['num_queries']) == (96, 4, 60)


def test_backbone_with_rotary_positions_raises():
    with rejects(r'--model rf-detr: its windows do not fit .*Give another --arch'):
        RF_DETR.build(facts('timm://vit_small_patch16_dinov3.lvd1689m'))


def test_encoder_of_a_saved_config_may_be_none():
    size = (384, 384)
    model = RF_DETR.build(model_facts(dict(arch='Ti/16', img_size=size, encoder=None), size))
    assert model['backbone']['encoder']['window']['number'] == 2
