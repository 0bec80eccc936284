"""The pictures that the commands and the logs show: what a model sees in an image, as figures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

from .attention_distance import attention_distances, draw_attention_distances
from .attention_maps import attention_rollout, class_attention
from .class_activation import class_activation
from .features import draw_feature_colors, feature_colors, patch_features
from .positions import draw_position_similarity, position_similarity
from .style import draw_over

# Attention of this many times the even share is drawn bright, so that even attention looks dark and flat.
EVEN = 4


class PreparedImage(NamedTuple):
    """An image as a model gets it."""
    image: np.ndarray  # pixels (H, W, 3) in RGB, before they are normalised
    inputs: Tensor  # (1, C, H', W'), which may be padded at the right and bottom

    @property
    def covered(self) -> tuple[int, int]:
        """Height and width of the input, on which the patches lie."""
        return self.inputs.shape[-2], self.inputs.shape[-1]

    @classmethod
    def from_batch(cls, model: nn.Module, batch: Mapping[str, Any]) -> 'PreparedImage':
        """The one image of a batch from a pipeline, normalised by the model's data preprocessor."""
        image = batch['inputs'][0].permute(1, 2, 0).numpy()[..., ::-1]
        inputs = model.data_preprocessor(batch, False)['inputs']
        return cls(np.repeat(image, 3 // image.shape[-1], axis=-1), inputs)


def chosen(numbers: Sequence[int] | None, count: int, name: str) -> list[int]:
    """Indices from 0 for numbers from 1, or from -1 for the last; None stands for all.

    Raises:
        ConfigError: if one is out of range.
    """
    for number in numbers or ():
        if not 1 <= abs(number) <= count:
            raise ConfigError(f'--{name}s: there is no {name} {number}; this model has {count}, 1 to {count}, or -1 '
                              'for the last.')
    return list(range(count)) if numbers is None else [number - (number > 0) for number in numbers]


def attention(model: nn.Module, prepared: PreparedImage, blocks: Sequence[int] = (-1, ),
              heads: Sequence[int] | None = None) -> Figure:
    """The class token's attention in some blocks and heads (all by default), over the image."""
    maps = class_attention(model, prepared.inputs)[0]
    pairs = [(i, j) for i in chosen(blocks, len(maps), 'block') for j in chosen(heads, maps.shape[1], 'head')]
    titles = [f'block {i % len(maps) + 1}, head {j % maps.shape[1] + 1}' for i, j in pairs]
    return draw_over(prepared.image, [maps[pair] for pair in pairs], titles, prepared.covered,
                     EVEN / maps[0, 0].numel())


def rollout(model: nn.Module, prepared: PreparedImage, blocks: Sequence[int] = (-1, )) -> Figure:
    """The rollout of attention to some blocks, over the image."""
    maps = attention_rollout(model, prepared.inputs)[0]
    blocks = chosen(blocks, len(maps), 'block')
    titles = [f'rollout to block {i % len(maps) + 1}' for i in blocks]
    return draw_over(prepared.image, [maps[i] for i in blocks], titles, prepared.covered, EVEN / maps[0].numel())


def features(model: nn.Module, *prepared: PreparedImage) -> Figure:
    """The features of patches as colours, next to each image."""
    colors = feature_colors([patch_features(model, one.inputs)[0] for one in prepared])
    return draw_feature_colors([one.image for one in prepared], colors)


def cam(model: nn.Module, prepared: PreparedImage, label: int | None = None, classes: Sequence[str] = ()) -> Figure:
    """What speaks for a class (the most probable by default), over the image."""
    maps, (found, ) = class_activation(model, prepared.inputs, None if label is None else [label])
    name = classes[found] if found < len(classes) else found
    return draw_over(prepared.image, list(maps), [f'speaks for {name}'], prepared.covered)


def distance(model: nn.Module, prepared: Iterable[PreparedImage]) -> Figure:
    """The mean distance of attention in each head, over some images."""
    distances = [attention_distances(model, one.inputs) for one in prepared]
    return draw_attention_distances(torch.stack(distances).mean(dim=0))


def posembed(model: nn.Module, _: Iterable[PreparedImage]) -> Figure:
    """The similarity of each position to all others."""
    return draw_position_similarity(position_similarity(model))


PER_IMAGE: dict[str, Callable[[nn.Module, PreparedImage], Figure]] = {
    'attention': attention, 'rollout': rollout, 'features': features, 'cam': cam}
OF_ALL: dict[str, Callable[[nn.Module, Iterable[PreparedImage]], Figure]] = {
    'distance': distance, 'posembed': posembed}
