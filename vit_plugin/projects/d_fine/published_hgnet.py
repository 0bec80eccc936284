"""Read an HGNetV2 in the config of a detector of transformers.

``published_d_fine.py`` explains how each field of the config must be touched.
"""

from collections.abc import Sequence
from typing import Any

from vit_plugin.arguments.fields import Count, PositiveInt, Section
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.transformers_config import output_stages


def convert_hgnet(cnn: ForeignConfig, config: ForeignConfig) -> tuple[Section, list[int]]:
    """An HGNetV2 as backbone, and the channels of the maps that it returns.

    Args:
        cnn: the config of the backbone.
        config: the config of the detector.
    """
    names = (
        'in_channels mid_channels out_channels num_blocks downsample light_block kernel_size '
        'numb_of_layers'
    )
    columns = [cnn.get(f'stage_{name}', Sequence[Any]) for name in names.split()]
    stages = [list(row) for row in zip(*columns, strict=True)]
    # Only the number of depths matters: `stage_num_blocks` has the blocks that are built.
    num_stages = len(cnn.get('depths', Sequence[Count]))
    if num_stages != len(stages):
        raise cnn.unsupported('depths', why=f'but it has {len(stages)} stages')
    # Each stage counts as a block, and outputs as the number of stages before them.
    indices = [before - 1 for before in output_stages(cnn, num_stages)]
    stem = cnn.get('stem_channels', Sequence[PositiveInt])
    # transformers takes the inputs of the neck's projections from these widths.
    widths = cnn.get('hidden_sizes', Sequence[PositiveInt])
    if len(widths) != num_stages or any(widths[i] != stages[i][2] for i in indices):
        raise cnn.unsupported('hidden_sizes', why='but stage_out_channels has other values')
    cnn.require('stem_strides', [2, 1, 1, 2, 1])
    cnn.require('stage_downsample_strides', [2] * num_stages, [2, 2, 2, 2])
    cnn.require('hidden_act', 'relu')
    cnn.require('num_channels', 3)
    if len(stem) != 3 or stem[0] != 3:
        raise cnn.unsupported(
            'stem_channels', why='where three numbers are expected, the first 3 for RGB'
        )
    backbone = dict(
        type='vit_plugin.HGNetV2',
        arch=dict(stem=list(stem[1:]), stages=stages),
        learnable_affine=cnn['use_learnable_affine_block'],
        out_indices=indices,
        frozen_norms=config['freeze_backbone_batch_norms'],
    )
    return backbone, [int(stages[i][2]) for i in indices]
