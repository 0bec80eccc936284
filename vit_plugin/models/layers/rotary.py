"""Rotary positions (RoPE, arXiv:2104.09864): rotate queries and keys by position.

Two channels of a head form a plane. In each plane the vector of a patch is rotated by an angle, so
that the product of a query and a key depends on the difference of their positions. The tokens
before the patches are not rotated.

A ``Rotary`` makes the rotations of a grid, one for each block. A rotation is a tensor ([heads,] N,
d) with the rotated vector (1, 0) of each plane: the cosine of the angle in the first channel of the
plane, and the sine in the second. :func:`~vit_plugin.models.layers.rotary_attention.rotate` applies
it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_type_hints

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from typing_extensions import TypedDict

from vit_plugin.arguments.fields import NotNegative, Pair, Positive
from vit_plugin.errors import ConfigError

from .block_cfg import Grid

# Form -> default temperature, as in EVA-02, DINOv3 and rope-vit.
TEMPERATURES = {'index': 10_000.0, 'centred': 100.0, 'mixed': 10.0}


@dataclass(frozen=True)
class RotaryOptions:
    """Rotary positions.

    Attributes:
        form: ``'index'`` counts rows and columns, each of which rotates half of the planes, as in
            EVA-02 and in Perception Encoder. ``'centred'`` does the same with coordinates from -1
            to 1 on any grid, as in DINOv3. ``'mixed'`` counts rows and columns, and both rotate
            every plane, by learned frequencies (arXiv:2403.13298).
        temperature: ratio of the highest and lowest frequency. Default: 100 for ``'centred'``, 10
            for ``'mixed'``, else 10000.
        order: whether the planes of the rows (``'yx'``, the default) or of the columns come first.
        planes: ``'neighbours'`` (default) takes channels 2i and 2i + 1 as a plane, ``'halves'`` i
            and i + d/2.
        offset: added to the coordinates, in patches.
        native_grid: grid (h, w) to which the coordinates of every other grid are scaled, as in
            EVA-02. Not for ``'centred'``, whose coordinates have the same range on any grid.
            Default: no scaling.
        shift, jitter, rescale: random changes of the coordinates in training, as in DINOv3: a shift
            of at most this size, a factor per axis and a common factor, both from 1 / value to
            value. Default: none.
    """

    form: Literal['index', 'centred', 'mixed']
    temperature: Positive = TEMPERATURES['index']
    order: Literal['yx', 'xy'] = 'yx'
    planes: Literal['neighbours', 'halves'] = 'neighbours'
    offset: float = 0.0
    native_grid: Pair | None = None
    shift: NotNegative | None = None
    jitter: Positive | None = None
    rescale: Positive | None = None

    def coordinates(self, grid: Grid, device: torch.device) -> Tensor:
        """The coordinates (h*w, 2) of the patches of a grid, in float32."""
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

    def augmented(self, coordinates: Tensor) -> Tensor:
        """The coordinates (N, 2) after random shift, jitter and rescaling (arXiv:2508.10104)."""
        if self.shift is not None:
            coordinates = coordinates + coordinates.new_empty(2).uniform_(-self.shift, self.shift)
        for size, factor in ((2, self.jitter), (1, self.rescale)):  # per axis, and for both
            if factor is not None:
                limit = abs(math.log(factor))
                factors = coordinates.new_empty(size).uniform_(-limit, limit).exp()
                coordinates = coordinates * factors
        return coordinates


if TYPE_CHECKING:
    RotaryCfg = Mapping[str, Any]
else:  # no entry is required, since the name of a timm model may provide it
    RotaryCfg = TypedDict(
        'RotaryCfg', get_type_hints(RotaryOptions, include_extras=True), total=False
    )


def read_rotary(cfg: RotaryCfg) -> RotaryOptions:
    """The options in a config.

    Raises:
        ConfigError: if there is no ``form``, or if ``'centred'`` has a ``native_grid``.
    """
    if 'form' not in cfg:
        raise ConfigError(f'pos_embed: rotary needs form, one of {", ".join(TEMPERATURES)}.')
    if cfg['form'] == 'centred' and cfg.get('native_grid'):
        raise ConfigError(
            "pos_embed: rotary of form='centred' has coordinates from -1 to 1 on any grid, and no "
            'native_grid to scale them to; leave it out.'
        )
    return RotaryOptions(**{'temperature': TEMPERATURES[cfg['form']], **cfg})


class NoRotary(nn.Module):
    """No rotary positions in any block."""

    planes = None

    def __init__(self, num_layers: int) -> None:
        super().__init__()
        self.num_layers = num_layers

    def forward(self, grid: Grid, like: Tensor) -> Sequence[None]:
        return [None] * self.num_layers


class Rotary(nn.Module):
    """Makes the rotations of a grid.

    Args:
        options: the coordinates of patches, and the frequencies of planes.
        head_dims: channels of a head.
        num_heads: number of heads.
        num_layers: number of blocks.
        num_prefix_tokens: number of tokens before the patches, which are not rotated.

    Raises:
        ConfigError: if a head has a number of channels that is not a multiple of 4.
    """

    def __init__(
        self,
        options: RotaryOptions,
        head_dims: int,
        num_heads: int,
        num_layers: int,
        num_prefix_tokens: int,
    ) -> None:
        super().__init__()
        if head_dims % 4:
            raise ConfigError(
                'pos_embed: rotary needs heads whose width is a multiple of 4, but theirs is '
                f'{head_dims}; change embed_dims or num_heads in arch.'
            )
        self.options, self.planes = options, options.planes
        self.plane_axis = -1 if options.planes == 'neighbours' else -2  # (d/2, 2), (2, d/2)
        self.head_dims, self.num_heads, self.num_layers = head_dims, num_heads, num_layers
        self.num_prefix_tokens = num_prefix_tokens

    def forward(self, grid: Grid, like: Tensor) -> Sequence[Tensor]:
        """Rotations of the tokens of a grid (h, w), one per block, on the device of ``like``."""
        raise NotImplementedError

    def coordinates(self, grid: Grid, device: torch.device) -> Tensor:
        """The coordinates (h*w, 2), augmented in training if the options ask for it."""
        coordinates = self.options.coordinates(grid, device)
        return self.options.augmented(coordinates) if self.training else coordinates

    def periods(self, device: torch.device | str | None = None) -> Tensor:
        """The inverse frequencies (d/4,) of the planes of one axis."""
        count = self.head_dims // 4
        exponents = torch.arange(count, device=device).to(torch.float32) / count
        return self.options.temperature**exponents

    def rotation(self, angles: Tensor) -> Tensor:
        """Patch angles ([heads,] h*w, d/2) -> all tokens' rotation ([heads,] prefix + h*w, d)."""
        padding = (0, 0, self.num_prefix_tokens, 0)
        # The angle of tokens before the patches is 0.
        cos, sin = F.pad(angles.cos(), padding, value=1.0), F.pad(angles.sin(), padding, value=0.0)
        return torch.stack((cos, sin), dim=self.plane_axis).flatten(-2)


