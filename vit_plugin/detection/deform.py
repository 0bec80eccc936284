"""Deformable attention and convolution with the interface of ``mmcv._ext``.

Names, order of arguments and buffers are those that mmcv gives its compiled kernels. Buffers that
only such kernels need are not used.
"""

from collections.abc import Callable

import torch
from torch import Tensor
from torchvision.ops import deform_conv2d

from vit_plugin.detection.op_gradients import add_gradients, promoted_to_float32


def ms_deform_attn_forward(
    value: Tensor,
    shapes: Tensor,
    level_start: Tensor,
    locations: Tensor,
    weights: Tensor,
    im2col_step: int,
) -> Tensor:
    """Multi-scale deformable attention (arXiv:2010.04159, Eq. 3).

    Args:
        value: (B, sum of H x W, heads, C / heads).
        shapes: H and W of each level (levels, 2).
        level_start: not used, because the shapes determine it (levels,).
        locations: (B, queries, heads, levels, points, 2), x and y in [0, 1].
        weights: (B, queries, heads, levels, points).
        im2col_step: not used, an argument of the compiled kernel.

    Returns:
        (B, queries, C).
    """
    return _attention_function(shapes)(value, locations, weights)


def ms_deform_attn_backward(
    value: Tensor,
    shapes: Tensor,
    level_start: Tensor,
    locations: Tensor,
    weights: Tensor,
    grad_output: Tensor,
    grad_value: Tensor,
    grad_locations: Tensor,
    grad_weights: Tensor,
    im2col_step: int,
) -> None:
    """Accumulate the gradients of value, locations and weights in the given buffers."""
    add_gradients(
        _attention_function(shapes),
        [value, locations, weights],
        grad_output,
        [grad_value, grad_locations, grad_weights],
    )


def _attention_function(shapes: Tensor) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """Deformable attention on maps of these shapes, as a function of its differentiable inputs."""
    # Imported here, because the import of our models imports MMPretrain, which needs these ops.
    from vit_plugin.models.layers.deformable_attention import deformable_attention

    sizes = shapes.tolist()  # one read from the GPU instead of one for each number
    return lambda value, locations, weights: deformable_attention(value, sizes, locations, weights)


def modulated_deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    output: Tensor,
    columns: Tensor,
    with_bias: bool,
    **geometry,
) -> None:
    """Deformable convolution with a mask (DCNv2, arXiv:1811.11168, Eq. 1).

    Args:
        input: (B, C, H, W).
        weight: (out, C / groups, kh, kw).
        bias: (out,). It is only used if ``with_bias``.
        offset: (B, 2 x deformable groups x kh x kw, h, w), y before x.
        mask: (B, deformable groups x kh x kw, h, w).
        output: (B, out, h, w). It is filled with the result.
        geometry: ``stride_h``, ``pad_h``, ``dilation_h``, the same with ``_w``, and others, which
            are not needed.
    """
    output.copy_(
        _modulated_function(with_bias, geometry)(
            *map(promoted_to_float32, (input, weight, bias, offset, mask))
        )
    )


def modulated_deform_conv_backward(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    ones: Tensor,
    offset: Tensor,
    mask: Tensor,
    columns: Tensor,
    grad_input: Tensor,
    grad_weight: Tensor,
    grad_bias: Tensor,
    grad_offset: Tensor,
    grad_mask: Tensor,
    grad_output: Tensor,
    with_bias: bool,
    **geometry,
) -> None:
    """Accumulate the gradients of input, weight, bias, offset and mask in the given buffers."""
    add_gradients(
        _modulated_function(with_bias, geometry),
        [input, weight, bias, offset, mask],
        grad_output,
        [grad_input, grad_weight, grad_bias, grad_offset, grad_mask],
    )


def _modulated_function(with_bias: bool, geometry: dict[str, int]) -> Callable[..., Tensor]:
    """The convolution with mask, as a function of its differentiable inputs."""
    pairs = [
        (geometry[f'{name}_h'], geometry[f'{name}_w']) for name in ('stride', 'pad', 'dilation')
    ]
    return lambda input, weight, bias, offset, mask: deform_conv2d(
        input, offset, weight, bias if with_bias else None, *pairs, mask
    )


def deform_conv_forward(
    input: Tensor,
    weight: Tensor,
    offset: Tensor,
    output: Tensor,
    columns: Tensor,
    ones: Tensor,
    **geometry,
) -> None:
    """Deformable convolution (DCN, arXiv:1703.06211, Eq. 2), without mask and bias.

    The arguments are those of :func:`modulated_deform_conv_forward`. ``geometry`` has ``dH``,
    ``padH``, ``dilationH`` (stride, padding, dilation), the same with ``W``, and others, which are
    not needed.
    """
    output.copy_(_plain_function(geometry)(*map(promoted_to_float32, (input, weight, offset))))


def deform_conv_backward_input(
    input: Tensor,
    offset: Tensor,
    grad_output: Tensor,
    grad_input: Tensor,
    grad_offset: Tensor,
    weight: Tensor,
    columns: Tensor,
    **geometry,
) -> None:
    """Accumulate the gradients of input and offset in the given buffers."""
    add_gradients(
        lambda input, offset: _plain_function(geometry)(input, promoted_to_float32(weight), offset),
        [input, offset],
        grad_output,
        [grad_input, grad_offset],
    )


def deform_conv_backward_parameters(
    input: Tensor,
    offset: Tensor,
    grad_output: Tensor,
    grad_weight: Tensor,
    columns: Tensor,
    ones: Tensor,
    **geometry,
) -> None:
    """Accumulate the gradient of the weight in the given buffer."""
    add_gradients(
        lambda weight: _plain_function(geometry)(
            promoted_to_float32(input), weight, promoted_to_float32(offset)
        ),
        # The convolution is linear in its weight, which mmcv does not pass: any value will do.
        [torch.zeros_like(grad_weight)],
        grad_output,
        [grad_weight],
    )


def _plain_function(geometry: dict[str, int]) -> Callable[..., Tensor]:
    """The convolution without mask, as a function of its differentiable inputs."""
    pairs = [(geometry[f'{name}H'], geometry[f'{name}W']) for name in ('d', 'pad', 'dilation')]
    return lambda input, weight, offset: deform_conv2d(input, offset, weight, None, *pairs)
