"""Fit a checkpoint's tensors to a model, also of other resolution, patch size or channel count."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.lazy import LazyArrays
from vit_plugin.weights.recognition import Recognized
from vit_plugin.weights.report import some
from vit_plugin.weights.rules import GRID

from ..layers.attention_pool import AttentionPool
from ..layers.patch_resize import resize_patches
from ..layers.pos_embed import LearnedPosEmbed
from ..layers.relative_position import resample_relative
from ..stems import PatchEmbed, ResNetEmbed
from .evidence import check_heads, check_tables, note_numerics
from .plan import Plan


def adapt_channels(kernel: Tensor, channels: int) -> Tensor:
    """Adapt a first convolution (D, C, h, w) to another number of channels.

    The channels are repeated in order and scaled to keep the size of the output, as timm does. For
    one channel they are summed. A grey image then has the same output as before.
    """
    old = kernel.shape[1]
    if channels == 1:
        return kernel.sum(dim=1, keepdim=True)
    return kernel[:, torch.arange(channels) % old] * (old / channels)


class Fitted(Mapping[str, Tensor]):
    """Weights of a checkpoint for one model, by our names. Each is made on access, and only then.

    Args:
        backbone: the model's backbone. Weights are adapted to its grid, patches and channels.
        targets: the weights to load, by our names.
        weights: the checkpoint's.
        skip, source_grid: see :func:`~vit_plugin.models.load_weights`.
        complete: see :class:`~vit_plugin.models.loading.plan.Plan`.
        pool: the attention pooling after the backbone, if it is known.
        numerics: those of the model that the weights are of, if its name is known.

    Attributes:
        plan: what becomes of every key.
        report: on every key.

    Raises:
        ConfigError: see :func:`~vit_plugin.models.load_weights`. All is checked before any tensor
            is returned.
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
        shapes = without_values(weights)
        check_heads(backbone, shapes, self.report.matched, pool)
        self._check_shapes(Adapter(backbone, shapes, grid))
        note_numerics(backbone, shapes, self.report, numerics)

    def __getitem__(self, ours: str) -> Tensor:
        if ours not in self.report.matched:
            raise KeyError(ours)
        return self.adapt(ours, self.targets[ours].shape)[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.report.matched)

    def __len__(self) -> int:
        return len(self.report.matched)

    def _check_shapes(self, adapt: 'Adapter') -> None:
        for ours in self:
            target = self.targets[ours]
            value, how = adapt(ours, target.shape)
            kinds = (
                'floating-point' if tensor.is_floating_point() else 'integer'
                for tensor in (target, value)
            )
            for what, wanted, given in (
                ('shape', tuple(target.shape), tuple(value.shape)),
                ('kind of values', *kinds),
            ):
                if wanted != given:
                    raise ConfigError(
                        f'{ours} has the {what} {wanted} in the model and {given} in the '
                        f'checkpoint ({some(self.weights.steps[ours].theirs)}); build the model '
                        'that the checkpoint is of, or leave it at its initialisation with '
                        'skip=(...).'
                    )
            if how:
                self.report.adapted[ours] = how


def without_values(weights: Recognized) -> Recognized:
    """The same weights on the meta device, to learn shapes and types without making tensors."""

    @cache
    def read(key: str) -> Tensor:
        value = weights.theirs[key]
        return torch.empty(value.shape, dtype=value.dtype, device='meta')

    return replace(weights, theirs=LazyArrays([*weights.theirs], read))


