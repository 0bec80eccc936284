"""What fits together in a model: channels of its parts, and classes of its heads."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from mmengine.model import BaseModule
from mmengine.registry import MODELS
from torch import nn

from vit_plugin.arguments import fits
from vit_plugin.errors import ConfigError

BACKBONE, ADAPTER, POOLING = 'vit_plugin.VisionTransformer', 'vit_plugin.ViTAdapter', 'vit_plugin.TokenPooling'
# Parts of a model whose `num_classes` must equal that of the data, in any framework.
HEADS = ('head', 'bbox_head', 'mask_head', 'roi_head.bbox_head', 'roi_head.mask_head', 'decode_head', 'auxiliary_head')


def check_channels(model: Mapping) -> None:
    """Compare the channels of the neck or head with those of our backbone, without allocating the backbone.

    Also sets the number of tokens before the patches in a ``TokenPooling``.

    Raises:
        ConfigError: if the channels differ.
    """
    backbone = model.get('backbone') or {}
    if backbone.get('type') not in (BACKBONE, ADAPTER):
        return
    with torch.device('meta'):
        built = MODELS.build(_untrained(backbone))
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
    """The config of a backbone without its checkpoints. Those are not read for a look at its shapes."""
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
        raise ConfigError(f'model.neck.num_prefix_tokens={neck["num_prefix_tokens"]} does not fit the backbone, which '
                          f'gives {number} tokens before the patches: leave it out.')
    if neck.get('mode') == 'cls' and 'cls_token' not in backbone.prefix_tokens:
        raise ConfigError("model.neck.mode='cls' takes the class token, and the backbone has none: set "
                          "with_cls_token=True there, or mode='avg'.")


def _compare(field: str, part: Mapping, channels: Sequence[int]) -> None:
    asked, several = part['in_channels'], isinstance(part['in_channels'], Sequence)
    taken = part.get('in_index', range(len(channels)) if several else -1)
    taken = list(taken) if several else [taken]
    if any(not -len(channels) <= i < len(channels) for i in taken):
        raise ConfigError(f'{field}.in_index={part["in_index"]} asks for more maps than the backbone gives, which are '
                          f'{len(channels)}: change it, or out_indices of the backbone.')
    given = [channels[i] for i in taken]
    if given != (list(asked) if several else [asked]):
        raise ConfigError(f'{field}.in_channels={asked} does not fit the backbone, whose outputs are '
                          f'{", ".join(map(str, channels))} wide: set it to {given if several else given[0]}.')


def check_head(model: nn.Module) -> None:
    """Raise a ``ConfigError`` for a classifier of MMPretrain without a head, and so without losses and predictions."""
    model = getattr(model, 'module', model)
    if hasattr(type(model), 'with_head') and vars(model).get('head', model) is None:
        raise ConfigError(f'model.head is None, and {type(model).__name__} computes losses and predictions with it; '
                          'give it a head, such as vit_plugin.ViTClsHead.')


def check_classes(model: nn.Module, meta: Mapping[str, Any] | None, whose: str) -> None:
    """Compare the names of classes with the heads of the model.

    Args:
        model: the model.
        meta: facts about a data set, with the names as ``classes``. Without them nothing is compared.
        whose: what has these facts, for the message.

    Raises:
        ConfigError: if the names are no strings, or if a head has another number of classes.
    """
    names = (meta or {}).get('classes')
    if not names:
        return
    if not fits(Sequence[str], names):
        raise ConfigError(f'The classes of {whose} must be a list of names, and are {names!r:.80}.')
    model = getattr(model, 'module', model)  # of several processes, or of test-time augmentation
    modules = dict(model.named_modules())
    for name in HEADS:
        part = modules.get(name)
        for i, head in [(None, part), *enumerate(part if isinstance(part, nn.ModuleList) else ())]:
            asked = getattr(head, 'num_classes', None)
            if isinstance(asked, int) and asked != len(names):
                field = name if i is None else f'{name}.{i}'
                raise ConfigError(
                    f'model.{field}.num_classes={asked} does not fit {whose} with {len(names)} classes: set it to '
                    f'{len(names)}, or give the names of the classes of the model there.')
