"""Compare the tables that a checkpoint holds and the model computes."""

import math

import torch
from torch import Tensor, nn

from ..layers.rotary import AxialRotary

TOLERANCE = 1e-2  # tables may be in bfloat16. Those of other frequencies differ by about 1


def agrees(backbone: nn.Module, key: str, value: Tensor) -> bool:
    """True if the model computes this table of a checkpoint.

    A table of coordinates is of a square grid, or of the model's. If it is of another grid, the
    model computes what it would on that grid.
    """
    if not isinstance(backbone.rope, AxialRotary) or not value.ndim:
        return False
    rows = value.numel() // value.shape[-1]  # (N, d), or (h, w, d)
    side = math.isqrt(rows)
    grid = (side, side) if side * side == rows else backbone.position.grid
    ours = _computed(backbone.rope, key.rpartition('.')[2], grid)
    value = value.detach().to('cpu', torch.float32)
    return value.numel() == ours.numel() and torch.allclose(
        value.reshape(ours.shape), ours, TOLERANCE, TOLERANCE
    )


def _computed(rope: AxialRotary, name: str, grid: tuple[int, int]) -> Tensor:
    """The model's table under a checkpoint's name."""
    if name in ('periods', 'inv_freq'):  # of DINOv3: its authors' and transformers' (d/4,)
        count = rope.head_dims // 4
        periods = rope.temperature ** (torch.arange(count, device='cpu') / count)
        return periods if name == 'periods' else 1.0 / periods
    angles = rope.angles(rope.coordinates.of(grid, torch.device('cpu')))
    angles = torch.stack((angles, angles), rope.plane_axis).flatten(-2)  # (N, d)
    return angles.cos() if name == 'freqs_cos' else angles.sin()  # of EVA-02
