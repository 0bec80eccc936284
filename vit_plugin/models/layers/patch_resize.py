"""Adapt patch embeddings to another patch size (FlexiViT, arXiv:2212.08013) or channels."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def resize_matrix(old: int, new: int) -> Tensor:
    """The matrix (new, old) that adapts one axis of a kernel, in float64 on the CPU.

    It is the pseudo-inverse of the resize of images along this axis. The resize of both axes is the
    product of both.
    """
    # An inference tensor could not be trained later.
    with torch.inference_mode(False), torch.no_grad():
        # The axis is the width: torch 2.15 repeats the first row of images with a single column.
        unit = torch.eye(old, dtype=torch.float64, device='cpu')[:, None, None]
        # (old, 1, 1, new).
        resize = F.interpolate(unit, (1, new), mode='bilinear', align_corners=False, antialias=True)
        return torch.linalg.pinv(resize.flatten(1))


def resize_patches(kernel: Tensor, size: tuple[int, int]) -> Tensor:
    """Adapt a patch embedding (D, C, h, w) to another patch size.

    For resized patches, the new embedding gives the tokens of the old patches. This is exact if the
    patches grow.
    """
    rows, columns = (
        resize_matrix(old, new).to(kernel.device)
        for old, new in zip(kernel.shape[-2:], size, strict=True)
    )
    return (rows @ kernel.double() @ columns.mT).to(kernel.dtype)


def adapt_channels(kernel: Tensor, channels: int) -> Tensor:
    """Adapt a first convolution (D, C, h, w) to a different number of input channels.

    The channels are repeated in order and scaled to keep the size of the output, as timm does. For
    one channel they are summed. A gray image then has the same output as before.
    """
    old = kernel.shape[1]
    if channels == 1:
        return kernel.sum(dim=1, keepdim=True)
    return kernel[:, torch.arange(channels) % old] * (old / channels)


class ResizableConv2d(nn.Conv2d):
    """A projection of square patches whose kernel is adapted to the size of the patches.

    Its parameters are those of a convolution, and do not depend on the sizes.

    Args:
        sizes: patch sizes that will be used.
        *args, **kwargs: see ``nn.Conv2d``.

    Shape: images (B, C, H, W) -> (B, D, H // size, W // size).
    """

    def __init__(self, *args: Any, sizes: tuple[int, ...] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.matrices: dict[int, Tensor] = {}
        self.prepare(*sizes)

    def prepare(self, *sizes: int) -> None:
        """Precompute the matrices for these patch sizes, since a traced graph cannot."""
        self.matrices |= {
            size: resize_matrix(self.kernel_size[0], size)
            for size in sizes
            if size != self.kernel_size[0]
        }
        self._move_matrices()

    def _move_matrices(self) -> None:
        """Keep the matrices on the kernel's device.

        A copy in each forward pass would force a sync.
        """
        self.device_matrices = {
            size: matrix if self.weight.is_meta else matrix.to(self.weight)
            for size, matrix in self.matrices.items()
        }

    def _apply(self, *args: Any, **kwargs: Any) -> 'ResizableConv2d':
        super()._apply(*args, **kwargs)  # called by `to`, `cuda` and `to_empty`
        self._move_matrices()
        return self

    # The stem passes the patch size.
    def forward(self, x: Tensor, size: int) -> Tensor:  # type: ignore[override]
        return F.conv2d(x, self.kernel(size), self.bias, stride=size)

    def kernel(self, size: int) -> Tensor:
        """The kernel (D, C, size, size). Gradients reach the parameter through it."""
        if size == self.kernel_size[0]:
            return self.weight
        with torch.autocast(self.weight.device.type, enabled=False):
            # This is a no-op, except for weights that were on meta.
            matrix = self.device_matrices[size].to(self.weight)
            return matrix @ self.weight @ matrix.mT
