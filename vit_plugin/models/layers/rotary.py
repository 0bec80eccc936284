"""Rotary positions: queries and keys turned by position-dependent angles (arXiv:2104.09864).

Two channels of a head form a plane. In each plane the vector of a patch is turned by an angle, so
that the product of a query and a key depends on the difference of their positions. The tokens
before the patches are not turned.

A ``Rotary`` makes the rotations of a grid, one for each block. A rotation is a tensor ([heads,] N,
d) with the vector (1, 0) of each plane after the turn: the cosine of the angle in the first channel
of the plane, and the sine in the second. :func:`~vit_plugin.models.layers.rotary_attention.rotate`
applies it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import NotNegative, Pair, Positive
from vit_plugin.errors import ConfigError

from .block_cfg import Grid


class RotaryCfg(TypedDict, total=False):
    """Rotary positions.

    Attributes:
        form: ``'index'`` counts rows and columns, and half of the planes turns with either, as in
            EVA-02 and in Perception Encoder. ``'centred'`` does the same with coordinates from -1
            to 1 on any grid, as in DINOv3. ``'mixed'`` counts rows and columns, and every plane
            turns with both, by learned frequencies (arXiv:2403.13298).
        temperature: ratio of the highest and lowest frequency. Default: 100 for ``'centred'``, 10
            for ``'mixed'``, else 10000.
        order: which half of the planes comes first, that of the rows (``'yx'``, the default) or of
            the columns.
        planes: ``'neighbours'`` (default) takes channels 2i and 2i + 1 as a plane, ``'halves'`` i
            and i + d/2.
        offset: added to the coordinates, in patches.
        native_grid: grid (h, w) on which every other grid is spread, as in EVA-02. Default: no
            scaling.
        shift, jitter, rescale: train-time changes of the coordinates, as in DINOv3: a shift of at
            most this size, a factor for each axis and a common factor, both from 1 / value to
            value. Default: none.
    """

    form: Literal['index', 'centred', 'mixed']  # required, but a name of timm may bring it
    temperature: Positive
    order: Literal['yx', 'xy']
    planes: Literal['neighbours', 'halves']
    offset: float
    native_grid: Pair | None
    shift: NotNegative | None
    jitter: Positive | None
    rescale: Positive | None


TEMPERATURES = {'index': 10_000.0, 'centred': 100.0, 'mixed': 10.0}


@dataclass(frozen=True)
class Coordinates:
    """Positions of the patches of a grid. The attributes are those of :class:`RotaryCfg`."""

    form: str
    order: str = 'yx'
    offset: float = 0.0
    native_grid: Grid | None = None
    shift: float | None = None
    jitter: float | None = None
    rescale: float | None = None

    def of(self, grid: Grid, device: torch.device) -> Tensor:
        """The coordinates (h*w, 2) of a grid, in float32."""
        axes = [torch.arange(size, device=device).to(torch.float32) + self.offset for size in grid]
        if self.form == 'centred':
            axes = [(axis + 0.5) / size * 2.0 - 1.0 for axis, size in zip(axes, grid, strict=True)]
        if self.native_grid:
            axes = [
                axis / size * native
                for axis, size, native in zip(axes, grid, self.native_grid, strict=True)
            ]
        y, x = torch.meshgrid(*axes, indexing='ij')
        return torch.stack((y, x) if self.order == 'yx' else (x, y), dim=-1).flatten(0, 1)

    def changed(self, coordinates: Tensor) -> Tensor:
        """The coordinates (N, 2) after random shift, jitter and rescaling (arXiv:2508.10104)."""
        if self.shift is not None:
            coordinates = coordinates + coordinates.new_empty(2).uniform_(-self.shift, self.shift)
        for size, factor in ((2, self.jitter), (1, self.rescale)):
            if factor is not None:
                limit = abs(math.log(factor))
                coordinates = (
                    coordinates * coordinates.new_empty(size).uniform_(-limit, limit).exp()
                )
        return coordinates


class NoRotary(nn.Module):
    """No block turns its queries and keys."""

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.num_layers = num_layers

    def forward(self, grid: Grid, like: Tensor) -> Sequence[None]:
        return [None] * self.num_layers


class Rotary(nn.Module):
    """Makes the rotations of a grid.

    Args:
        coordinates: where the patches are.
        head_dims: channels of a head.
        num_heads: number of heads.
        num_layers: number of blocks.
        num_prefix_tokens: number of tokens before the patches. They are not turned.
        temperature: see :class:`RotaryCfg`.
        interleaved: whether channels 2i and 2i + 1 are a plane, else i and i + d/2.

    Raises:
        ConfigError: if a head has a number of channels that is not a multiple of 4.
    """

    def __init__(
        self,
        coordinates: Coordinates,
        head_dims: int,
        num_heads: int,
        num_layers: int,
        num_prefix_tokens: int,
        temperature: float,
        interleaved: bool = True,
    ) -> None:
        super().__init__()
        if head_dims % 4:
            raise ConfigError(
                'pos_embed: rotary needs heads of a multiple of 4 channels, and they have '
                f'{head_dims}; change embed_dims or num_heads in arch.'
            )
        self.coordinates, self.num_prefix_tokens, self.temperature = (
            coordinates,
            num_prefix_tokens,
            temperature,
        )
        self.plane_axis = -1 if interleaved else -2  # of (d/2, 2) or (2, d/2)
        self.head_dims, self.num_heads, self.num_layers = head_dims, num_heads, num_layers

    def forward(self, grid: Grid, like: Tensor) -> Sequence[Tensor]:
        """Rotations of the tokens of a grid (h, w), one per block, on the device of ``like``."""
        raise NotImplementedError

    def current_coordinates(self, grid: Grid, device: torch.device) -> Tensor:
        """The coordinates (h*w, 2), changed at random while training if that is configured."""
        coordinates = self.coordinates.of(grid, device)
        return self.coordinates.changed(coordinates) if self.training else coordinates

    def rotation(self, angles: Tensor) -> Tensor:
        """Patch angles ([heads,] h*w, d/2) -> all tokens' rotation ([heads,] prefix + h*w, d)."""
        parts = [
            F.pad(part, (0, 0, self.num_prefix_tokens, 0), value=still)
            for part, still in ((angles.cos(), 1.0), (angles.sin(), 0.0))
        ]
        return torch.stack(parts, dim=self.plane_axis).flatten(-2)


