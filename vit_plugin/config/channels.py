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

POOLING = 'vit_plugin.TokenPooling'
TAKES_MAPS = ('GlobalAveragePooling', 'GeneralizedMeanPooling')  # MMPretrain's necks after a CNN
WIDTHS = ('in_channels', 'embed_dim')  # names of an input width; the second is MAE's
COARSEST_SIDE = 128  # side of the coarsest map, so that necks can halve it without a remainder
COARSEST = 64  # larger strides depend on the size of the image, since small maps are rounded
OUTPUT_COUNT_ARGUMENT = {
    'backbone': 'out_indices',
    'neck': 'num_outs',
}  # arguments that decide the number of outputs


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
        return [x.shape[2 if x.ndim == 3 else 1] for x in self.features]

    @property
    def strides(self) -> list[float]:
        """Pixels per element, or nothing if the outputs are not maps."""
        if any(x.ndim != 4 for x in self.features):
            return []
        strides = [self.pixels / x.shape[3] for x in self.features]
        return [int(stride) if stride.is_integer() else stride for stride in strides]

    @classmethod
    def of(cls, backbone: Any) -> 'MetaOutputs':
        """The outputs of a backbone, from the channels and strides that it states."""
        kind, features = getattr(backbone, 'out_type', 'featmap'), []
        pixels = COARSEST_SIDE * math.lcm(*backbone.strides)
        for channels, stride in zip(backbone.channels, backbone.strides, strict=False):
            side = pixels // stride
            shape: tuple[int, ...] = (1, channels)
            if kind in MAP_OUT_TYPES:
                shape = (1, channels, side, side)
            elif kind == 'raw':
                shape = (1, backbone.num_prefix_tokens + side, channels)
            features.append(torch.empty(shape, device='meta'))
        return cls('backbone', tuple(features), pixels)

    def through(self, neck: Mapping) -> 'MetaOutputs | None':
        """The outputs of a neck, or None if it takes more than features."""
        try:
            with torch.device('meta'), torch.no_grad():
                outputs = MODELS.build(dict(neck)).eval()(self.features)
        except ConfigError:
            raise
        except Exception:  # noqa: BLE001  of any framework's neck
            return None
        outputs = (outputs,) if isinstance(outputs, Tensor) else tuple(outputs)
        known = all(isinstance(x, Tensor) and x.ndim > 1 for x in outputs)
        return MetaOutputs('neck', outputs, self.pixels) if known else None


def check_channels(model: Mapping) -> None:
    """Compare the channels and strides in a model's config with those of the actual features.

    Our backbones are built on the meta device, without memory, and state their channels and
    strides. A neck is built in the same way, and heads are compared with its outputs. Also sets the
    number of tokens before the patches in a ``TokenPooling``.

    Raises:
        ConfigError: if a width, a stride or the number of maps differs, or if there are no maps.
    """
    backbone = model.get('backbone') or {}
    if not str(backbone.get('type')).startswith('vit_plugin.'):
        return
    with torch.device('meta'):
        built = MODELS.build(_without_checkpoints(backbone))
    if not isinstance(built, HasStrides):
        return
    outputs = MetaOutputs.of(built)
    for field, neck in iter_components(model, 'neck'):
        if neck.get('type') == POOLING and getattr(built, 'out_type', None) == 'raw':
            _settle_prefix_tokens(neck, built)
        if str(neck.get('type')).rpartition('.')[2] in TAKES_MAPS and not outputs.strides:
            raise ConfigError(
                f'{field}: {neck["type"]} takes maps, and the {outputs.source} returns none; set '
                f'{field}=None, or out_type of the backbone to {MAP_OUT_TYPES[0]!r}.'
            )
        _compare(field, neck, outputs)
        made = outputs.through(neck)
        if made is None:
            return
        outputs = made
    for name in model:
        for field, head in iter_components(model, name) if name.endswith('head') else ():
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
    """A component of a config, or each of several, with its place."""
    value = parent.get(name)
    if isinstance(value, Mapping):
        yield f'{place}.{name}', value
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            if isinstance(part, Mapping):
                yield f'{place}.{name}.{i}', part


