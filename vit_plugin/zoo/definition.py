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
from .names import build_on_meta
from .norms import convert_norm, differences
from .pooling import convert_pooling
from .positions import convert_positions
from .stems import convert_stem

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
    with _model_to_convert(name, options) as model:
        sizes, encoder, numerics = convert_encoder(model)
        norm_pre, registers = _before_blocks(model)
        for norm in (norm_pre, model.norm):
            if not isinstance(norm, nn.Identity) and convert_norm(norm) != numerics['norm_cfg']:
                raise ValueError('it has norms of several kinds')
        # Options are only set if they differ from their defaults.
        if registers is not None:
            encoder['reg_token'] = registers.shape[1]
        if isinstance(model, VisionTransformerDistilled):
            encoder['dist_token'] = model.dist_token.shape[1]
        if not isinstance(norm_pre, nn.Identity):
            encoder['pre_norm'] = True
        if isinstance(model.norm, nn.Identity):
            encoder['final_norm'] = False
        arguments = dict(
            img_size=_native_size(model.patch_embed.img_size),
            pos_embed=convert_positions(model),
            with_cls_token=model.cls_token is not None,
            encoder=encoder,
            numerics=differences(numerics),
            out_type=OUT_TYPE_OF_POOLING.get(model.global_pool, 'raw'),
        )
        return dict(sizes, patch_embed=convert_stem(model, name), arguments=arguments)


def pooling_of(name: str, **options: Any) -> tuple[str, dict[str, Any]] | None:
    """Token pooling of a timm model, see :func:`~vit_plugin.zoo.pooling.convert_pooling`.

    Raises:
        ConfigError: see :func:`describe`.
    """
    with _model_to_convert(name, options) as model:
        return convert_pooling(model)


@contextmanager
def _model_to_convert(name: str, options: Mapping[str, Any]) -> Iterator[nn.Module]:
    """Within this context, convert timm's model of this name, which is yielded.

    A ``ValueError`` in the context means that our backbone cannot compute it. An
    ``AttributeError`` means that timm has renamed what we read.

    Raises:
        ConfigError: for such an error, with the reason.
    """
    model = build_on_meta(name, **options)
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


def _native_size(size: tuple[int, int]) -> int | tuple[int, int]:
    """The side of a square, or height and width."""
    height, width = size
    return height if height == width else (height, width)
