"""Low-rank adapters (LoRA, arXiv:2106.09685) in checkpoints, and the equivalent plain weights."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Positive, PositiveInt
from vit_plugin.errors import ConfigError

from .reading.lazy import Weights
from .report import shortened_list
from .rules import check_real

# peft's names: the adapted layer in its wrapper, and the factors A and B of the update.
BASE_LAYER = '.base_layer.'
DOWN, UP = '.lora_A.default.weight', '.lora_B.default.weight'


def has_adapters(weights: Weights) -> bool:
    """True if there are adapters among the weights."""
    return any(name.endswith(DOWN) for name in weights)


def merge_adapters(weights: Weights, meta: Any) -> Weights:
    """Merge adapters into the weights that they adapt, W + alpha / r * B A, and drop them.

    Args:
        weights: the weights of a checkpoint. Without adapters they are returned unchanged.
        meta: the checkpoint's ``meta``. Our runner saves ``r`` (the rank) and ``alpha`` in its
            ``lora``.

    Returns:
        The weights by the names of the model without adapters.

    Raises:
        ConfigError: if ``meta`` lacks the scale of the adapters, if they do not fit their layer, or
            if they have more than the factors A and B, as those of DoRA.
    """
    if not has_adapters(weights):
        return weights
    scale = _scale_in(meta)
    _check_names(weights)
    plain = {
        name.replace(BASE_LAYER, '.'): value
        for name, value in weights.items()
        if '.lora_' not in name
    }
    for name in weights:
        if name.endswith(DOWN):
            layer = name.removesuffix(DOWN)
            if f'{layer}.weight' not in plain or layer + UP not in weights:
                raise ConfigError(
                    f'The checkpoint has the LoRA adapter {name}, but lacks {layer}.weight or '
                    f'{layer + UP}: it is damaged.'
                )
            plain[f'{layer}.weight'] = _merged(plain[f'{layer}.weight'], weights, layer, scale)
    return plain


def _scale_in(meta: Any) -> float:
    """The factor alpha / r of the updates, from the ``meta`` of a checkpoint."""
    settings = meta.get('lora') if isinstance(meta, Mapping) else None
    settings = settings if isinstance(settings, Mapping) else {}
    rank: Any = settings.get('r')
    alpha: Any = settings.get('alpha')
    if not (fits(PositiveInt, rank) and fits(Positive, alpha)):
        raise ConfigError(
            'The checkpoint has LoRA adapters, but its meta lacks their scale, so that '
            'they cannot be merged; give a checkpoint of a vit_plugin run, or merge them with '
            'peft.'
        )
    return alpha / rank


def _check_names(weights: Weights) -> None:
    """Raise a ``ConfigError`` for adapters with more than the factors A and B."""
    others = [
        name
        for name in weights
        if '.lora_' in name
        and not name.endswith(DOWN)
        and not (name.endswith(UP) and name.removesuffix(UP) + DOWN in weights)
    ]
    if others:
        raise ConfigError(
            f'The checkpoint has {shortened_list(others)}, which are of no plain LoRA adapter '
            'named default, so that they cannot be merged; merge them with peft.'
        )


def _merged(weight: Tensor, weights: Weights, layer: str, scale: float) -> Tensor:
    """The weight of a layer, plus the scaled product of its factors B and A.

    Args:
        weight: the weight of the layer alone.
        weights: all weights, with the factors among them.
        layer: the name of the layer.
        scale: alpha / r.

    Raises:
        ConfigError: if the factors are not of this layer, or are quantized.
    """
    down, up = weights[layer + DOWN], weights[layer + UP]
    check_real(layer + DOWN, down)
    check_real(layer + UP, up)
    if (
        [*weight.shape] != [*up.shape[:1], *down.shape[1:]]
        or up.shape[1:] != down.shape[:1]
        or weight.ndim != 2
    ):
        raise ConfigError(
            f'The LoRA adapters {layer + DOWN} {tuple(down.shape)} and {layer + UP} '
            f'{tuple(up.shape)} are not of a layer {tuple(weight.shape)}: the checkpoint '
            'is damaged.'
        )
    # Summed in float64 and rounded once.
    return (weight.double() + scale * (up.double() @ down.double())).to(weight.dtype)
