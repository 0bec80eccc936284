"""What the arrays and the name of an authors' file say of its model, for all of these detectors."""

import re
from pathlib import PurePosixPath

import torch
from mmengine.logging import print_log

from vit_plugin.arguments.fields import Section
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import Published

SCALES = 'decoder.decoder.layers.0.cross_attn.num_points_scale'  # the reciprocals of points
ENCODER_HEADS = 8  # attention heads of the hybrid encoder
USUAL_QUERIES, USUAL_SIZE = 300, 640


def read_hgnet(published: Published) -> tuple[Section, list[int]]:
    """HGNetV2 with the widths of its arrays."""

    def side(name: str, axis: int = 0) -> int:
        return published.shape(f'backbone.{name}.weight')[axis]

    ours, rows = published.ours, []
    for i in range(published.count('backbone.stages.')):
        stage = f'stages.{i}'
        layers = published.count(f'backbone.{stage}.blocks.0.layers.')
        is_light = f'backbone.{stage}.blocks.0.layers.0.conv1.conv.weight' in ours
        halved = f'backbone.{stage}.downsample.conv.weight' in ours
        first = f'{stage}.blocks.0.layers.0'
        last = f'{first}.conv2.conv' if is_light else f'{first}.conv'
        before = f'{first}.conv1.conv' if is_light else last
        rows.append(
            (
                side(before, 1),
                side(last),
                side(f'{stage}.blocks.0.aggregation.1.conv'),
                published.count(f'backbone.{stage}.blocks.'),
                halved,
                is_light,
                side(last, -1),
                layers,
            )
        )
    inputs = published.count('neck.projections.')
    indices = range(len(rows) - inputs, len(rows))
    backbone = dict(
        type='vit_plugin.HGNetV2',
        arch=dict(stem=[side('stem.stem1.conv'), side('stem.stem4.conv')], stages=rows),
        learnable_affine='backbone.stem.stem1.lab.scale' in ours,
        out_indices=list(indices),
    )
    return backbone, [int(rows[i][2]) for i in indices]


def read_points(published: Published) -> list[int]:
    """The number of points in each map. The file stores its reciprocal for each point."""
    if SCALES not in published.weights:
        raise ConfigError(f'it lacks {SCALES}; give the complete file')
    shares = published.weights[SCALES].double()
    counts, points = shares.reciprocal().round().long().tolist(), []
    while counts:
        number = counts[0]
        if number < 1 or counts[:number] != [number] * number:
            break
        points.append(number)
        counts = counts[number:]
    wanted = torch.tensor([1 / number for number in points for _ in range(number)]).double()
    if counts or not torch.allclose(shares, wanted, atol=1e-3):
        raise ConfigError(f'its {SCALES} are not reciprocals of numbers of points')
    return points


def is_named(published: Published, word: str, usual: str, title: str) -> bool:
    """Whether a file is of the rarer of two models that have the same tensors.

    A word of its name decides. A name that indicates neither is logged.

    Args:
        published: the file.
        word: beginning of a word in names of the rarer model.
        usual: part of names of the other model, without separators.
        title: name of the rarer model.
    """
    words = re.findall('[a-z0-9]+', PurePosixPath(published.source).name.lower())
    has_word = any(part.startswith(word) for part in words)
    if has_word or usual in ''.join(words):
        return has_word
    print_log(
        f'{published.source} is not taken as {title}, whose files have the same tensors and '
        f'need a word in its name that begins with {word!r}.',
        'current',
    )
    return False
