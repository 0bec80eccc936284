"""DEIMv2 for a folder of images with boxes: ``vit-plugin train --data FOLDER --model deimv2``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel
from vit_plugin.projects.detr_family.folder_detector import DETR_SCHEDULES, folder_detector

from .spatial_tuning_adapter import STA_STRIDES, fitting_stem_maps


def _deimv2(facts: ModelFacts) -> Section:
    """A transformer with the maps of a CNN, RT-DETR's hybrid encoder, and D-FINE's decoder.

    If the transformer itself begins with a CNN, whose strides fit, that CNN is used. Otherwise a
    thin parallel CNN is added.
    """
    backbone = facts.backbone('featmap', out_indices=_thirds(facts.meta_backbone.num_layers))
    stem_strides = facts.meta_backbone.patch_embed.feature_strides
    if len(fitting_stem_maps(stem_strides)) == len(STA_STRIDES):
        conv_inplane = None  # use the maps of the stem
    else:
        conv_inplane = 32 if facts.is_wide else 16
    backbone |= dict(
        type='vit_plugin.SpatialTuningAdapter',
        out_channels=facts.channels,
        conv_inplane=conv_inplane,
        adapter_norm_cfg=dict(type='BN'),
    )
    return folder_detector('deimv2', facts, backbone, STA_STRIDES, 'GELU')


def _thirds(layers: int) -> tuple[int, ...]:
    """The index of the last block in each third of the blocks."""
    return tuple(max(layers * part // 3 - 1, 0) for part in (1, 2, 3))


DEIMV2 = TaskModel(
    'a DEIMv2',
    _deimv2,
    schedules=DETR_SCHEDULES,
    stretched=True,
    saved_entries=dict(backbone=dict(type='vit_plugin.SpatialTuningAdapter')),
)
