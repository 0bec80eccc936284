"""RF-DETR for a folder of images with boxes: ``vit-plugin train --data FOLDER --model rf-detr``.

Also its published sizes, ``--model rf-detr-nano`` to ``rf-detr-large``.
"""

from functools import partial

import torch

from vit_plugin.arguments.fields import Section
from vit_plugin.config.task_model import ModelFacts, TaskModel
from vit_plugin.errors import ConfigError

from ..detr_family.folder_detector import DETR_SCHEDULES
from ..detr_family.query_maps import query_maps
from .windowed_vit import WindowedViT

WINDOWS_PER_SIDE = 2
PROJECTOR_NORM: Section = dict(type='LN2d', eps=1e-6)


def _windowed(facts: ModelFacts, width: int) -> tuple[Section, Section, list[int]]:
    """The configs of a WindowedViT and its projector, and the stride of the map in pixels.

    Raises:
        ConfigError: if the backbone of the facts cannot be a WindowedViT.
    """
    depths = facts.depths()
    arch = facts.arguments['arch']
    is_size = isinstance(arch, str) and not arch.startswith('timm://')  # such as S/16
    # Such a backbone is built like DINOv2's, so that DINOv2's weights fit.
    like_dinov2 = dict(layer_scale_init_value=1.0) if is_size else {}
    options = {**like_dinov2, **(facts.arguments.get('encoder') or {})}
    # The block after each output is global, as in the published models. None follows the last.
    options['window'] = dict(
        number=WINDOWS_PER_SIDE, global_blocks=[end + 1 for end in depths[:-1]]
    )
    backbone = {
        **(dict(numerics='timm') if is_size else {}),
        **facts.arguments,
        'with_cls_token': True,
        'out_indices': depths,
        'out_type': 'featmap',
        'encoder': options,
    }
    try:
        with torch.device('meta'):
            built = WindowedViT(**backbone)
    except ConfigError as error:
        raise ConfigError(
            f'--model rf-detr: its windows do not fit the backbone ({error}) Give another --arch, '
            'such as S/16, or --model lw-detr, which takes any.'
        ) from error
    neck = dict(
        type='vit_plugin.C2fProjector',
        in_channels=[built.embed_dims] * len(built.out_indices),
        out_channels=width,
        norm_cfg=PROJECTOR_NORM,
    )
    return dict(backbone, type='vit_plugin.WindowedViT'), neck, [built.patch_embed.stride]


def _rf_detr(facts: ModelFacts, layers: int) -> Section:
    """The model: a windowed backbone, one map of four of its depths, and a decoder.

    A backbone of another library has no windows; it gets the neck of an LW-DETR.

    Args:
        facts: facts about the data and the backbone.
        layers: number of decoder layers.
    """
    width = facts.channels
    if 'type' in facts.arguments:
        backbone, neck, strides = query_maps(facts, width, PROJECTOR_NORM)
    else:
        backbone, neck, strides = _windowed(facts, width)
    decoder: Section = dict(num_layers=layers, num_points=2)
    if not facts.is_wide:
        decoder |= dict(num_heads=4, num_cross_heads=8, feedforward_channels=4 * width)
    # Images are stretched to one size, so no position is padding: share=1.
    queries = facts.queries('rf-detr', 300 if facts.is_wide else 60, strides, share=1)
    return dict(
        type='SingleStageDetector',
        backbone=backbone,
        neck=neck,
        bbox_head=dict(
            type='vit_plugin.LWDETRHead',
            num_classes=facts.classes,
            num_queries=queries,
            num_groups=13 if facts.is_wide else 4,
            num_levels=len(strides),
            embed_dims=width,
            decoder=decoder,
        ),
        test_cfg=dict(max_per_img=queries),
    )


RF_DETR = TaskModel(
    'an RF-DETR',
    partial(_rf_detr, layers=3),
    schedules=DETR_SCHEDULES,
    stretched=True,
    saved_entries=dict(backbone=dict(type='vit_plugin.WindowedViT')),
    allows_wrapped=True,
)


def _sized(name: str, side: int, layers: int) -> TaskModel:
    """A published size of RF-DETR with a ViT-S.

    Args:
        name: name of the size.
        side: side of the images in pixels.
        layers: number of decoder layers.
    """
    return RF_DETR._replace(
        title=f'an RF-DETR of the size {name}',
        build=partial(_rf_detr, layers=layers),
        arch='S/16',
        side=side,
        saved_entries=dict(RF_DETR.saved_entries, bbox_head=dict(decoder=dict(num_layers=layers))),
    )


RF_DETR_NANO = _sized('nano', 384, 2)
RF_DETR_SMALL = _sized('small', 512, 3)
RF_DETR_MEDIUM = _sized('medium', 576, 4)
RF_DETR_LARGE = _sized('large', 704, 4)
