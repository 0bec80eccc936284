"""Turn kernels, position tables and twin convolutions into plain parameters for an export.

A graph that is traced meanwhile does not compute them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from vit_plugin.models.backbones.vit import VisionTransformer
from vit_plugin.models.layers.attention import Attention
from vit_plugin.models.layers.block_cfg import Grid
from vit_plugin.models.layers.pos_embed import NoPosEmbed
from vit_plugin.models.layers.position_bias import BiasAttention, PositionBias
from vit_plugin.models.layers.relative_position import RelativeAttention
from vit_plugin.models.layers.std_conv import StdConv2d
from vit_plugin.models.layers.window import InWindows


class Precomputed(NamedTuple):
    """A tensor that a method computes from a parameter in every forward.

    Attributes:
        owner, name: the module with the parameter, and the name of the parameter.
        module, method: the module with the method, and the name of the method.
        args: the other arguments of the method.
    """

    owner: nn.Module
    name: str
    module: nn.Module
    method: str
    args: tuple[Any, ...] = ()


@contextmanager
def precomputed(model: nn.Module, image_size: tuple[int, int] | None = None) -> Iterator[None]:
    """In this context, parameters hold precomputed results, and the methods return them.

    A graph that is traced here does not compute them. Afterward the model is restored.

    Args:
        model: the model, or any module that contains it.
        image_size: height and width of the images. None means any size. Every forward then computes
            position tables.
    """
    tensors = [
        one
        for backbone in model.modules()
        if isinstance(backbone, VisionTransformer)
        for one in _find_tensors(backbone, image_size)
    ]
    before = [getattr(tensor.owner, tensor.name) for tensor in tensors]
    twins = [*_find_twins(model)]
    try:
        for owner, name, twin in twins:
            setattr(owner, name, twin.single())
        for one, parameter in zip(tensors, before, strict=True):
            with torch.no_grad():
                result = getattr(one.module, one.method)(parameter, *one.args)
            setattr(one.owner, one.name, nn.Parameter(result, requires_grad=False))
        for tensor in tensors:
            setattr(tensor.module, tensor.method, _as_it_is)
        yield
    finally:
        for owner, name, twin in twins:
            setattr(owner, name, twin)
        for one, parameter in zip(tensors, before, strict=True):
            if parameter is None:
                delattr(one.owner, one.name)  # removes the parameter with this name
            setattr(one.owner, one.name, parameter)
            vars(one.module).pop(one.method, None)


def _find_twins(model: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    """Modules with a method ``single``, which returns a replacement for eval mode."""
    for owner in model.modules():
        for name, module in owner.named_children():
            if hasattr(module, 'single') and not module.training:
                yield owner, name, module


def _as_it_is(parameter: Tensor, *_: Any) -> Tensor:
    return parameter


def _find_tensors(
    backbone: VisionTransformer, image_size: tuple[int, int] | None
) -> Iterator[Precomputed]:
    grid = backbone.patch_embed.grid(image_size) if image_size else None
    if grid and not isinstance(backbone.position, NoPosEmbed):
        yield Precomputed(backbone, 'pos_embed', backbone.position, 'table', (grid,))
    if grid and backbone.rel_pos_bias is not None:
        yield _precompute_bias(backbone.rel_pos_bias, grid)
    for module in backbone.modules():
        if isinstance(module, StdConv2d):
            yield Precomputed(module, 'weight', module, 'kernel')
        if isinstance(module, RelativeAttention) and (sizes := _table_sizes(module, grid)):
            yield Precomputed(module, 'rel_pos_h', module, 'row_pairs', sizes[:1])
            yield Precomputed(module, 'rel_pos_w', module, 'column_pairs', sizes[1:])
        bias = module.rel_pos_bias if isinstance(module, BiasAttention) else None
        if bias is not None and (sizes := _table_sizes(module, grid)):
            yield _precompute_bias(bias, sizes)


def _precompute_bias(module: PositionBias, grid: Grid) -> Precomputed:
    return Precomputed(module, 'relative_position_bias_table', module, 'bias', (grid,))


def _table_sizes(attention: Attention, grid: Grid | None) -> Grid | None:
    """The number of rows and columns of the grid in attention. None if it is not fixed."""
    if not isinstance(attention, InWindows):
        return grid
    return attention.window.within(grid or (0, 0)) if grid or attention.window.size else None
