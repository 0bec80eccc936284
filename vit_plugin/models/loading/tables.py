"""Compare the tables that a checkpoint holds and the model computes."""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..layers.rotary import AxialRotary

TOLERANCE = 1e-2  # tables may be in bfloat16. Those of other frequencies differ by about 1


def _angles(rope: AxialRotary, grid: tuple[int, int]) -> Tensor:
    """The angle (N, d) of each channel of a head: both channels of a plane have that of the plane."""
    angles = rope.angles(rope.coordinates.of(grid, torch.device('cpu')))
    return torch.stack((angles, angles), rope.plane_axis).flatten(-2)


def _periods(rope: AxialRotary, grid: tuple[int, int]) -> Tensor:
    count = rope.head_dims // 4
    return rope.temperature ** (torch.arange(count, device='cpu') / count)


# The last part of a key -> what it holds.
COMPUTED: dict[str, Callable[[AxialRotary, tuple[int, int]], Tensor]] = {
    'freqs_cos': lambda rope, grid: _angles(rope, grid).cos(),  # EVA-02
    'freqs_sin': lambda rope, grid: _angles(rope, grid).sin(),
    'periods': _periods,  # DINOv3 of its authors
    'inv_freq': lambda rope, grid: 1. / _periods(rope, grid),  # and of transformers
}


def agrees(backbone: nn.Module, key: str, value: Tensor) -> bool:
    """Whether the model computes this table of a checkpoint.

    A table of coordinates is of a square grid, or of the model's. If it is of another grid, the model computes what it
    would on that grid.
    """
    if not isinstance(backbone.rope, AxialRotary) or not value.ndim:
        return False
    rows = value.numel() // value.shape[-1]  # (N, d), or (h, w, d)
    side = math.isqrt(rows)
    grid = (side, side) if side * side == rows else backbone.position.grid
    ours = COMPUTED[key.rpartition('.')[2]](backbone.rope, grid)
    value = value.detach().to('cpu', torch.float32)
    return value.numel() == ours.numel() and torch.allclose(value.reshape(ours.shape), ours, TOLERANCE, TOLERANCE)
