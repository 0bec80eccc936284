"""The channels of a backbone and of what takes its outputs."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmengine.model import BaseModule
from mmengine.registry import MODELS

from vit_plugin.errors import ConfigError
from vit_plugin.models.protocol import TellsChannels

POOLING = 'vit_plugin.TokenPooling'


def check_channels(model: Mapping) -> None:
    """Compare the channels of the neck or head with our backbone's, without allocating it.

    A backbone of ours that has channels is compared, whatever its class. Also sets the number of
    tokens before the patches in a ``TokenPooling``.

    Raises:
        ConfigError: if the channels differ.
    """
    backbone = model.get('backbone') or {}
    if not str(backbone.get('type')).startswith('vit_plugin.'):
        return
    with torch.device('meta'):
        built = MODELS.build(_untrained(backbone))
    if not isinstance(built, TellsChannels):
        return
    channels = built.channels
    for name in ('neck', 'head', 'decode_head'):
        part = model.get(name) or {}
        part = part if isinstance(part, Mapping) else part[0]  # the first of several necks or heads
        if 'in_channels' in part:
            _compare(f'model.{name}', part, channels)
        if part.get('type') == POOLING and getattr(built, 'out_type', None) == 'raw':
            _settle_prefix_tokens(part, built)
        elif name == 'neck' and part.get('type') not in (None, POOLING):
            return  # its outputs are not checked here


def _untrained(backbone: Mapping) -> dict:
    """The config of a backbone without its checkpoints, which are not needed for its shapes."""
    backbone = {**backbone, 'init_cfg': None}
    if 'pretrained' in (backbone.get('patch_embed') or {}):
        backbone['patch_embed'] = {**backbone['patch_embed'], 'pretrained': False}
    if isinstance(backbone.get('backbone'), Mapping):  # of an adapter
        backbone['backbone'] = _untrained(backbone['backbone'])
    return backbone


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
    if neck.get('mode') == 'cls' and 'cls_token' not in backbone.prefix_tokens:
        raise ConfigError(
            "model.neck.mode='cls' takes the class token, and the backbone has none: set "
            "with_cls_token=True there, or mode='avg'."
        )


def _compare(field: str, part: Mapping, channels: Sequence[int]) -> None:
    asked, several = part['in_channels'], isinstance(part['in_channels'], Sequence)
    taken = part.get('in_index', range(len(channels)) if several else -1)
    taken = list(taken) if several else [taken]
    if any(not -len(channels) <= i < len(channels) for i in taken):
        raise ConfigError(
            f'{field}.in_index={part["in_index"]} needs more maps than the backbone returns, '
            f'which are {len(channels)}: change it, or out_indices of the backbone.'
        )
    given = [channels[i] for i in taken]
    if given != (list(asked) if several else [asked]):
        raise ConfigError(
            f'{field}.in_channels={asked} does not fit the backbone, whose outputs are '
            f'{", ".join(map(str, channels))} wide: set it to {given if several else given[0]}.'
        )
