"""Settings of RT-DETR, D-FINE and their successors, inferred from the authors' own checkpoints.

Unlike transformers' folders, these files have no config, only arrays. A few settings show only in
the name of the file. ``published.weights`` are the arrays by the authors' names, and
``published.ours`` those by this package's.
"""

import re
from pathlib import PurePosixPath

import torch
from mmengine.logging import print_log

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Published

# Key of an array with a value for each sampling point: 1 / n in a map with n points.
POINT_SCALES = 'decoder.decoder.layers.0.cross_attn.num_points_scale'
ENCODER_HEADS = 8  # attention heads of the hybrid encoder
USUAL_QUERIES, USUAL_SIZE = 300, 640  # number of queries, and sides of the images in pixels


def read_hgnet(published: Published) -> tuple[Section, list[int]]:
    """The config of HGNetV2, from the shapes of its arrays, and the channels of its maps."""

    # The length of an axis of a convolution's weight: 0 for output channels, 1 for input channels,
    # -1 for the width of the kernel.
    def axis_size(name: str, axis: int = 0) -> int:
        return published.shape(f'backbone.{name}.weight')[axis]

    ours, rows = published.ours, []
    for i in range(published.count('backbone.stages.')):
        stage = f'stages.{i}'
        layers = published.count(f'backbone.{stage}.blocks.0.layers.')
        first_layer = f'{stage}.blocks.0.layers.0'
        # A light layer is a pointwise convolution (conv1) and a depthwise one (conv2).
        is_light = f'backbone.{first_layer}.conv1.conv.weight' in ours
        halved = f'backbone.{stage}.downsample.conv.weight' in ours
        inner_conv = f'{first_layer}.conv2.conv' if is_light else f'{first_layer}.conv'
        input_conv = f'{first_layer}.conv1.conv' if is_light else inner_conv
        # The columns of `hgnet_v2.ARCHS`: channels of the input, within a block and of the output,
        # number of blocks, whether the maps are halved, whether the convolutions are light, size
        # of the kernel, number of layers in a block.
        rows.append(
            (
                axis_size(input_conv, 1),
                axis_size(inner_conv),
                axis_size(f'{stage}.blocks.0.aggregation.1.conv'),
                published.count(f'backbone.{stage}.blocks.'),
                halved,
                is_light,
                axis_size(inner_conv, -1),
                layers,
            )
        )
    num_maps = published.count('neck.projections.')
    indices = range(len(rows) - num_maps, len(rows))  # the neck takes the maps of the last stages
    backbone = dict(
        type='vit_plugin.HGNetV2',
        arch=dict(stem=[axis_size('stem.stem1.conv'), axis_size('stem.stem4.conv')], stages=rows),
        learnable_affine='backbone.stem.stem1.lab.scale' in ours,
        out_indices=list(indices),
    )
    return backbone, [int(rows[i][2]) for i in indices]  # channels of the output


def read_points(published: Published) -> list[int]:
    """The number of sampling points in each map.

    Raises:
        ConfigError: if the tensor with their reciprocals is missing, or has other values.
    """
    if POINT_SCALES not in published.weights:
        raise ConfigError(f'it lacks {POINT_SCALES}; give the complete file')
    reciprocals = published.weights[POINT_SCALES].double()
    remaining, points = reciprocals.reciprocal().round().long().tolist(), []
    while remaining:
        number = remaining[0]
        if not 1 <= number <= len(remaining) or remaining[:number] != [number] * number:
            break
        points.append(number)
        remaining = remaining[number:]
    expected = torch.tensor([1 / number for number in points for _ in range(number)]).double()
    if remaining or not torch.allclose(reciprocals, expected, atol=1e-3):
        raise ConfigError(f'its {POINT_SCALES} are not reciprocals of numbers of points')
    return points


def is_rarer_model(published: Published, word: str, usual: str, title: str) -> bool:
    """Whether a file is of the rarer of two models that have the same tensors.

    The name of the file decides. A name that indicates neither model counts as the usual one, and a
    message is logged.

    Args:
        published: the file.
        word: beginning of a word in file names of the rarer model.
        usual: part of the usual model's file names, without separators.
        title: name of the rarer model, for the message.
    """
    words = re.findall('[a-z0-9]+', PurePosixPath(published.source).name.lower())
    has_word = any(part.startswith(word) for part in words)
    if has_word or usual in ''.join(words):
        return has_word
    print_log(
        f'{published.source} is not taken as {title}, whose files have the same tensors; if it is '
        f'one, rename it so that a word of its name begins with {word!r}.',
        'current',
    )
    return False
