"""Compare the outputs of a backbone and its neck with the components that take them."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from mmengine.model import BaseModule
from mmengine.registry import MODELS
from torch import Tensor

from vit_plugin.errors import ConfigError
from vit_plugin.models.layers.outputs import MAP_OUT_TYPES
from vit_plugin.models.necks.token_pooling import CLASS_TOKEN_MODES
from vit_plugin.models.protocol import HasStrides

TOKEN_POOLING = 'vit_plugin.TokenPooling'
MAP_NECKS = ('GlobalAveragePooling', 'GeneralizedMeanPooling')  # MMPretrain's necks after a CNN
WIDTH_ARGUMENTS = ('in_channels', 'embed_dim')  # for an input width; the second is MAE's
COARSEST_SIDE = 128  # elements; side of the coarsest map, which necks halve without a remainder
# Larger strides are not compared: they depend on the size of the image, since small maps are
# rounded.
MAX_COMPARED_STRIDE = 64
# The argument that decides the number of outputs.
OUTPUT_COUNT_ARGUMENT = {'backbone': 'out_indices', 'neck': 'num_outs'}


class MetaOutputs(NamedTuple):
    """The outputs of a component for a square image, on the meta device.

    Attributes:
        source: the component, backbone or neck.
        features: the outputs.
        pixels: side of the image.
    """

    source: str
    features: tuple[Tensor, ...]
    pixels: int

    @property
    def channels(self) -> list[int]:
        """The channels of maps (B, C, H, W), vectors (B, C) or tokens (B, L, C)."""
        return [x.shape[2 if x.ndim == 3 else 1] for x in self.features]

    @property
    def strides(self) -> list[float]:
        """Pixels per element, or nothing if the outputs are not maps."""
        if any(x.ndim != 4 for x in self.features):
            return []
        strides = [self.pixels / x.shape[3] for x in self.features]
        return [int(stride) if stride.is_integer() else stride for stride in strides]

    @classmethod
    def of_backbone(cls, backbone: Any) -> 'MetaOutputs':
        """The outputs of a backbone, from the channels and strides that it states.

        For tokens, only the channels are exact, not the number.
        """
        out_type, features = getattr(backbone, 'out_type', 'featmap'), []
        pixels = COARSEST_SIDE * math.lcm(*backbone.strides)
        for channels, stride in zip(backbone.channels, backbone.strides, strict=False):
            side = pixels // stride
            shape: tuple[int, ...] = (1, channels)
            if out_type in MAP_OUT_TYPES:
                shape = (1, channels, side, side)
            elif out_type == 'raw':
                shape = (1, backbone.num_prefix_tokens + side, channels)
            features.append(torch.empty(shape, device='meta'))
        return cls('backbone', tuple(features), pixels)

    def through(self, neck: Mapping) -> 'MetaOutputs | None':
        """The outputs of a neck, or None if they cannot be found out with features alone."""
        try:
            with torch.device('meta'), torch.no_grad():
                outputs = MODELS.build(dict(neck)).eval()(self.features)
        except ConfigError:
            raise
        except Exception:  # noqa: BLE001  of any framework's neck
            return None
        outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        if not all(isinstance(x, Tensor) and x.ndim > 1 for x in outputs):
            return None
        return MetaOutputs('neck', outputs, self.pixels)


def check_channels(model: Mapping) -> None:
    """Compare the channels and strides in a model's config with those of the actual features.

    Our backbones are built on the meta device, without memory, and state their channels and
    strides. Other backbones are not checked. A neck is built in the same way, and heads are
    compared with its outputs. A ``TokenPooling`` in ``model`` also gets the number of tokens before
    the patches.

    Raises:
        ConfigError: if a width, a stride or the number of maps differs, or if a neck takes maps and
            gets none.
    """
    backbone = model.get('backbone') or {}
    if not str(backbone.get('type')).startswith('vit_plugin.'):
        return
    with torch.device('meta'):
        built = MODELS.build(_without_checkpoints(backbone))
    if not isinstance(built, HasStrides):
        return
    outputs = MetaOutputs.of_backbone(built)
    for field, neck in iter_components(model, 'neck'):
        if neck.get('type') == TOKEN_POOLING and getattr(built, 'out_type', None) == 'raw':
            _set_prefix_tokens(neck, built)
        if str(neck.get('type')).rpartition('.')[2] in MAP_NECKS and not outputs.strides:
            raise ConfigError(
                f'{field}: {neck["type"]} takes maps, and the {outputs.source} returns none; set '
                f'{field}=None, or out_type of the backbone to {MAP_OUT_TYPES[0]!r}.'
            )
        _compare(field, neck, outputs)
        neck_outputs = outputs.through(neck)
        if neck_outputs is None:
            return
        outputs = neck_outputs
    for name in model:
        if name.endswith('head'):
            for field, head in iter_components(model, name):
                _compare(field, head, outputs)


def _without_checkpoints(backbone: Mapping) -> dict:
    """The config of a backbone without its checkpoints, which are not needed for its shapes."""
    backbone = {**backbone, 'init_cfg': None}
    if 'pretrained' in (backbone.get('patch_embed') or {}):
        backbone['patch_embed'] = {**backbone['patch_embed'], 'pretrained': False}
    if isinstance(backbone.get('backbone'), Mapping):  # an adapter wraps the backbone
        backbone['backbone'] = _without_checkpoints(backbone['backbone'])
    return backbone


def iter_components(parent: Mapping, name: str, place: str = 'model') -> Iterator[tuple[str, Any]]:
    """The place and the config of a component, or of each component in a list."""
    value = parent.get(name)
    if isinstance(value, Mapping):
        yield f'{place}.{name}', value
    elif isinstance(value, (list, tuple)):
        for i, component in enumerate(value):
            if isinstance(component, Mapping):
                yield f'{place}.{name}.{i}', component


def _set_prefix_tokens(neck: Any, backbone: BaseModule) -> None:
    """Set the neck's number of tokens before the patches, or check it. Also check its mode."""
    number = backbone.num_prefix_tokens
    if neck.get('num_prefix_tokens') is None:
        neck['num_prefix_tokens'] = number
    if neck['num_prefix_tokens'] != number:
        raise ConfigError(
            f'model.neck.num_prefix_tokens={neck["num_prefix_tokens"]} does not fit the backbone, '
            f'which adds {number} tokens before the patches: leave it out.'
        )
    mode = neck.get('mode')
    if mode in CLASS_TOKEN_MODES and 'cls_token' not in backbone.prefix_tokens:
        raise ConfigError(
            f'model.neck.mode={mode!r} takes the class token, but the backbone has none: set '
            "with_cls_token=True there, or mode='avg'."
        )


