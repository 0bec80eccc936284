"""ECDet and ECSeg for a folder: ``vit-plugin train --data FOLDER --model ecdet`` or ``ecseg``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel
from vit_plugin.projects.detr_family.folder_detector import DETR_SCHEDULES, folder_detector

from .ec_vit import EC_VIT_STRIDES


def _ecdet(facts: ModelFacts) -> Section:
    """A transformer with a pyramid of its last two blocks, RT-DETR's neck, and D-FINE's decoder."""
    last = facts.meta_backbone.num_layers - 1
    # One block only if the transformer has no more.
    backbone = facts.backbone('featmap', out_indices=tuple(range(max(last - 1, 0), last + 1)))
    backbone |= dict(type='vit_plugin.ECViT', out_channels=facts.channels)
    return folder_detector('ecdet', facts, backbone, EC_VIT_STRIDES, 'SiLU')


def _ecseg(facts: ModelFacts) -> Section:
    """ECDet with ``ECSegHead``, whose own default of ``loss_cls`` is kept."""
    model = _ecdet(facts)
    head = {name: value for name, value in model['bbox_head'].items() if name != 'loss_cls'}
    return dict(model, bbox_head=dict(head, type='vit_plugin.ECSegHead'))


ECDET = TaskModel(
    'an ECDet',
    _ecdet,
    schedules=DETR_SCHEDULES,
    stretched=True,
    saved_entries=dict(backbone=dict(type='vit_plugin.ECViT')),
)
ECSEG = ECDET._replace(
    title='an ECSeg', build=_ecseg, saved_entries=dict(bbox_head=dict(type='vit_plugin.ECSegHead'))
)
