"""The pictures of what a model sees, by name, for the commands and the ``PicturesHook``."""

from collections.abc import Callable, Iterable, Sequence

import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.inference.prepared_image import PreparedImage
from vit_plugin.models.loading import find_backbone

from .annotations import class_name
from .attention_distance import attention_distances, draw_attention_distances
from .attention_maps import attention_rollout, class_attention
from .class_activation import class_activation, is_classifier
from .features import draw_feature_colors, feature_colors, patch_features
from .overlay import draw_over
from .position_similarity import draw_position_similarity, position_similarity

# Attention of this many times the uniform value is drawn brightest, so that uniform attention looks
# dark and flat.
BRIGHT_ATTENTION = 4


def draw_maps(
    prepared: PreparedImage,
    maps: Sequence[Tensor],
    titles: Sequence[str],
    min_brightest: float = 0.0,
) -> Figure:
    """Patch maps over an image, see :func:`~vit_plugin.report.pictures.overlay.draw_over`.

    Args:
        prepared: the image. It is drawn at its own resolution, if that is known.
        maps: maps (h, w) of the patches of its input, which may be padded.
        titles, min_brightest: see ``draw_over``.
    """
    # The maps cover the padded input, here in pixels of the drawn image.
    height, width = (
        round(input_side * drawn_side / image_side)
        for input_side, drawn_side, image_side in zip(
            prepared.input_size, prepared.sharpest_image.shape, prepared.image.shape, strict=False
        )
    )
    return draw_over(
        prepared.sharpest_image,
        maps,
        titles,
        covered_size=(height, width),
        min_brightest=min_brightest,
        with_image=prepared.next_to_photograph,
    )


def to_indices(numbers: Sequence[int] | None, count: int, name: str) -> list[int]:
    """Convert numbers from 1, or from -1 for the last, to indices from 0; None stands for all.

    Raises:
        ConfigError: if a number is out of range.
    """
    for number in numbers or ():
        if not 1 <= abs(number) <= count:
            raise ConfigError(
                f'--{name}s: there is no {name} {number}; this model has {count}, 1 to {count}, '
                'or -1 for the last.'
            )
    if numbers is None:
        return list(range(count))
    return [number - 1 if number > 0 else number for number in numbers]


def draw_attention(
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
        for i in to_indices(blocks, len(maps), 'block')
        for j in to_indices(heads, maps.shape[1], 'head')
    ]
    titles = [
        f'block {i % len(maps) + 1}, head {j % maps.shape[1] + 1}{_title_suffix(model)}'
        for i, j in pairs
    ]
    return draw_maps(
        prepared, [maps[pair] for pair in pairs], titles, BRIGHT_ATTENTION / maps[0, 0].numel()
    )


def draw_rollout(
    model: nn.Module, prepared: PreparedImage, blocks: Sequence[int] = (-1,)
) -> Figure:
    """Draw attention rollout to the chosen blocks, over the image."""
    maps = attention_rollout(model, prepared.inputs)[0]
    blocks = to_indices(blocks, len(maps), 'block')
    titles = [f'rollout to block {i % len(maps) + 1}{_title_suffix(model)}' for i in blocks]
    return draw_maps(
        prepared, [maps[i] for i in blocks], titles, BRIGHT_ATTENTION / maps[0].numel()
    )


def _title_suffix(model: nn.Module) -> str:
    """The end of a title: what replaces the class token in a model without one."""
    return '' if 'cls_token' in find_backbone(model)[1].prefix_tokens else ', mean of patches'


def draw_features(model: nn.Module, *prepared: PreparedImage) -> Figure:
    """Draw the features of patches as colors, next to each image."""
    colors = feature_colors(
        [image.without_padding(patch_features(model, image.inputs)[0]) for image in prepared]
    )
    return draw_feature_colors(
        [image.sharpest_image for image in prepared],
        colors,
        with_image=all(image.next_to_photograph for image in prepared),
    )


def draw_class_activation(
    model: nn.Module, prepared: PreparedImage, label: int | None = None, classes: Sequence[str] = ()
) -> Figure:
    """Draw class activation (of the most probable class by default), over the image."""
    labels = None if label is None else [label]
    maps, (label,) = class_activation(model, prepared.inputs, labels)
    name = class_name(label, classes)
    return draw_maps(prepared, list(maps), [f'speaks for {name}'])


def draw_distances(model: nn.Module, prepared: Iterable[PreparedImage]) -> Figure:
    """Draw the mean attention distance of each head, averaged over images."""
    distances = [attention_distances(model, image.inputs) for image in prepared]
    return draw_attention_distances(torch.stack(distances).mean(dim=0))


def draw_positions(model: nn.Module, _: Iterable[PreparedImage]) -> Figure:
    """Draw the similarity of each position to all others."""
    return draw_position_similarity(position_similarity(model))


# The pictures of a single image.
PER_IMAGE: dict[str, Callable[[nn.Module, PreparedImage], Figure]] = {
    'attention': draw_attention,
    'rollout': draw_rollout,
    'features': draw_features,
    'cam': draw_class_activation,
}
# The pictures of means over several images, or of the weights alone.
ACROSS_IMAGES: dict[str, Callable[[nn.Module, Iterable[PreparedImage]], Figure]] = {
    'distance': draw_distances,
    'posembed': draw_positions,
}


def supported_pictures(model: nn.Module) -> list[str]:
    """The names in :data:`PER_IMAGE` of the pictures that a model supports."""
    return [name for name in PER_IMAGE if name != 'cam' or is_classifier(model)]
