"""Adapt a checkpoint's tensors to a model of another resolution, patch size or channels.

Tensors are addressed by our names, those of :class:`~vit_plugin.models.VisionTransformer`.
:class:`~vit_plugin.weights.Recognized` makes them from the checkpoint's own keys, and what is here
changes their shapes: the position table, relative positions, and the first convolution.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.lazy import Lazy
from vit_plugin.weights.reading.size_checks import check_weight_limit
from vit_plugin.weights.recognition import Recognized
from vit_plugin.weights.report import shortened_list
from vit_plugin.weights.rules import GRID

from ..layers.attention_pool import AttentionPool
from ..layers.patch_resize import adapt_channels, resize_patches
from ..layers.position_bias import BIAS_TABLE, count_offsets, resample_bias
from ..layers.relative_position import resample_relative
from ..stems import PatchEmbed, ResNetEmbed
from .consistency import check_heads, check_tables, note_numerics
from .plan import Plan
from .position_table import TOKENS_WITH_ROWS, PositionTable, saved_grid, size_text


class AdaptedWeights(Mapping[str, Tensor]):
    """Weights of a checkpoint for one model, by our names. Each is computed on access.

    Args:
        backbone: the model's backbone. Weights are adapted to its grid, patches and channels.
        targets: the model's tensors to load, by our names.
        weights: the checkpoint's weights.
        skip, source_grid: see :func:`~vit_plugin.models.load_weights`.
        complete: see :class:`~vit_plugin.models.loading.plan.Plan`.
        pool: the attention pooling after the backbone, if known.
        numerics: the numerics of the model that the weights belong to, if its name is known.

    Attributes:
        plan: what happens to every key.
        report: the report on every key.

    Raises:
        ConfigError: see :func:`~vit_plugin.models.load_weights`. Everything is checked before any
            tensor is returned.
    """

    def __init__(
        self,
        backbone: nn.Module,
        targets: Mapping[str, Any],
        weights: Recognized,
        skip: Iterable[str] = (),
        source_grid: tuple[int, int] | None = None,
        complete: bool = True,
        pool: AttentionPool | None = None,
        numerics: Mapping[str, Mapping[str, Any]] = {},
    ) -> None:
        self.targets, self.weights = targets, weights
        self.plan = Plan(backbone, targets, weights, skip, complete)
        self.report = self.plan.report
        grid = saved_grid(weights[GRID]) if GRID in weights else source_grid
        self.adapt = Adapter(backbone, weights, grid)
        check_tables(backbone, weights, self.report.ignored)
        shapes = without_values(weights)  # for checks that read no values from the file
        check_heads(backbone, shapes, self.report.matched, pool)
        self._check_shapes(Adapter(backbone, shapes, grid))
        note_numerics(backbone, shapes, self.report, numerics)

    def __getitem__(self, ours: str) -> Tensor:
        if ours == GRID and GRID in self.targets:  # the table now has the grid of the model
            return self.targets[GRID]
        if ours not in self.report.matched:
            raise KeyError(ours)
        return self.adapt(ours, self.targets[ours].shape)[0]

    def __iter__(self) -> Iterator[str]:
        return chain(self.report.matched, {GRID} & self.targets.keys())  # the plan omits the grid

    def __len__(self) -> int:
        return len([*self])

    def _check_shapes(self, adapt: 'Adapter') -> None:
        """Compare the adapted tensors with the model, and report how they were adapted."""
        for ours in self.report.matched:
            target = self.targets[ours]
            value, change = adapt(ours, target.shape)
            self._compare(ours, 'shape', tuple(target.shape), tuple(value.shape))
            self._compare(ours, 'kind of values', _number_kind(target), _number_kind(value))
            if change:
                self.report.adapted[ours] = change
        if 'pos_embed' in self.report.matched and adapt.table.is_learned:
            note = adapt.table.grid_assumption(adapt.weights['pos_embed'])
            if note:
                self.report.notes.append(note)

    def _compare(self, ours: str, what: str, expected: object, actual: object) -> None:
        """Raise a ``ConfigError`` if a property of the model's tensor differs in the checkpoint."""
        if expected != actual:
            raise ConfigError(
                f'{ours} has the {what} {expected} in the model and {actual} in the checkpoint '
                f'({shortened_list(self.weights.steps[ours].theirs)}); build the model that the '
                'checkpoint is of, or leave it at its initialization with skip=(...).'
            )


