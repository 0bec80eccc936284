"""Convolution with standardized weights, and max-pool, as in the authors' ResNet."""

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_FILTER = (1, 2, 3)  # the dimensions of one filter: C_in, kH, kW

ConvPadding = Literal['same', 'symmetric']
PoolPadding = Literal['same', 'valid']


def standardize(weight: Tensor, eps: float = 1e-5, eps_inside_root: bool = False) -> Tensor:
    """Give every filter zero mean and unit variance (arXiv:1903.10520, Equation 7).

    Args:
        weight: filters of shape (C_out, C_in, kH, kW). The variance is the biased one.
        eps: small number against division by zero.
        eps_inside_root: False adds ``eps`` to the standard deviation, as
            google-research/vision_transformer does. True adds it to the variance under the root, as
            timm does.
    """
    if eps_inside_root:
        return F.layer_norm(weight, weight.shape[1:], eps=eps)  # the same sum, in one kernel
    if torch.compiler.is_compiling():  # a compiler fuses the operations itself
        return _standardize(weight, eps)[0]
    return _Standardize.apply(weight, eps)[0]


def _standardize(weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """The standardized filters, with ``eps`` outside the root, and their standard deviations."""
    centered = weight - weight.mean(_FILTER, keepdim=True)
    # Use the norm, since torch.var is many times slower on a CPU.
    std = torch.linalg.vector_norm(centered, dim=_FILTER, keepdim=True) * weight[0].numel() ** -0.5
    return centered / (std + eps), std


class _Standardize(torch.autograd.Function):
    """y = (w - mean) / (std + eps) of every filter, and std, with the derivative in closed form.

    dy/dw = (I - 1/N) / (std + eps) - y y^T / (N std) takes a third of the time of autograd through
    the single operations. std is a second output so that double backward sees its gradient.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(weight: Tensor, eps: float) -> tuple[Tensor, Tensor]:
        return _standardize(weight, eps)

    @staticmethod
    def setup_context(
        ctx: Any, inputs: tuple[Tensor, float], output: tuple[Tensor, Tensor]
    ) -> None:
        ctx.eps = inputs[1]
        ctx.save_for_backward(*output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor, grad_std: Tensor) -> tuple[Tensor, None]:
        y, std = ctx.saved_tensors
        shifted = std + ctx.eps
        # A constant filter has std = 0 and y = 0; the minimum avoids 0 / 0.
        scale = (y[0].numel() * std).clamp_min(torch.finfo(std.dtype).tiny)
        # The gradient's component along y, times N.
        projection = (y * grad).sum(_FILTER, keepdim=True)
        centered = (grad - grad.mean(_FILTER, keepdim=True)) / shifted
        # grad_std is nonzero only in a double backward; d std/dw = y (std + eps) / (N std).
        return torch.addcmul(centered, y, (grad_std * shifted - projection) / scale), None


def same_padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Padding before and after for ceil(size / stride) output elements (XLA's SAME)."""
    total = max(kernel - stride + -size % stride, 0) if kernel > 1 else 0
    return total // 2, total - total // 2


class StdConv2d(nn.Conv2d):
    """Convolution with standardized filters and no bias.

    Args:
        eps, eps_inside_root: see :func:`standardize`.
        padding: ``'same'`` is XLA's. With a stride, an even side gets one more pixel of padding at
            its end. ``'symmetric'`` pads both ends by half of the kernel, as torch does. Both give
            maps of the same size. With stride 2 and an even side, they sample positions that are
            one input pixel apart.

    Shape: (B, C_in, H, W) -> (B, C_out, ceil(H / stride), ceil(W / stride)).
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int,
        stride: int = 1,
        eps: float = 1e-5,
        eps_inside_root: bool = False,
        padding: ConvPadding = 'same',
    ) -> None:
        torch_padding = kernel_size // 2 if padding == 'symmetric' else 0
        super().__init__(in_channels, out_channels, kernel_size, stride, torch_padding, bias=False)
        self.eps, self.eps_inside_root, self.has_same_padding = (
            eps,
            eps_inside_root,
            padding == 'same',
        )

    def reset_parameters(self) -> None:
        lecun_normal_(self.weight)

    def kernel(self, weight: Tensor) -> Tensor:
        """The filters that the convolution applies. A pass may replace this method."""
        return standardize(weight, self.eps, self.eps_inside_root)

    def forward(self, x: Tensor) -> Tensor:
        x, padding = self.padded(x) if self.has_same_padding else (x, self.padding)
        return F.conv2d(x, self.kernel(self.weight), stride=self.stride, padding=padding)

    def padded(self, x: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Pad a map where the convolution cannot.

        Returns the map, and the padding left to the convolution.
        """
        top, bottom = same_padding(x.shape[-2], self.kernel_size[0], self.stride[0])
        left, right = same_padding(x.shape[-1], self.kernel_size[1], self.stride[1])
        # Uneven padding needs a copy. With dynamic sizes we cannot branch on it, so always copy.
        if has_dynamic_size(x) or (top, left) != (bottom, right):
            return F.pad(x, (left, right, top, bottom)), (0, 0)
        return x, (top, left)


def max_pool(x: Tensor, padding: PoolPadding = 'same') -> Tensor:
    """3 x 3 max-pool of stride 2.

    Args:
        x: map (B, C, H, W).
        padding: ``'same'`` is XLA's, by -inf, and gives ceil(H / 2) rows. An even size is padded
            only after the last element. ``ceil_mode`` does this without a copy. ``'valid'`` pads
            nothing and gives ceil(H / 2) - 1 rows.
    """
    if _is_faster_by_rows(x):
        return _max_pool_by_rows(x, padding)
    if padding == 'valid':
        return F.max_pool2d(x, 3, 2)
    odd_rows, odd_columns = (side % 2 for side in x.shape[-2:])
    if has_dynamic_size(x):
        return F.max_pool2d(F.pad(x, (odd_columns, 1, odd_rows, 1), value=-torch.inf), 3, 2)
    return F.max_pool2d(x, 3, 2, padding=(odd_rows, odd_columns), ceil_mode=True)


def _is_faster_by_rows(x: Tensor) -> bool:
    """True for plain CPU tensors without gradients, for which torch's max-pool is slow."""
    return (
        type(x) is Tensor
        and x.device.type == 'cpu'
        and x.is_contiguous()
        and min(x.shape[2:]) >= 3
        and not (torch.is_grad_enabled() and x.requires_grad)
        and not (torch.compiler.is_compiling() or torch.jit.is_tracing())
    )


def _max_pool_by_rows(x: Tensor, padding: PoolPadding) -> Tensor:
    """The max-pool along one axis and then the other, as vectorized maxima of whole rows."""
    for axis in (2, 3):
        lines = x.movedim(axis, 0)
        if padding == 'same' and len(lines) % 2:  # windows are centered on lines 0, 2, ...
            out = lines[::2].clone()
            neighbors = [(out[1:], lines[1::2]), (out[:-1], lines[1::2])]
        else:  # windows begin at lines 0, 2, ...; with 'same', the last one may have two lines
            number = len(lines) // 2 if padding == 'same' else (len(lines) - 1) // 2
            out = torch.maximum(lines[::2][:number], lines[1::2][:number])
            third = lines[2::2][:number]
            neighbors = [(out[: len(third)], third)]
        for maxima, neighbor in neighbors:
            maxima.clamp_(min=neighbor)  # an in-place maximum
        x = out.movedim(0, axis)
    return x.contiguous()


def has_dynamic_size(x: Tensor) -> bool:
    """True while a graph is traced in which the size of a map (B, C, H, W) is dynamic."""
    return any(isinstance(side, torch.SymInt) for side in x.shape[2:])


def lecun_normal_(weight: Tensor) -> None:
    """flax's default kernel init: truncated normal of variance 1 / fan_in (Klambauer et al. 2017).

    Truncation at two standard deviations shrinks the deviation by 0.8796. As in flax, the scale
    corrects for that.
    """
    fan_in = weight[0].numel()
    std = fan_in**-0.5 / 0.87962566103423978
    nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)