class Adapter:
    """Adapts tensors of a checkpoint to one model.

    Args:
        backbone: the model's backbone.
        weights: the checkpoint's. If their names are ours, the position table may have the model's
            own grid. Other tables are square unless ``grid`` is given.
        grid: grid (h, w) of the position table, if the checkpoint or the user states it.
    """

    def __init__(
        self, backbone: nn.Module, weights: Recognized, grid: tuple[int, int] | None = None
    ) -> None:
        self.backbone, self.weights = backbone, weights
        self.learned = isinstance(backbone.position, LearnedPosEmbed)
        self.grid = grid

    def __call__(self, ours: str, shape: torch.Size) -> tuple[Tensor, str]:
        """Make our tensor, adapted to a shape as far as possible, and say what has changed."""
        value = self.weights[ours]
        if value.ndim != len(shape) or not value.numel():
            return value, ''
        if ours == 'pos_embed' and self.learned:
            return self._positions(value)
        if ours in ('cls_token', 'dist_token') and value.shape == shape:
            return self._with_position(ours, value)
        if value.shape == shape:
            return value, ''
        if ours in ('patch_embed.proj.weight', 'patch_embed.backbone.stem.conv.weight'):
            return self._kernel(ours, value, shape)
        if ours.endswith(('.rel_pos_h', '.rel_pos_w')) and value.shape[1:] == shape[1:]:
            return resample_relative(
                value, shape[0]
            ), f'{len(value)} relative positions to {shape[0]}'
        return value, ''

    def _kernel(self, ours: str, value: Tensor, shape: torch.Size) -> tuple[Tensor, str]:
        changes = []
        stem = self.backbone.patch_embed
        root = isinstance(stem, ResNetEmbed) and ours.endswith('stem.conv.weight')
        if root and value.shape[1] != shape[1] == 1:
            raise ConfigError(
                f'{ours}: summing its {value.shape[1]} input channels is not exact, since the '
                f'kernel is standardised afterwards; keep in_channels={value.shape[1]}, and the '
                'stem repeats a grey image itself.'
            )
        if value.shape[1] != shape[1] and (root or isinstance(stem, PatchEmbed)):
            changes.append(f'{value.shape[1]} input channels to {shape[1]}')
            value = adapt_channels(value, shape[1])
        if value.shape[2:] != shape[2:] and ours == 'patch_embed.proj.weight':
            changes.append(f'patches of {_by(value.shape[2:])} to {_by(shape[2:])}')
            value = resize_patches(value, (shape[2], shape[3]))
        return value, ', '.join(changes)

    def _positions(self, value: Tensor) -> tuple[Tensor, str]:
        """Adapt a table to the model's grid and to its rows for the tokens before the patches."""
        position = self.backbone.position
        rows, old = self._layout(value)
        extra, patches = value[:, :rows], value[:, rows:]
        changes = (
            []
            if old == position.grid
            else [f'positions of {_by(old)} patches to {_by(position.grid)}']
        )
        patches = position.resample(patches, old, position.grid)
        if rows > position.num_prefix_rows:
            changes.append(
                'the rows of the tokens before the patches are '
                + (
                    'added to the tokens'
                    if self.backbone.prefix_tokens
                    else 'left out, as the model has no such tokens'
                )
            )
            extra = extra[:, :0]
        elif rows < position.num_prefix_rows:
            changes.append('zeros for the tokens before the patches that have no row')
            extra = F.pad(extra, (0, 0, 0, position.num_prefix_rows - rows))
        return torch.cat((extra, patches), dim=1), ', '.join(changes)

    def _with_position(self, ours: str, value: Tensor) -> tuple[Tensor, str]:
        """A token, plus its row of the table if the model's table has no such row."""
        position = self.backbone.position
        if position.num_prefix_rows or 'pos_embed' not in self.weights or not self.learned:
            return value, ''
        table = self.weights['pos_embed']
        if table.ndim != 3 or table.shape[2] != value.shape[2] or not self._layout(table)[0]:
            return value, ''
        row = 1 if ours == 'dist_token' and 'cls_token' in self.weights else 0
        return value + table[:, row : row + 1], 'its row of the position table added'

    def _layout(self, table: Tensor) -> tuple[int, tuple[int, int]]:
        """The number of rows for tokens before the patches, and the grid of the other rows.

        Raises:
            ConfigError: if no grid fits.
        """
        for extra, grid in self._layouts():
            patches = table.shape[1] - extra
            side = math.isqrt(max(patches, 0))
            h, w = grid or (side, side)
            if patches > 0 and h * w == patches:
                return extra, (h, w)
        if GRID in self.weights:
            raise ConfigError(
                f'pos_embed: the checkpoint has {table.shape[1]} positions, which its own grid of '
                f'{_by(self.grid or ())} does not fit: it is damaged.'
            )
        raise ConfigError(
            f'pos_embed: the checkpoint has {table.shape[1]} positions, which are no square of '
            'patches; give source_grid=(rows, columns) to load_weights, or in pos_embed of the '
            'backbone.'
        )

    def _layouts(self) -> list[tuple[int, tuple[int, int] | None]]:
        """Numbers of prefix rows and grids to try, most likely first. None means a square grid."""
        position = self.backbone.position
        native, rows = position.grid, position.num_prefix_rows
        # A table may have a row for a class token that the checkpoint lacks, as in ViTDet.
        tokens = sum(name in self.weights for name in ('cls_token', 'dist_token')) or 1
        grid = self.grid or (None if self.weights.is_own else position.source_grid)
        if grid is not None:
            return [(rows, grid), (tokens, grid), (0, grid)]
        later = []
        if position.source_grid is not None:  # the grid before our own training
            later = [(count, position.source_grid) for count in (rows, tokens, 0)]
        # A table with as many positions as the model usually has its grid. A foreign one is square
        # if it can be.
        patches = native[0] * native[1]
        ambiguous = (
            not self.weights.is_own
            and native[0] != native[1]
            and math.isqrt(patches) ** 2 == patches
        )
        return [
            *([] if ambiguous else [(rows, native)]),
            *later,
            (tokens, None),
            (tokens, native),
            (0, None),
            (0, native),
        ]


def saved_grid(value: Tensor) -> tuple[int, int]:
    """The grid (h, w) that our own checkpoints contain.

    Raises:
        ConfigError: if it is not a grid.
    """
    if (
        value.shape != (2,)
        or value.is_floating_point()
        or not 0 < min(value.tolist()) <= max(value.tolist()) < 2**20
    ):
        raise ConfigError(f'{GRID} is no grid (rows, columns) in the checkpoint: it is damaged.')
    h, w = value.tolist()
    return h, w


def _by(size: Sequence[int]) -> str:
    return f'{size[0]} x {size[1]}'