def without_values(weights: Recognized) -> Recognized:
    """The same weights on the meta device, to find out shapes and dtypes."""

    @cache
    def read(key: str) -> Tensor:
        value = weights.theirs[key]
        return torch.empty(value.shape, dtype=value.dtype, device='meta')

    return replace(weights, theirs=Lazy([*weights.theirs], read))


class Adapter:
    """Adapts tensors of a checkpoint to one model.

    On :func:`without_values` it only finds out the shapes, which checks a checkpoint before it is
    loaded.

    Args:
        backbone: the model's backbone.
        weights: the checkpoint's weights.
        grid: see :class:`~vit_plugin.models.loading.position_table.PositionTable`.
    """

    def __init__(
        self, backbone: nn.Module, weights: Recognized, grid: tuple[int, int] | None
    ) -> None:
        self.weights, self.stem, self.backbone = weights, backbone.patch_embed, backbone
        self.table = PositionTable(backbone, weights, grid)

    def __call__(self, ours: str, shape: torch.Size) -> tuple[Tensor, str]:
        """A tensor, adapted to a shape if possible, and a description of the changes or ''."""
        value = self.weights[ours]
        if value.ndim != len(shape) or not value.numel():
            return value, ''
        if ours == 'pos_embed' and self.table.is_learned:
            return self.table.fitted(value)
        if value.shape == shape:
            return self.table.with_row(ours, value) if ours in TOKENS_WITH_ROWS else (value, '')
        if ours in ('patch_embed.proj.weight', 'patch_embed.backbone.stem.conv.weight'):
            return self._kernel(ours, value, shape)
        if ours.endswith(('.rel_pos_h', '.rel_pos_w')) and value.shape[1:] == shape[1:]:
            change = f'{len(value)} relative positions to {shape[0]}'
            return resample_relative(value, shape[0]), change
        if ours.endswith(BIAS_TABLE) and value.shape[1:] == shape[1:]:
            return self._bias(ours, value)
        return value, ''

    def _bias(self, ours: str, table: Tensor) -> tuple[Tensor, str]:
        """Resample the bias table of a square grid to the grid of the model."""
        module = self.backbone.get_submodule(ours.rpartition('.')[0])
        side = (math.isqrt(max(len(table) - module.num_token_rows, 0)) + 1) // 2
        if math.prod(count_offsets((side, side))) + module.num_token_rows != len(table):
            return table, ''  # not a square grid, or without rows for prefix tokens
        change = f'relative positions of {side} x {side} patches to {size_text(module.grid)}'
        return resample_bias(table, (side, side), module.grid), change

    def _kernel(self, ours: str, value: Tensor, shape: torch.Size) -> tuple[Tensor, str]:
        """Adapt the kernel of the first convolution to the channels and patches of the model."""
        changes = []
        # The first convolution of a ResNet, whose kernel is standardized.
        is_root = isinstance(self.stem, ResNetEmbed) and ours.endswith('stem.conv.weight')
        if is_root and shape[1] == 1 and value.shape[1] != 1:
            raise ConfigError(
                f'{ours}: summing its {value.shape[1]} input channels is not exact, since the '
                f'kernel is standardized afterward; keep in_channels={value.shape[1]}, and the '
                'stem repeats a gray image itself.'
            )
        if value.shape[1] != shape[1] and (is_root or isinstance(self.stem, PatchEmbed)):
            changes.append(f'{value.shape[1]} input channels to {shape[1]}')
            value = adapt_channels(value, shape[1])
        if value.shape[2:] != shape[2:] and ours == 'patch_embed.proj.weight':
            check_weight_limit(
                'The checkpoint', 'pixels of a patch at a side', max(value.shape[2:])
            )
            changes.append(f'patches of {size_text(value.shape[2:])} to {size_text(shape[2:])}')
            value = resize_patches(value, (shape[2], shape[3]))
        return value, ', '.join(changes)


def _number_kind(tensor: Tensor) -> str:
    return 'floating-point' if tensor.is_floating_point() else 'integer'
