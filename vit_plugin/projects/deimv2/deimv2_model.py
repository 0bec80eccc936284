"""DEIMv2 for a folder of images with boxes: ``vit-plugin train --data FOLDER --model deimv2``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel
from vit_plugin.projects.detr_family.folder_detector import DETR_SCHEDULES, folder_detector

from .spatial_tuning_adapter import STA_STRIDES, own_maps


def _deimv2(facts: ModelFacts) -> Section:
    """A backbone at three depths with the maps of a CNN, a hybrid encoder, and the decoder.

    The CNN is that of a hybrid if its strides fit, else a thin parallel CNN.
    """
    backbone = facts.backbone('featmap', out_indices=_thirds(facts.meta_backbone.num_layers))
    if len(own_maps(facts.meta_backbone.patch_embed.feature_strides)) == len(STA_STRIDES):
        conv_inplane = None  # the maps of the hybrid
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
    """The last block of each third of the blocks."""
    return tuple(max(layers * part // 3 - 1, 0) for part in (1, 2, 3))


DEIMV2 = TaskModel(
    'a DEIMv2',
    _deimv2,
    schedules=DETR_SCHEDULES,
    stretched=True,
    saved_entries=dict(backbone=dict(type='vit_plugin.SpatialTuningAdapter')),
)
