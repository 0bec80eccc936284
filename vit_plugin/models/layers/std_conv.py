"""Weight-standardised convolution with SAME padding, as in the authors' ResNet."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .derived import Derives, transformed


def standardize(weight: Tensor, eps: float = 1e-5, eps_inside_root: bool = False) -> Tensor:
    """Zero mean and unit variance for every filter (arXiv:1903.10520, Equation 7).

    Args:
        weight: filters of shape (C_out, C_in, kH, kW). The variance is the biased one.
        eps: added to the standard deviation (google-research/vision_transformer), or
        eps_inside_root: to the variance under the root (timm).
    """
    rows = weight.flatten(1)
    if eps_inside_root:
        return F.layer_norm(rows, rows.shape[1:], eps=eps).view_as(weight)  # the same sum, in one kernel
    centred = rows - rows.mean(dim=1, keepdim=True)
    std = torch.linalg.vector_norm(centred, dim=1, keepdim=True) * rows.shape[1]**-0.5  # torch.var is many times slower
    return (centred / (std + eps)).view_as(weight)


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Padding before and after, so that the output has ceil(size / stride) elements (XLA's SAME)."""
    total = max(kernel - (size % stride or stride), 0)
    return total // 2, total - total // 2


class StdConv2d(Derives, nn.Conv2d):
    """Convolution with standardised filters, SAME padding and no bias.

    Args:
        eps, eps_inside_root: see :func:`standardize`.

    Shape: (B, C_in, H, W) -> (B, C_out, ceil(H / stride), ceil(W / stride)).
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1,
                 eps: float = 1e-5, eps_inside_root: bool = False) -> None:
        super().__init__(in_channels, out_channels, kernel_size, stride, bias=False)
        self.eps, self.eps_inside_root = eps, eps_inside_root

    def reset_parameters(self) -> None:
        lecun_normal_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        top, bottom = same_padding(x.shape[-2], self.kernel_size[0], self.stride[0])
        left, right = same_padding(x.shape[-1], self.kernel_size[1], self.stride[1])
        padding = (top, left)
        if (top, left) != (bottom, right):  # convolutions pad both sides alike, so this costs a copy
            x, padding = F.pad(x, (left, right, top, bottom)), (0, 0)
        channels_last = not transformed() and x.is_contiguous(memory_format=torch.channels_last)
        memory_format = torch.channels_last if channels_last else torch.contiguous_format
        weight = self.derived(
            lambda: standardize(self.weight, self.eps, self.eps_inside_root).contiguous(memory_format=memory_format),
            self.weight, key=memory_format)
        return F.conv2d(x, weight, stride=self.stride, padding=padding)


def max_pool_same(x: Tensor) -> Tensor:
    """3 x 3 max-pool of stride 2 with SAME padding by -inf.

    An even size wants its padding after the last element only, which ``ceil_mode`` does without a copy.
    """
    return F.max_pool2d(x, 3, 2, padding=(x.shape[-2] % 2, x.shape[-1] % 2), ceil_mode=True)


def lecun_normal_(weight: Tensor) -> None:
    """flax's default kernel init: truncated normal of variance 1 / fan_in (Klambauer et al. 2017).

    Truncating at two deviations shrinks them by 0.8796, which is put right here as flax does.
    """
    fan_in = weight[0].numel()
    std = fan_in ** -0.5 / 0.87962566103423978
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)
