"""TransUNet for a folder of images and masks: ``train --task segmentation --model transunet``."""

import math
from typing import Any

from vit_plugin.config.task_model import ModelFacts, TaskModel
from vit_plugin.errors import ConfigError


def _transunet(facts: ModelFacts) -> dict[str, Any]:
    """The config of backbone and decoder, which takes each CNN map that fits one of its blocks.

    Raises:
        ConfigError: if the backbone has no CNN.
    """
    given = facts.arguments.get('patch_embed') or {}  # a saved config may have None
    stem = {**given, 'with_root': True}
    try:
        built = facts.build(out_type='pyramid', patch_embed=stem)
    except (ConfigError, TypeError):  # the stem has no map of its root
        stem = dict(given)
        built = facts.meta_backbone
    *cnn_strides, token_stride = built.strides
    if not cnn_strides:
        raise ConfigError(
            '--model transunet joins maps of a CNN, and the backbone has none; give a hybrid, such '
            'as --arch R50+B/16, or another --model.'
        )
    num_blocks = int(math.log2(token_stride))  # up to the size of the image
    block_strides = [token_stride / 2**i for i in range(1, num_blocks + 1)]
    used = [
        i
        for i, stride in enumerate(built.strides)
        if stride in block_strides or stride == token_stride
    ]
    # The authors' widths, and one more for strides of 32.
    widths = (256, 128, 64, 16, 16) if facts.is_wide else (96, 64, 32, 16, 16)
    backbone = facts.backbone('pyramid', **(dict(patch_embed=stem) if stem else {}))
    head = dict(
        type='vit_plugin.TransUNetHead',
        in_channels=[built.channels[i] for i in used],
        in_index=used,
        strides=[built.strides[i] for i in used],
        num_classes=facts.classes,
        hidden_channels=512 if facts.is_wide else 128,
        decoder_channels=widths[:num_blocks],
        norm_cfg=dict(type='GN', num_groups=8),
    )
    return dict(backbone=backbone, decode_head=head)


TRANSUNET = TaskModel("TransUNet's decoder", _transunet)