class AxialRotary(Rotary):
    """The row rotates half of the planes, the column the other half."""

    def forward(self, grid: Grid, like: Tensor) -> Sequence[Tensor]:
        rotation = self.rotation(self.angles(self.coordinates(grid, like.device)))
        return [rotation] * self.num_layers

    def angles(self, coordinates: Tensor) -> Tensor:
        """The angles (N, d/2) of coordinates (N, 2)."""
        coordinates, periods = coordinates[..., None], self.periods(coordinates.device)
        if self.options.form == 'centred':  # rounded as in DINOv3
            return (2 * math.pi * coordinates / periods).flatten(1)
        return (coordinates * (1.0 / periods)).flatten(1)


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
        """Initialize as in naver-ai/rope-vit: axial frequencies, a random angle for each head."""
        frequencies = 1.0 / self.periods()
        # The first half of the planes follows an axis at this angle, the second its perpendicular.
        angles = 2 * math.pi * torch.rand(self.num_layers, self.num_heads, 1)
        angles = angles.expand(-1, -1, len(frequencies))
        angles = torch.cat((angles, angles + math.pi / 2), dim=-1)  # (layers, heads, d/2)
        with torch.no_grad():
            self.freqs.copy_(torch.stack((angles.cos(), angles.sin())) * frequencies.repeat(2))

    def forward(self, grid: Grid, like: Tensor) -> Sequence[Tensor]:
        # Rows and columns, in the order of the options.
        first, second = self.coordinates(grid, like.device)[..., None].unbind(1)  # (h*w, 1) each
        freqs = self.freqs.float()[..., None, :]  # (2, layers, heads, 1, d/2)
        return [
            self.rotation(first * first_freqs + second * second_freqs)
            for first_freqs, second_freqs in zip(*freqs, strict=True)
        ]


def build_rotary(cfg: RotaryCfg | None, **sizes: int) -> Rotary | NoRotary:
    """Build the rotary positions of a backbone.

    Args:
        cfg: see :class:`RotaryOptions`. None: no rotary positions.
        sizes: ``head_dims, num_heads, num_layers, num_prefix_tokens``, see :class:`Rotary`.

    Raises:
        ConfigError: see :class:`Rotary` and :func:`read_rotary`.
    """
    if cfg is None:
        return NoRotary(sizes['num_layers'])
    options = read_rotary(cfg)
    return (MixedRotary if options.form == 'mixed' else AxialRotary)(options, **sizes)
