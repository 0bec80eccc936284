"""DEIMv2 for a folder of images with boxes: ``vit-plugin train --data FOLDER --model deimv2``."""

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel

from .spatial_tuning_adapter import STRIDES


def _deimv2(facts: ModelFacts) -> Section:
    """Three depths of a backbone with a thin CNN beside it, a hybrid encoder, and the decoder.

    A backbone of at least 384 channels has the decoder of DEIMv2-M, a narrower one a smaller one.
    """
    wide, width = facts.is_wide, facts.channels
    backbone = facts.backbone('featmap', out_indices=_thirds(facts.built.num_layers))
    backbone |= dict(
        type='vit_plugin.SpatialTuningAdapter',
        out_channels=width,
        conv_inplane=32 if wide else 16,
        adapter_norm_cfg=dict(type='BN'),
    )
    queries = facts.queries('deimv2', 300 if wide else 60, STRIDES, 1)
    decoder: Section = dict(num_layers=4, num_points=(3, 6, 3), feedforward_channels=1024)
    if not wide:
        decoder |= dict(num_layers=3, num_heads=4, feedforward_channels=4 * width)
    return dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=dict(
            type='vit_plugin.HybridEncoder',
            in_channels=[width] * len(STRIDES),
            out_channels=width,
            kind='split',
            depth=0.67,
            expansion=0.67 if wide else 0.34,
            num_heads=8 if wide else 4,
            feedforward_channels=2 * width,
            projects=False,
        ),
        bbox_head=dict(
            type='vit_plugin.DFINEHead',
            num_classes=facts.classes,
            num_queries=queries,
            in_channels=[width] * len(STRIDES),
            embed_dims=width,
            variant='deimv2',
            decoder=decoder,
            loss_cls=dict(type='vit_plugin.MatchabilityAwareLoss'),
        ),
        test_cfg=dict(max_per_img=queries),
    )


def _thirds(layers: int) -> tuple[int, ...]:
    """The last block of each third, as far as there are three."""
    return tuple(max(layers * part // 3 - 1, 0) for part in (1, 2, 3))


DEIMV2 = TaskModel(
    'a DEIMv2',
    _deimv2,
    schedules=dict(  # not measured
        small=dict(rate=1e-3, clip=0.1),
        scratch=dict(clip=0.1),
        fine_tuned=dict(weight_decay=1e-4, clip=0.1),
    ),
    stretched=True,
    saved=dict(backbone=dict(type='vit_plugin.SpatialTuningAdapter')),
)