def _compare(field: str, component: Mapping, outputs: MetaOutputs) -> None:
    """Compare what the config of a component states about its input with the actual input."""
    indices = None
    for name in WIDTH_ARGUMENTS:
        if name in component:
            indices = _compare_width(field, name, component, outputs)
    if outputs.strides:
        _compare_strides(field, component, outputs, indices)


def _compare_width(
    field: str, name: str, component: Mapping, outputs: MetaOutputs
) -> list[int] | None:
    """Compare a width with the actual channels.

    If it is a list, for several outputs, return the indices of these outputs.
    """
    stated, is_list = component[name], isinstance(component[name], Sequence)
    source, channels = outputs.source, outputs.channels
    if not channels:
        raise ConfigError(
            f'{field}.{name}={stated} takes features, but the backbone returns classes and masks: '
            'take an EoMTHead or EoMTDecodeHead.'
        )
    index = component.get('in_index')
    if index is None:
        index = range(len(channels)) if is_list else -1
    # A TransUNetHead takes a number next to a list.
    indices = list(index) if isinstance(index, Sequence) else [index]
    if any(not -len(channels) <= i < len(channels) for i in indices):
        raise ConfigError(
            f'{field}.in_index={component["in_index"]} needs more maps than the {source} '
            f'returns, which are {len(channels)}: change it, or {OUTPUT_COUNT_ARGUMENT[source]} of '
            f'the {source}.'
        )
    actual = [channels[i] for i in indices]
    if actual != (list(stated) if is_list else [stated]):
        raise ConfigError(
            f'{field}.{name}={stated} does not fit the {source}, whose outputs are '
            f'{", ".join(map(str, channels))} wide: set it to '
            f'{actual if is_list or len(actual) > 1 else actual[0]}.'
        )
    return indices if is_list else None


def _compare_strides(
    field: str, component: Mapping, outputs: MetaOutputs, indices: Sequence[int] | None = None
) -> None:
    """Compare the strides in a component and its children with those of the feature maps.

    An anchor generator lists the stride of every map, and a head with several ``in_channels`` those
    of the maps that it takes (``indices``). An RoI extractor takes some of the maps: each of its
    strides must be that of a map.
    """
    strides = outputs.strides
    for name, value in component.items():
        stated, expected = _numbers(value), None
        if name == 'encoder_stride':
            expected = strides[-1:]
        elif name == 'strides' and indices is not None:
            expected = [strides[i] for i in indices]
        elif name == 'strides' and field.endswith('_generator'):
            expected = strides
        elif name == 'featmap_strides':
            expected = [min(strides, key=lambda stride: abs(stride - wanted)) for wanted in stated]
        if stated and expected is not None and not _strides_match(stated, expected):
            raise ConfigError(
                f'{field}.{name}={value} does not fit the {outputs.source}, whose maps have the '
                f'strides {", ".join(map(str, strides))}: set it to '
                f'{expected if isinstance(value, Sequence) else expected[0]}.'
            )
        for place, inner in iter_components(component, name, field):
            _compare_strides(place, inner, outputs)


def _numbers(value: Any) -> list[float]:
    """The strides in a number, a list of numbers or a list of pairs (x, y). [] for other values."""
    values = value if isinstance(value, (list, tuple)) else [value]
    firsts = [value[0] if isinstance(value, (list, tuple)) and value else value for value in values]
    return firsts if all(isinstance(first, (int, float)) for first in firsts) else []


def _strides_match(stated: Sequence[float], actual: Sequence[float]) -> bool:
    """True if both lists have one length, and equal strides up to :data:`MAX_COMPARED_STRIDE`."""
    return len(stated) == len(actual) and all(
        first == second or min(first, second) > MAX_COMPARED_STRIDE
        for first, second in zip(stated, actual, strict=True)
    )
