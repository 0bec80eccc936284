"""Precompute kernels and position tables, and fuse two-branch convolutions, for an export.

:mod:`.fold` caches the same tensors, but a traced graph would compute them again in each run. So
here they replace the parameters while the graph is traced.
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
    """Within this context, results of methods are precomputed, and two-branch convolutions fused.

    Each parameter is replaced by the result of its method, and the method returns it unchanged.
    A graph that is traced here does not compute them. Afterward the model is restored.

    Args:
        model: the model, or any module that contains it.
        image_size: height and width of the images. None means any size. Tables that depend on it
            are then computed in every forward.
    """
    entries = [
        entry
        for backbone in model.modules()
        if isinstance(backbone, VisionTransformer)
        for entry in _find_entries(backbone, image_size)
    ]
    parameters = [getattr(entry.owner, entry.name) for entry in entries]
    # Methods that :mod:`.fold` has replaced in the instance.
    folded = [vars(entry.module).get(entry.method) for entry in entries]
    twins = [*_find_twins(model)]
    try:
        for owner, name, twin in twins:
            setattr(owner, name, twin.fused_twins())
        for entry, parameter in zip(entries, parameters, strict=True):
            with torch.no_grad():
                result = getattr(entry.module, entry.method)(parameter, *entry.args)
            setattr(entry.owner, entry.name, nn.Parameter(result, requires_grad=False))
        # After all results, since a module may be in several entries.
        for entry in entries:
            setattr(entry.module, entry.method, _return_parameter)
        yield
    finally:
        for owner, name, twin in twins:
            setattr(owner, name, twin)
        for entry, parameter, method in zip(entries, parameters, folded, strict=True):
            # The attribute of fixed sines and cosines was plain None; setattr alone would leave it
            # registered as a parameter.
            if parameter is None:
                delattr(entry.owner, entry.name)
            setattr(entry.owner, entry.name, parameter)
            vars(entry.module).pop(entry.method, None)
            if method is not None:
                setattr(entry.module, entry.method, method)


def _find_twins(model: nn.Module) -> Iterator[tuple[nn.Module, str, Any]]:
    """Two-branch convolutions (RepVGG) in eval mode, as (parent, name, module).

    Their ``fused_twins()`` returns the fused convolution, see :mod:`.twins`.
    """
    for owner in model.modules():
        for name, module in owner.named_children():
            if hasattr(module, 'fused_twins') and not module.training:
                yield owner, name, module


def _return_parameter(parameter: Tensor, *_: Any) -> Tensor:
    return parameter


def _find_entries(
    backbone: VisionTransformer, image_size: tuple[int, int] | None
) -> Iterator[Precomputed]:
    """The tensors of a backbone that are the same for all images of this size, or of any size."""
    grid = backbone.patch_embed.grid(image_size) if image_size else None
    if grid and not isinstance(backbone.position, NoPosEmbed):
        yield Precomputed(backbone, 'pos_embed', backbone.position, 'table', (grid,))
    if grid and backbone.rel_pos_bias is not None:
        yield _bias_entry(backbone.rel_pos_bias, grid)
    for module in backbone.modules():
        if isinstance(module, StdConv2d):
            yield Precomputed(module, 'weight', module, 'kernel')
        if isinstance(module, RelativeAttention) and (sizes := _table_sizes(module, grid)):
            yield Precomputed(module, 'rel_pos_h', module, 'row_pairs', sizes[:1])
            yield Precomputed(module, 'rel_pos_w', module, 'column_pairs', sizes[1:])
        bias = module.rel_pos_bias if isinstance(module, BiasAttention) else None
        if bias is not None and (sizes := _table_sizes(module, grid)):
            yield _bias_entry(bias, sizes)


def _bias_entry(module: PositionBias, grid: Grid) -> Precomputed:
    return Precomputed(module, 'relative_position_bias_table', module, 'bias', (grid,))


def _table_sizes(attention: Attention, grid: Grid | None) -> Grid | None:
    """Rows and columns (h, w) that an attention covers: a window or the grid. None if not fixed."""
    if not isinstance(attention, InWindows):
        return grid
    if grid is None and attention.window.size is None:  # windows that grow with the image
        return None
    return attention.window.within(grid or (0, 0))  # a fixed size does not depend on the grid
