"""Convert a model that timm built to the arguments of our backbone."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import timm
from timm.models.beit import Beit
from timm.models.deit import VisionTransformerDistilled
from torch import nn

from vit_plugin.errors import ConfigError

from .blocks import convert_encoder
from .names import find
from .norms import convert_norm, differences
from .pooling import convert_pooling
from .positions import convert_positions
from .stems import stem_of

# timm's pooling -> the output of our backbone that it pools.
OUT_TYPE_OF_POOLING = {'token': 'cls_token', 'avg': 'avg_featmap'}


def describe(name: str, **options: Any) -> dict[str, Any]:
    """The arguments of :class:`~vit_plugin.arch.Arch` for a timm model.

    Args:
        name: the name, with or without the tag of its weights.
        options: arguments of timm's model.

    Raises:
        ConfigError: if timm has no such model, or if our backbone cannot compute the same.
    """
    with _found(name, options) as model:
        sizes, encoder, numerics = convert_encoder(model)
        before, registers = _before_blocks(model)
        for part in (before, model.norm):
            if not isinstance(part, nn.Identity) and convert_norm(part) != numerics['norm_cfg']:
                raise ValueError('it has norms of several kinds')
        encoder |= {
            key: value
            for key, value in (
                ('reg_token', _count(registers)),
                (
                    'dist_token',
                    _count(
                        model.dist_token if isinstance(model, VisionTransformerDistilled) else None
                    ),
                ),
                ('pre_norm', not isinstance(before, nn.Identity)),
                ('final_norm', not isinstance(model.norm, nn.Identity)),
            )
            if value != (key == 'final_norm')
        }
        arguments = dict(
            img_size=_size(model.patch_embed.img_size),
            pos_embed=convert_positions(model),
            with_cls_token=model.cls_token is not None,
            encoder=encoder,
            numerics=differences(numerics),
            out_type=OUT_TYPE_OF_POOLING.get(model.global_pool, 'raw'),
        )
        return dict(sizes, patch_embed=stem_of(model, name), arguments=arguments)


def pooled(name: str, **options: Any) -> tuple[str, dict[str, Any]] | None:
    """Token pooling of a timm model, see :func:`~vit_plugin.zoo.pooling.convert_pooling`.

    Raises:
        ConfigError: see :func:`describe`.
    """
    with _found(name, options) as model:
        return convert_pooling(model)


@contextmanager
def _found(name: str, options: Mapping[str, Any]) -> Iterator[nn.Module]:
    """Within this context, timm's model of this name.

    A ``ValueError`` or a missing attribute rejects it.

    Raises:
        ConfigError: with the reason.
    """
    model = find(name, **options)
    try:
        yield model
    except (AttributeError, ValueError) as error:
        reason = (
            f'{error} in timm {timm.__version__}'
            if isinstance(error, AttributeError)
            else str(error)
        )
        raise ConfigError(
            f'arch=timm://{name} cannot be computed exactly by vit_plugin.VisionTransformer: '
            f"{reason}; take type='vit_plugin.TimmBackbone' with model_name={name!r}. vit-plugin "
            'zoo lists the models that VisionTransformer computes.'
        ) from error


def _before_blocks(model: nn.Module) -> tuple[nn.Module, nn.Parameter | None]:
    """The norm before the blocks, and the registers. timm's class Beit has neither."""
    return (nn.Identity(), None) if isinstance(model, Beit) else (model.norm_pre, model.reg_token)


def _count(tokens: nn.Parameter | None) -> int:
    return 0 if tokens is None else tokens.shape[1]


def _size(size: tuple[int, int]) -> int | tuple[int, int]:
    height, width = size
    return height if height == width else (height, width)