def _settle_prefix_tokens(neck: Any, backbone: BaseModule) -> None:
    """Set the neck's number of tokens before the patches, or check it if it is given."""
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


def _compare(field: str, part: Mapping, outputs: MetaOutputs) -> None:
    """Compare what the config of a component states about its input with the actual input."""
    taken = None
    for name in WIDTHS:
        if name in part:
            taken = _compare_width(field, name, part, outputs)
    if outputs.strides:
        _compare_strides(field, part, outputs, taken)


def _compare_width(field: str, name: str, part: Mapping, outputs: MetaOutputs) -> list[int] | None:
    """Compare a width. If there is one for each output, return the outputs that are used."""
    asked, several = part[name], isinstance(part[name], Sequence)
    source, channels = outputs.source, outputs.channels
    if not channels:
        raise ConfigError(
            f'{field}.{name}={asked} takes features, but the backbone returns classes and masks: '
            'take an EoMTHead or EoMTDecodeHead.'
        )
    taken = part.get('in_index', range(len(channels)) if several else -1)
    taken = list(taken) if several else [taken]
    if any(not -len(channels) <= i < len(channels) for i in taken):
        raise ConfigError(
            f'{field}.in_index={part["in_index"]} needs more maps than the {source} returns, which '
            f'are {len(channels)}: change it, or {OUTPUT_COUNT_ARGUMENT[source]} of the {source}.'
        )
    given = [channels[i] for i in taken]
    if given != (list(asked) if several else [asked]):
        raise ConfigError(
            f'{field}.{name}={asked} does not fit the {source}, whose outputs are '
            f'{", ".join(map(str, channels))} wide: set it to {given if several else given[0]}.'
        )
    return taken if several else None


def _compare_strides(
    field: str, part: Mapping, outputs: MetaOutputs, taken: Sequence[int] | None = None
) -> None:
    """Compare the strides in a component and its children with those of the feature maps.

    An anchor generator lists the stride of every map, and a head with several ``in_channels`` those
    of the maps that it takes. An RoI extractor takes some of the maps.
    """
    strides = outputs.strides
    for name, value in part.items():
        stated, wanted = _numbers(value), None
        if name == 'encoder_stride':
            wanted = strides[-1:]
        elif name == 'strides' and taken is not None:
            wanted = [strides[i] for i in taken]
        elif name == 'strides' and field.endswith('_generator'):
            wanted = strides
        elif name == 'featmap_strides':
            wanted = [
                min(strides, key=lambda stride: abs(stride - of_layer)) for of_layer in stated
            ]
        if stated and wanted is not None and not _alike(stated, wanted):
            raise ConfigError(
                f'{field}.{name}={value} does not fit the {outputs.source}, whose maps have the '
                f'strides {", ".join(map(str, strides))}: set it to '
                f'{wanted if isinstance(value, Sequence) else wanted[0]}.'
            )
        for place, inner in iter_components(part, name, field):
            _compare_strides(place, inner, outputs)


def _numbers(value: Any) -> list[float]:
    """The strides in a number, a list of numbers or a list of pairs (x, y); [] for other values."""
    values = value if isinstance(value, (list, tuple)) else [value]
    firsts = [value[0] if isinstance(value, (list, tuple)) and value else value for value in values]
    return firsts if all(isinstance(first, (int, float)) for first in firsts) else []


def _alike(stated: Sequence[float], strides: Sequence[float]) -> bool:
    """True if both lists are of one length and equal up to :data:`COARSEST`."""
    return len(stated) == len(strides) and all(
        one == other or min(one, other) > COARSEST
        for one, other in zip(stated, strides, strict=True)
    )
