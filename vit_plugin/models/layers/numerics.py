"""Small details in which implementations of the same ViT differ.

A checkpoint only gives its published outputs with the activation, norms and padding of the code
that trained it. ``NUMERICS`` has a preset for each implementation. The builders below make the
layers that a config names.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from timm.layers import LayerNorm2d
from timm.layers.activations import QuickGELU
from torch import nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import Eps, NormChanges, OpenDict
from vit_plugin.errors import ConfigError, rejecting

from .std_conv import ConvPadding, PoolPadding

# Norms over the last dimension, of tokens (B, N, C) and vectors (B, C).
TOKEN_NORMS: dict[str, Callable[..., nn.Module]] = {'LN': nn.LayerNorm, 'RMSN': nn.RMSNorm}
# Norms over the channels of a map (B, C, H, W).
MAP_NORMS: dict[str, Callable[..., nn.Module]] = {
    'LN2d': LayerNorm2d,
    'BN': nn.BatchNorm2d,
    'SyncBN': nn.SyncBatchNorm,
    'GN': lambda channels, num_groups=32, **kwargs: nn.GroupNorm(num_groups, channels, **kwargs),
    # Each channel is a group. torch's InstanceNorm2d computes the same, and takes no map of 1 x 1.
    'IN': lambda channels, **kwargs: nn.GroupNorm(channels, channels, **kwargs),
}
ACTIVATION_LAYERS: dict[str, Callable[..., nn.Module]] = {
    name: getattr(nn, name)
    for name in ('GELU', 'ReLU', 'SiLU', 'Tanh', 'LeakyReLU', 'Hardswish', 'Mish', 'Identity')
}
ACTIVATION_LAYERS['QuickGELU'] = QuickGELU  # OpenAI's CLIP uses it (arXiv:1606.08415, Section 2)


@dataclass(frozen=True)
class Numerics:
    """Layer configs that change the output of a trained model.

    Outputs of ``'authors'`` and ``'timm'`` differ by 1e-5 to 1e-3. Those of a hybrid with
    ``'transunet'`` differ completely, since it pads and norms differently.

    Attributes:
        act_cfg: activation of the MLP. flax's ``gelu`` is the tanh approximation, torch's is exact.
        norm_cfg: norms of the encoder.
        stem_norm_cfg: norms of a :class:`~vit_plugin.models.ResNetEmbed`.
        stem_conv_cfg: weight standardization and padding of a ``ResNetEmbed``, see
            :class:`~vit_plugin.models.layers.std_conv.StdConv2d`.
        stem_shortcut_norm_cfg: norms of the shortcuts of a ``ResNetEmbed`` that have a convolution.
            If empty, ``stem_norm_cfg`` applies. Without ``type``, it changes that.
        stem_pool_cfg: padding of the max-pool of a ``ResNetEmbed``, see
            :func:`~vit_plugin.models.layers.std_conv.max_pool`.
    """

    act_cfg: dict
    norm_cfg: dict
    stem_norm_cfg: dict
    stem_conv_cfg: dict
    stem_shortcut_norm_cfg: dict
    stem_pool_cfg: dict


NUMERICS = {
    # google-research/vision_transformer: `models_vit.py`, `models_resnet.py`, flax's default eps.
    'authors': Numerics(
        act_cfg=dict(type='GELU', approximate='tanh'),
        norm_cfg=dict(type='LN', eps=1e-6),
        stem_norm_cfg=dict(type='GN', num_groups=32, eps=1e-6),
        stem_conv_cfg=dict(eps=1e-5, eps_inside_root=False, padding='same'),
        stem_shortcut_norm_cfg=dict(),
        stem_pool_cfg=dict(padding='same'),
    ),
    # timm: `vision_transformer.py`, `vision_transformer_hybrid.py`.
    'timm': Numerics(
        act_cfg=dict(type='GELU', approximate='none'),
        norm_cfg=dict(type='LN', eps=1e-6),
        stem_norm_cfg=dict(type='GN', num_groups=32, eps=1e-5),
        stem_conv_cfg=dict(eps=1e-8, eps_inside_root=True, padding='same'),
        stem_shortcut_norm_cfg=dict(),
        stem_pool_cfg=dict(padding='same'),
    ),
    # Beckschen/TransUNet: `vit_seg_modeling.py`, `vit_seg_modeling_resnet_skip.py`.
    'transunet': Numerics(
        act_cfg=dict(type='GELU', approximate='none'),
        norm_cfg=dict(type='LN', eps=1e-6),
        stem_norm_cfg=dict(type='GN', num_groups=32, eps=1e-6),
        stem_conv_cfg=dict(eps=1e-5, eps_inside_root=True, padding='symmetric'),
        stem_shortcut_norm_cfg=dict(type='IN', eps=1e-5),
        stem_pool_cfg=dict(padding='valid'),
    ),
}


NumericsName = Literal['authors', 'timm', 'transunet']


class ActChanges(OpenDict, total=False):
    """A different activation, or form of GELU. Further keys are arguments of the activation."""

    type: str | type
    approximate: Literal['none', 'tanh']


class StemConvChanges(TypedDict, total=False):
    """Details of how a stem standardizes its kernels and pads its maps, see ``StdConv2d``."""

    eps: Eps
    eps_inside_root: bool
    padding: ConvPadding


class StemPoolChanges(TypedDict, total=False):
    """Details of the max-pool of a stem, see ``max_pool``."""

    padding: PoolPadding


class NumericsCfg(TypedDict, total=False):
    """Changes of single details in a preset of ``NUMERICS``, see :func:`get_numerics`."""

    base: NumericsName
    act_cfg: ActChanges
    norm_cfg: NormChanges
    stem_norm_cfg: NormChanges
    stem_conv_cfg: StemConvChanges
    stem_shortcut_norm_cfg: NormChanges
    stem_pool_cfg: StemPoolChanges


AnyNumerics = NumericsName | NumericsCfg | Numerics


def get_numerics(numerics: 'str | Mapping[str, Any] | Numerics') -> Numerics:
    """Get a preset of ``NUMERICS``, or a preset with changed details.

    Args:
        numerics: ``'authors'``, ``'timm'``, ``'transunet'``, or a dict such as ``dict(base='timm',
            norm_cfg=dict(eps=1e-5))``. The entries of the dict are merged into those of the base.
            An entry with a different ``type`` replaces the base's. Default base: ``'authors'``.
    """
    if isinstance(numerics, Numerics):
        return numerics
    changes: dict[str, Any] = (
        dict(numerics) if isinstance(numerics, Mapping) else {'base': numerics}
    )
    merged = asdict(NUMERICS[changes.pop('base', 'authors')])
    for key, change in changes.items():
        base = merged[key]
        has_same_type = 'type' not in change or change['type'] == base.get('type')
        merged[key] = {**base, **change} if has_same_type else dict(change)
    shortcut = merged['stem_shortcut_norm_cfg']
    if shortcut and 'type' not in shortcut:  # most presets have no norm of their own there
        merged['stem_shortcut_norm_cfg'] = {**merged['stem_norm_cfg'], **shortcut}
    return Numerics(**merged)


def build_norm(cfg: Mapping[str, Any], channels: int) -> nn.Module:
    """Build the norm of tokens or vectors that an OpenMMLab ``norm_cfg`` describes.

    Raises:
        ConfigError: if its ``type`` is not in ``TOKEN_NORMS``, or rejects the other arguments.
    """
    return _build(TOKEN_NORMS, 'norm_cfg of tokens', cfg, channels, other=MAP_NORMS)


def build_map_norm(cfg: Mapping[str, Any], channels: int) -> nn.Module:
    """Build the norm of maps that an OpenMMLab ``norm_cfg`` describes.

    Raises:
        ConfigError: if its ``type`` is not in ``MAP_NORMS``, or does not take the other arguments.
    """
    return _build(MAP_NORMS, 'norm_cfg of maps', cfg, channels, other=TOKEN_NORMS)


def build_activation(cfg: Mapping[str, Any]) -> nn.Module:
    """Build the activation layer of an OpenMMLab ``act_cfg``.

    Raises:
        ConfigError: if its ``type`` is not in ``ACTIVATION_LAYERS``, or does not take the other
            arguments.
    """
    return _build(ACTIVATION_LAYERS, 'act_cfg', cfg)


def _build(
    table: dict[str, Callable[..., nn.Module]],
    name: str,
    cfg: Mapping[str, Any],
    *args: Any,
    other: Mapping[str, Any] = {},
) -> nn.Module:
    """Build the layer of a config, whose ``type`` is a name in a table, or a class.

    Args:
        table: the layers by their names.
        name: the name of the config, for messages.
        cfg: the config.
        args: positional arguments of the layer.
        other: a table of layers that are rejected, because they take inputs of another shape.
    """
    kwargs = dict(cfg)
    layer = kwargs.pop('type')
    if layer in other.values() or (isinstance(layer, str) and layer not in table):
        raise ConfigError(
            f'{name}: type={layer!r} is not one of {", ".join(table)}; a class is accepted too.'
        )
    with rejecting(f'{name}={dict(cfg)} does not fit', 'change it', (TypeError, ValueError)):
        module = (table[layer] if isinstance(layer, str) else layer)(*args, **kwargs)
    if not isinstance(module, nn.Module):
        raise ConfigError(
            f'{name}: type={layer!r} is not a layer; choose one of {", ".join(table)}.'
        )
    return module
