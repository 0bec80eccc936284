"""Figures of what a model sees in an image, for the commands and the logs."""

from collections.abc import Callable, Iterable, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.inference.prepared_image import PreparedImage
from vit_plugin.models.loading import find_backbone

from .attention_distance import attention_distances, draw_attention_distances
from .attention_maps import attention_rollout, class_attention
from .class_activation import class_activation, is_classifier
from .features import draw_feature_colors, feature_colors, patch_features
from .overlay import draw_over
from .position_similarity import draw_position_similarity, position_similarity

# Attention of this many times the uniform value is drawn brightest, so that uniform attention looks
# dark and flat.
EVEN = 4


def draw_maps(
    prepared: PreparedImage, maps: Sequence[Tensor], titles: Sequence[str], bright: float = 0.0
) -> Figure:
    """Patch maps over an image, see :func:`~vit_plugin.report.pictures.overlay.draw_over`."""
    height, width = (
        round(covered * shown / seen)
        for covered, shown, seen in zip(
            prepared.covered, prepared.sharpest.shape, prepared.image.shape, strict=False
        )
    )
    return draw_over(prepared.sharpest, maps, titles, (height, width), bright, prepared.beside)


def chosen(numbers: Sequence[int] | None, count: int, name: str) -> list[int]:
    """Convert numbers from 1, or from -1 for the last, to indices from 0; None stands for all.

    Raises:
        ConfigError: if one is out of range.
    """
    for number in numbers or ():
        if not 1 <= abs(number) <= count:
            raise ConfigError(
                f'--{name}s: there is no {name} {number}; this model has {count}, 1 to {count}, '
                'or -1 for the last.'
            )
    return list(range(count)) if numbers is None else [number - (number > 0) for number in numbers]


def attention(
    model: nn.Module,
    prepared: PreparedImage,
    blocks: Sequence[int] = (-1,),
    heads: Sequence[int] | None = None,
) -> Figure:
    """Draw the attention of the class token, or of all patches, over the image.

    There is one map for each of the chosen blocks and heads (default: all).
    """
    maps = class_attention(model, prepared.inputs)[0]
    pairs = [
        (i, j)
        for i in chosen(blocks, len(maps), 'block')
        for j in chosen(heads, maps.shape[1], 'head')
    ]
    titles = [
        f'block {i % len(maps) + 1}, head {j % maps.shape[1] + 1}{_queries(model)}'
        for i, j in pairs
    ]
    return draw_maps(prepared, [maps[pair] for pair in pairs], titles, EVEN / maps[0, 0].numel())


def rollout(model: nn.Module, prepared: PreparedImage, blocks: Sequence[int] = (-1,)) -> Figure:
    """Draw attention rollout to the chosen blocks, over the image."""
    maps = attention_rollout(model, prepared.inputs)[0]
    blocks = chosen(blocks, len(maps), 'block')
    titles = [f'rollout to block {i % len(maps) + 1}{_queries(model)}' for i in blocks]
    return draw_maps(prepared, [maps[i] for i in blocks], titles, EVEN / maps[0].numel())


def _queries(model: nn.Module) -> str:
    """Title for a model without a class token."""
    return '' if 'cls_token' in find_backbone(model)[1].prefix_tokens else ', mean of patches'


def features(model: nn.Module, *prepared: PreparedImage) -> Figure:
    """Draw the features of patches as colors, next to each image."""
    colors = feature_colors(
        [image.without_padding(patch_features(model, image.inputs)[0]) for image in prepared]
    )
    return draw_feature_colors(
        [image.sharpest for image in prepared],
        colors,
        beside=all(image.beside for image in prepared),
    )


def cam(
    model: nn.Module, prepared: PreparedImage, label: int | None = None, classes: Sequence[str] = ()
) -> Figure:
    """Draw class activation (of the most probable class by default), over the image."""
    maps, (shown,) = class_activation(model, prepared.inputs, None if label is None else [label])
    name = classes[shown] if shown < len(classes) else shown
    return draw_maps(prepared, list(maps), [f'speaks for {name}'])


def distance(model: nn.Module, prepared: Iterable[PreparedImage]) -> Figure:
    """Draw the mean attention distance of each head, averaged over images."""
    distances = [attention_distances(model, image.inputs) for image in prepared]
    return draw_attention_distances(torch.stack(distances).mean(dim=0))


def posembed(model: nn.Module, _: Iterable[PreparedImage]) -> Figure:
    """Draw the similarity of each position to all others."""
    return draw_position_similarity(position_similarity(model))


PER_IMAGE: dict[str, Callable[[nn.Module, PreparedImage], Figure]] = {
    'attention': attention,
    'rollout': rollout,
    'features': features,
    'cam': cam,
}

OF_ALL: dict[str, Callable[[nn.Module, Iterable[PreparedImage]], Figure]] = {
    'distance': distance,
    'posembed': posembed,
}


def shown_by(model: nn.Module) -> list[str]:
    """The names in :data:`PER_IMAGE` of the pictures that a model supports."""
    return [name for name in PER_IMAGE if name != 'cam' or is_classifier(model)]