class AxialRotary(Rotary):
    """Half of the planes turns with the row, the other half with the column."""

    def forward(self, grid: Grid, like: Tensor) -> Sequence[Tensor]:
        return [
            self.rotation(self.angles(self.current_coordinates(grid, like.device)))
        ] * self.num_layers

    def angles(self, coordinates: Tensor) -> Tensor:
        """The angles (N, d/2) of coordinates (N, 2)."""
        count = self.head_dims // 4
        exponents = torch.arange(count, device=coordinates.device).to(torch.float32) / count
        # As DINOv3 rounds: the coordinates are divided by periods.
        if self.coordinates.form == 'centred':
            angles = 2 * math.pi * coordinates[..., None] / self.temperature**exponents
        else:
            angles = coordinates[..., None] * (1.0 / self.temperature**exponents)
        return angles.flatten(1)


class MixedRotary(Rotary):
    """Rotary positions with two learned frequencies per plane (arXiv:2403.13298).

    In each plane of each head and block, one frequency is for the row and one for the column.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.freqs = nn.Parameter(
            torch.empty(2, self.num_layers, self.num_heads, self.head_dims // 2)
        )
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise as in naver-ai/rope-vit: axial frequencies, a random angle for each head."""
        count = self.head_dims // 4
        sizes = 1.0 / self.temperature ** (torch.arange(count) / count)  # (d/4,)
        turns = 2 * math.pi * torch.rand(self.num_layers, self.num_heads, 1)
        turns = torch.cat(
            (turns.expand(-1, -1, count), turns.expand(-1, -1, count) + math.pi / 2), dim=-1
        )
        with torch.no_grad():
            self.freqs.copy_(torch.stack((turns.cos(), turns.sin())) * sizes.repeat(2))

    def forward(self, grid: Grid, like: Tensor) -> Sequence[Tensor]:
        # In the order of the coordinates.
        y, x = self.current_coordinates(grid, like.device).unbind(-1)
        freqs = self.freqs.float()[..., None, :]  # (2, layers, heads, 1, d/2)
        return [
            self.rotation(y[:, None] * first + x[:, None] * second)
            for first, second in zip(*freqs, strict=True)
        ]


def build_rotary(cfg: Mapping[str, Any] | None, **sizes: int) -> Rotary | NoRotary:
    """Build the rotary positions of a backbone.

    Args:
        cfg: see :class:`RotaryCfg`. None means that there are none.
        sizes: ``head_dims, num_heads, num_layers, num_prefix_tokens``, see :class:`Rotary`.

    Raises:
        ConfigError: see :class:`Rotary`. Also if there is no ``form``.
    """
    if cfg is None:
        return NoRotary(sizes['num_layers'])
    if 'form' not in cfg:
        raise ConfigError(f'pos_embed: rotary needs form, one of {", ".join(TEMPERATURES)}.')
    given = {field.name: cfg[field.name] for field in fields(Coordinates) if field.name in cfg}
    kind = MixedRotary if cfg['form'] == 'mixed' else AxialRotary
    return kind(
        Coordinates(**given),
        temperature=cfg.get('temperature', TEMPERATURES[cfg['form']]),
        interleaved=cfg.get('planes', 'neighbours') == 'neighbours',
        **sizes,
    )
