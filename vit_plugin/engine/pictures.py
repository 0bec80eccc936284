"""Pictures of what a model sees in an image, as figures and as images in the logs of a run."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from matplotlib.figure import Figure
from mmengine.dataset import pseudo_collate
from mmengine.dist import is_main_process
from mmengine.hooks import Hook
from mmengine.runner import Runner
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.fields import PositiveInt
from vit_plugin.registry import HOOKS
from vit_plugin.visualization import (
    attention_distances,
    attention_rollout,
    class_activation,
    class_attention,
    draw_attention_distances,
    draw_feature_colors,
    draw_filters,
    draw_over,
    draw_position_similarity,
    feature_colors,
    patch_features,
    position_similarity,
    principal_filters,
)

from .checkpoints.state import bare
from .inference import Seen, as_seen
from .log_images import log_image
from .sharding import is_sharded


def chosen(numbers: Sequence[int] | None, count: int, name: str) -> list[int]:
    """Indices from 0 for numbers that may be negative; None stands for all.

    Raises:
        ConfigError: if one is out of range.
    """
    for number in numbers or ():
        if not -count <= number < count:
            raise ConfigError(f'--{name}s: there is no {name} {number}; this model has {count}, {-count} to '
                              f'{count - 1}.')
    return list(range(count)) if numbers is None else [number % count for number in numbers]


def attention(model: nn.Module, seen: Seen, blocks: Sequence[int] = (-1, ),
              heads: Sequence[int] | None = None) -> Figure:
    """The class token's attention in some blocks and heads (all by default), over the image."""
    maps = class_attention(model, seen.inputs)[0]
    pairs = [(i, j) for i in chosen(blocks, len(maps), 'block') for j in chosen(heads, maps.shape[1], 'head')]
    return draw_over(seen.image, [maps[pair] for pair in pairs], [f'block {i}, head {j}' for i, j in pairs],
                     seen.covered)


def rollout(model: nn.Module, seen: Seen, blocks: Sequence[int] = (-1, )) -> Figure:
    """The rollout of attention to some blocks, over the image."""
    maps = attention_rollout(model, seen.inputs)[0]
    blocks = chosen(blocks, len(maps), 'block')
    return draw_over(seen.image, [maps[i] for i in blocks], [f'rollout to block {i}' for i in blocks], seen.covered)


def features(model: nn.Module, *seen: Seen) -> Figure:
    """The features of patches as colours, beside each image."""
    colors = feature_colors([patch_features(model, one.inputs)[0] for one in seen])
    return draw_feature_colors([one.image for one in seen], colors)


def cam(model: nn.Module, seen: Seen, label: int | None = None, classes: Sequence[str] = ()) -> Figure:
    """What speaks for a class (the likeliest by default), over the image."""
    maps, (found, ) = class_activation(model, seen.inputs, None if label is None else [label])
    name = classes[found] if found < len(classes) else found
    return draw_over(seen.image, list(maps), [f'speaks for {name}'], seen.covered)


def distance(model: nn.Module, seen: Iterable[Seen]) -> Figure:
    """The mean distance of attention in each head, over some images."""
    distances = [attention_distances(model, one.inputs) for one in seen]
    return draw_attention_distances(torch.stack(distances).mean(dim=0))


def posembed(model: nn.Module, _: Iterable[Seen]) -> Figure:
    """The similarity of each position to all others."""
    return draw_position_similarity(position_similarity(model))


def filters(model: nn.Module, _: Iterable[Seen]) -> Figure:
    """The principal components of the first layer's filters."""
    return draw_filters(principal_filters(model))


PER_IMAGE: dict[str, Callable[[nn.Module, Seen], Figure]] = {
    'attention': attention, 'rollout': rollout, 'features': features, 'cam': cam}
OF_ALL: dict[str, Callable[[nn.Module, Iterable[Seen]], Figure]] = {
    'distance': distance, 'posembed': posembed, 'filters': filters}


@HOOKS.register_module()
class PicturesHook(Hook):
    """Draws what the model sees in samples of the validation, as images in all logs of ``vis_backends``.

    Args:
        pictures: some of ``'attention'``, ``'rollout'``, ``'features'`` and ``'cam'``, which are one for each sample;
            ``'distance'``, one over all samples; ``'posembed'`` and ``'filters'``, of the weights.
        samples: indices of the samples.
        interval: number of validations from one to the next that is drawn. The first is drawn.

    Raises:
        ConfigError: if a picture is unknown; when it draws, if the model has no such picture or is sharded.
    """

    priority = 'ABOVE_NORMAL'  # before the EMAHook gives the model its own weights back

    def __init__(self, pictures: Sequence[str] = ('features', ), samples: Sequence[int] = (0, 1, 2),
                 interval: PositiveInt = 1) -> None:
        unknown = [name for name in pictures if name not in (*PER_IMAGE, *OF_ALL)]
        if unknown:
            raise ConfigError(f'PicturesHook: there is no picture {unknown[0]!r}; give some of '
                              f'{", ".join([*PER_IMAGE, *OF_ALL])}.')
        self.pictures, self.samples, self.interval = tuple(pictures), tuple(samples), interval
        self._validations = 0

    def after_val_epoch(self, runner: Runner, metrics: dict[str, Any] | None = None) -> None:
        model, due = bare(runner.model), self._validations % self.interval == 0
        self._validations += 1
        if is_sharded(model):
            raise ConfigError('PicturesHook: a sharded model cannot be drawn during a run; leave the hook out, and '
                              'draw its checkpoint with tools/visualize.py.')
        if not due or not is_main_process():
            return
        dataset = runner.val_dataloader.dataset
        for index in self.samples:
            if not -len(dataset) <= index < len(dataset):
                raise ConfigError(f'PicturesHook: there is no sample {index}, the validation has {len(dataset)}.')
        seen = {index: as_seen(model, pseudo_collate([dataset[index]])) for index in self.samples}
        for name in self.pictures:
            if name in OF_ALL:
                log_image(runner, name, OF_ALL[name](model, seen.values()))
            else:
                for index, one in seen.items():
                    log_image(runner, f'{name}_{index}', PER_IMAGE[name](model, one))
