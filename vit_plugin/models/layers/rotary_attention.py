"""Attention with rotary positions (RoPE, arXiv:2104.09864)."""

import torch
from torch import Tensor

from vit_plugin.errors import ConfigError

from .attention import Attention
from .block_cfg import BlockCfg, Grid
from .window import InWindows, to_windows


def rotate(x: Tensor, rotation: Tensor, interleaved: bool) -> Tensor:
    """Rotate vectors x (B, heads, N, d) by a rotation ([heads,] N, d).

    See :mod:`vit_plugin.models.layers.rotary`.

    Args:
        x: the vectors. Only the last N are rotated. The result has their dtype, and is computed in
            float32 at least.
        rotation: the rotated vector (1, 0) of each plane.
        interleaved: whether channels 2i and 2i + 1 form a plane, instead of i and i + d/2.
    """
    if (prefix := x.shape[2] - rotation.shape[-2]) > 0:
        return torch.cat((x[:, :, :prefix], rotate(x[:, :, prefix:], rotation, interleaved)), dim=2)
    axis, pair = (-1, (-1, 2)) if interleaved else (-2, (2, -1))
    planes, rotations = x.unflatten(-1, pair), rotation.unflatten(-1, pair)
    if interleaved and not (torch.compiler.is_compiling() or torch.jit.is_tracing()):
        # Treat a plane as a complex number (Equation 13). Strided products would take ten times as
        # long, but compilers do not support complex numbers.
        dtype = torch.promote_types(torch.promote_types(x.dtype, rotation.dtype), torch.float32)
        rotated = torch.view_as_real(
            torch.view_as_complex(planes.to(dtype)) * torch.view_as_complex(rotations.to(dtype))
        )
    else:
        cos, sin = rotations.unbind(axis)
        first, second = planes.unbind(axis)
        rotated = planes * cos.unsqueeze(axis)
        # addcmul_ is not faster, and rounds differently from timm's sum.
        rotated.select(axis, 0).sub_(second * sin)
        rotated.select(axis, 1).add_(first * sin)
    return rotated.flatten(-2).to(x.dtype)


class RotaryAttention(Attention):
    """Attention with rotary positions.

    Args:
        cfg: its ``rotary_planes`` define the planes.
    """

    def __init__(self, cfg: BlockCfg) -> None:
        super().__init__(cfg)
        self.interleaved = cfg.rotary_planes == 'neighbours'

    def project(
        self, x: Tensor, position_input: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """See :meth:`Attention.project`.

        ``position_input`` is a rotation ([heads,] N, d), which applies to the last N tokens.

        Raises:
            ConfigError: without a rotation.
        """
        if position_input is None:
            raise ConfigError(
                'Attention with rotary positions needs the rotation of its tokens: give one of '
                'backbone.rope(grid, tokens), which has one for each block.'
            )
        q, k, v = super().project(x)
        return (
            rotate(q, position_input, self.interleaved),
            rotate(k, position_input, self.interleaved),
            v,
        )


class RotaryWindowAttention(InWindows, RotaryAttention):
    """Attention within windows, with rotary positions of the complete grid."""

    def window_rotation(self, rotation: Tensor, grid: Grid, num_windows: int) -> Tensor:
        """See :meth:`InWindows.window_rotation`.

        Padding gets a rotation of zero, so its keys are zero.
        """
        lead = rotation.shape[:-2] or (1,)
        window = self.window.within(grid)
        windows = to_windows(rotation.reshape(-1, *rotation.shape[-2:]), grid, window)
        # windows has the shape (windows, heads or 1, rows*columns, d).
        windows = windows.unflatten(0, (*lead, -1)).transpose(0, 1)
        return windows.repeat(num_windows // windows.shape[0], 1, 1, 1)
