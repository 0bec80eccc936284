"""The small numbers in which implementations of one and the same ViT differ."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
from timm.layers import LayerNorm2d
from torch import Tensor, nn

from vit_plugin.errors import ConfigError

NORMS: dict[str, Callable[..., nn.Module]] = {
    'LN': nn.LayerNorm,
    'LN2d': LayerNorm2d,  # over the channels of a map
    'RMSN': nn.RMSNorm,
    'BN': nn.BatchNorm2d,
    'GN': lambda channels, num_groups=32, **kwargs: nn.GroupNorm(num_groups, channels, **kwargs),
}


class QuickGELU(nn.Module):
    """The GELU of OpenAI's CLIP: x * sigmoid(1.702 x) (arXiv:1606.08415, Section 2)."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


ACTIVATIONS: dict[str, Callable[..., nn.Module]] = {
    name: getattr(nn, name)
    for name in ('GELU', 'ReLU', 'SiLU', 'Tanh', 'LeakyReLU', 'Hardswish', 'Mish', 'Identity')}
ACTIVATIONS['QuickGELU'] = QuickGELU


@dataclass(frozen=True)
class Numerics:
    """Layer configs that change a trained model's output by 1e-5 to 1e-3, and are easily got wrong.

    Attributes:
        act_cfg: the MLP's activation; flax's ``gelu`` is the tanh approximation, torch's the exact form.
        norm_cfg: the encoder's norms.
        stem_norm_cfg: the norms of a :class:`~vit_plugin.models.ResNetEmbed`.
        stem_conv_cfg: its weight standardisation, see :func:`~vit_plugin.models.layers.std_conv.standardize`.
    """
    act_cfg: dict
    norm_cfg: dict
    stem_norm_cfg: dict
    stem_conv_cfg: dict


NUMERICS = {
    # google-research/vision_transformer: `models_vit.py`, `models_resnet.py`, flax's default eps.
    'authors': Numerics(
        act_cfg=dict(type='GELU', approximate='tanh'),
        norm_cfg=dict(type='LN', eps=1e-6),
        stem_norm_cfg=dict(type='GN', num_groups=32, eps=1e-6),
        stem_conv_cfg=dict(eps=1e-5, eps_inside_root=False)),
    # timm: `vision_transformer.py`, `vision_transformer_hybrid.py`.
    'timm': Numerics(
        act_cfg=dict(type='GELU', approximate='none'),
        norm_cfg=dict(type='LN', eps=1e-6),
        stem_norm_cfg=dict(type='GN', num_groups=32, eps=1e-5),
        stem_conv_cfg=dict(eps=1e-8, eps_inside_root=True)),
}


def get_numerics(numerics: 'str | Mapping[str, Any] | Numerics') -> Numerics:
    """A row of ``NUMERICS`` by name, or with details changed.

    Args:
        numerics: ``'authors'``, ``'timm'``, or a dict ``dict(base='timm', norm_cfg=dict(eps=1e-5))``
            whose entries are merged into those of the base; an entry with another ``type`` replaces it.

    Raises:
        ConfigError: for a base or a field that does not exist.
    """
    if isinstance(numerics, Numerics):
        return numerics
    changes = dict(numerics) if isinstance(numerics, Mapping) else {'base': numerics}
    name = changes.pop('base', 'authors')
    names = [field.name for field in fields(Numerics)]
    maps = all(isinstance(change, Mapping) for change in changes.values())
    if name not in NUMERICS or not set(changes) <= set(names) or not maps:
        raise ConfigError(
            f'numerics={numerics!r} is not known: give one of {", ".join(NUMERICS)}, or a dict with '
            f'`base` (one of them) and any of {", ".join(names)} as dicts.')
    merged = asdict(NUMERICS[name])
    for key, change in changes.items():
        same_type = change.get('type', merged[key].get('type')) == merged[key].get('type')
        merged[key] = {**merged[key], **change} if same_type else dict(change)
    return Numerics(**merged)


def build_norm(cfg: Mapping[str, Any], channels: int) -> nn.Module:
    """The norm layer of an OpenMMLab ``norm_cfg`` over that many channels.

    Raises:
        ConfigError: if its ``type`` is not in ``NORMS``.
    """
    return _build(NORMS, 'norm_cfg', cfg, channels)


def build_activation(cfg: Mapping[str, Any]) -> nn.Module:
    """The activation layer of an OpenMMLab ``act_cfg``.

    Raises:
        ConfigError: if its ``type`` is not in ``ACTIVATIONS``.
    """
    return _build(ACTIVATIONS, 'act_cfg', cfg)


def _build(table: dict[str, Callable[..., nn.Module]], name: str, cfg: Mapping[str, Any], *args: Any) -> nn.Module:
    kwargs = dict(cfg)
    layer = kwargs.pop('type')
    if isinstance(layer, str) and layer not in table:
        raise ConfigError(f'{name}: type={layer!r} is not one of {", ".join(table)}; a class is taken too.')
    return (table[layer] if isinstance(layer, str) else layer)(*args, **kwargs)
