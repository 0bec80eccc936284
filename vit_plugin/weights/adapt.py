"""Fitting a checkpoint's tensors to a model of another resolution, patch size or number of channels."""

import math
from collections.abc import Callable, Container, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from vit_plugin.errors import ConfigError


def resize_patches(kernel: Tensor, size: tuple[int, int]) -> Tensor:
    """A patch embedding (D, C, h, w) for patches of another size, by the pseudo-inverse of the images' resize.

    It gives for resized patches the tokens that the old one gives for the patches (FlexiViT, arXiv:2212.08013,
    Section 3.4), exactly where they grow.
    """
    old = tuple(kernel.shape[-2:])
    unit = torch.eye(math.prod(old), dtype=torch.float64).reshape(-1, 1, *old)
    resize = F.interpolate(unit, size, mode='bilinear', align_corners=False, antialias=True).flatten(1)  # (old, new)
    weights = torch.linalg.pinv(resize)  # (new, old)
    return (kernel.double().flatten(2) @ weights.t()).unflatten(2, size).to(kernel.dtype)


def adapt_channels(kernel: Tensor, channels: int) -> Tensor:
    """A first convolution (D, C, h, w) for images of another number of channels.

    The channels are repeated in their order and scaled to keep the size of the output, as timm does; for one
    channel they are summed, so that a grey image gives what it gave.
    """
    old = kernel.shape[1]
    if channels == 1:
        return kernel.sum(dim=1, keepdim=True)
    return kernel[:, torch.arange(channels) % old] * (old / channels)


def resize_relative(table: Tensor, length: int) -> Tensor:
    """A table (2*s - 1, d) of relative positions with another number of rows, as ViTDet does (arXiv:2203.16527)."""
    return F.interpolate(table.t()[None].float(), size=length, mode='linear')[0].t().to(table.dtype)


class Adapter:
    """Fits tensors to one model.

    Args:
        backbone: the model's backbone.
        read: gives another tensor of the checkpoint by our name.
        given: our names of all that the checkpoint has.
        grid: grid (h, w) of its position table, if it is known.
        own: whether it has our names, and so maybe the model's own grid; others are square unless told.
    """

    def __init__(self, backbone: nn.Module, read: Callable[[str], Tensor], given: Container[str],
                 grid: tuple[int, int] | None = None, own: bool = False) -> None:
        self.backbone, self.read, self.given, self.own = backbone, read, given, own
        self.grid = grid or backbone.position.source_grid

    def __call__(self, ours: str, value: Tensor, shape: torch.Size) -> tuple[Tensor, str]:
        """The tensor in that shape if it can be had, else as near as it gets, and in words what was changed."""
        if ours in ('cls_token', 'dist_token'):
            return self._with_position(ours, value)
        if ours == 'pos_embed' and hasattr(self.backbone.position, 'resample'):
            return self._positions(value)
        if value.shape == shape:
            return value, ''
        if ours in ('patch_embed.proj.weight', 'patch_embed.backbone.stem.conv.weight') and value.ndim == 4:
            return self._kernel(ours, value, shape)
        if ours.endswith(('.rel_pos_h', '.rel_pos_w')) and value.shape[1:] == shape[1:]:
            return resize_relative(value, shape[0]), f'{len(value)} relative positions to {shape[0]}'
        return value, ''

    def _kernel(self, ours: str, value: Tensor, shape: torch.Size) -> tuple[Tensor, str]:
        changes = []
        hybrid = bool(self.backbone.patch_embed.feature_channels)
        if value.shape[1] != shape[1] and hybrid == ours.endswith('stem.conv.weight'):
            changes.append(f'{value.shape[1]} input channels to {shape[1]}')
            value = adapt_channels(value, shape[1])
        if value.shape[2:] != shape[2:] and ours == 'patch_embed.proj.weight':
            changes.append(f'patches of {_by(value.shape[2:])} to {_by(shape[2:])}')
            value = resize_patches(value, tuple(shape[2:]))
        return value, ', '.join(changes)

    def _positions(self, value: Tensor) -> tuple[Tensor, str]:
        """A table of another grid, or with or without rows for the extra tokens."""
        position = self.backbone.position
        rows, old = self._layout(value)
        extra, patches = value[:, :rows], value[:, rows:]
        changes = [] if old == position.grid else [f'positions of {_by(old)} patches to {_by(position.grid)}']
        patches = position.resample(patches, old, position.grid)
        if rows > position.num_extra_rows:
            changes.append("the extra tokens' rows are " + (
                'added to the tokens' if self.backbone.extra_tokens else 'left out, as the model has no such tokens'))
            extra = extra[:, :0]
        elif rows < position.num_extra_rows:
            changes.append('zeros for the extra tokens that have no row')
            extra = F.pad(extra, (0, 0, 0, position.num_extra_rows - rows))
        return torch.cat((extra, patches), dim=1), ', '.join(changes)

    def _with_position(self, ours: str, value: Tensor) -> tuple[Tensor, str]:
        """A token, with its row of the table added where the model's table has none."""
        position = self.backbone.position
        if position.num_extra_rows or 'pos_embed' not in self.given or not hasattr(position, 'resample'):
            return value, ''
        table = self.read('pos_embed')
        if not self._layout(table)[0]:
            return value, ''
        row = 1 if ours == 'dist_token' and 'cls_token' in self.given else 0
        return value + table[:, row:row + 1], 'its row of the position table added'

    def _layout(self, table: Tensor) -> tuple[int, tuple[int, int]]:
        """How many rows of the checkpoint's table are of tokens before the patches, and the grid of the others.

        Raises:
            ConfigError: if they fit no grid.
        """
        for extra, grid in self._layouts():
            patches = table.shape[1] - extra
            side = math.isqrt(max(patches, 0))
            h, w = grid or (side, side)
            if patches > 0 and h * w == patches:
                return extra, (h, w)
        raise ConfigError(f'pos_embed: the checkpoint has {table.shape[1]} positions, which are no square of patches; '
                          'give source_grid=(rows, columns) to load_weights, or in pos_embed of the backbone.')

    def _layouts(self) -> list[tuple[int, tuple[int, int] | None]]:
        """Extra rows and grids to try, from the likeliest; None stands for a square."""
        position = self.backbone.position
        native, rows = position.grid, position.num_extra_rows
        # A table may have a row for a class token that the checkpoint has not, as ViTDet's.
        tokens = sum(name in self.given for name in ('cls_token', 'dist_token')) or 1
        if self.grid is not None:
            return [(rows, self.grid), (tokens, self.grid), (0, self.grid)]
        # As many positions as the model has are the model's, but foreign ones that make a square are that.
        patches = native[0] * native[1]
        ambiguous = not self.own and native[0] != native[1] and math.isqrt(patches) ** 2 == patches
        return [*([] if ambiguous else [(rows, native)]), (tokens, None), (tokens, native), (0, None), (0, native)]


def _by(size: Sequence[int]) -> str:
    return f'{size[0]} x {size[1]}'
