"""Deformable attention and convolution equal the equations of their papers, with gradients."""

import pytest
import torch
from bilinear import assert_same_with_gradients, sample

SHAPES = [(4, 5), (2, 3)]


def attention_by_equation(value, locations, weights):
    """Arxiv 2010.04159, Eq. 3: per head the weighted sum of bilinear samples from all levels."""
    levels = value.split([h * w for h, w in SHAPES], dim=1)
    output = []
    for b in range(len(value)):
        heads = []
        for head in range(value.shape[2]):
            total = 0
            for level, (h, w) in enumerate(SHAPES):
                image = levels[level][b, :, head].T.reshape(-1, h, w)
                x, y = (locations[b, :, head, level] * torch.tensor([w, h]) - 0.5).unbind(-1)
                total = total + (sample(image, y, x) * weights[b, :, head, level, :, None]).sum(1)
            heads.append(total)
        output.append(torch.cat(heads, dim=1))
    return torch.stack(output)


def test_deformable_attention_equals_the_equation():
    from mmcv.ops.multi_scale_deform_attn import MultiScaleDeformableAttnFunction

    value = torch.randn(2, 26, 2, 3, dtype=torch.float64)
    locations = torch.rand(2, 7, 2, 2, 3, 2, dtype=torch.float64) * 1.4 - 0.2
    weights = torch.rand(2, 7, 2, 2, 3, dtype=torch.float64)
    shapes, start = torch.tensor(SHAPES), torch.tensor([0, 20])
    assert_same_with_gradients(
        lambda *inputs: MultiScaleDeformableAttnFunction.apply(
            inputs[0], shapes, start, *inputs[1:], 64
        ),
        attention_by_equation,
        [value, locations, weights],
    )


GEOMETRIES = [
    dict(stride=1, padding=0, dilation=1, groups=1, deform_groups=1),
    dict(stride=(2, 1), padding=(1, 2), dilation=(1, 2), groups=2, deform_groups=2),
]


def convolution_by_equation(
    input, offset, mask, weight, bias, stride, padding, dilation, groups, deform_groups
):
    """Arxiv 1811.11168, Eq. 1: samples are moved by the offset and scaled by the mask."""
    (stride_y, stride_x), (pad_y, pad_x), (dilation_y, dilation_x) = (
        pair if isinstance(pair, tuple) else (pair, pair) for pair in (stride, padding, dilation)
    )
    taps = [(i, j) for i in range(weight.shape[2]) for j in range(weight.shape[3])]
    h, w = offset.shape[2:]
    rows = (torch.arange(h, dtype=input.dtype) * stride_y - pad_y)[:, None]
    columns = (torch.arange(w, dtype=input.dtype) * stride_x - pad_x)[None]
    output = []
    for b in range(len(input)):
        columns_of_taps = []
        for tap, (i, j) in enumerate(taps):
            parts = []
            for group, part in enumerate(input[b].chunk(deform_groups)):
                k = group * len(taps) + tap
                y, x = (
                    rows + i * dilation_y + offset[b, 2 * k],
                    columns + j * dilation_x + offset[b, 2 * k + 1],
                )
                parts.append(sample(part, y, x) * mask[b, k][..., None])
            columns_of_taps.append(torch.cat(parts, dim=-1))
        # For each group: (taps, h, w, C / groups).
        samples = torch.stack(columns_of_taps).chunk(groups, dim=-1)
        output.append(
            torch.cat(
                [
                    torch.einsum('thwc,oct->ohw', part, kernel.flatten(2))
                    for part, kernel in zip(samples, weight.chunk(groups), strict=True)
                ]
            )
        )
    result = torch.stack(output)
    return result if bias is None else result + bias[:, None, None]


def convolution_inputs(geometry: dict) -> list[torch.Tensor]:
    """Input, offset, mask and weight."""
    h, w = (4, 3) if geometry['groups'] == 1 else (3, 5)
    deform_groups = geometry['deform_groups']
    return [
        torch.randn(2, 4, 5, 5, dtype=torch.float64),
        torch.randn(2, deform_groups * 2 * 6, h, w, dtype=torch.float64),
        torch.rand(2, deform_groups * 6, h, w, dtype=torch.float64),
        torch.randn(6, 4 // geometry['groups'], 2, 3, dtype=torch.float64),
    ]


@pytest.mark.parametrize('with_bias', [True, False])
@pytest.mark.parametrize('geometry', GEOMETRIES)
def test_modulated_deformable_convolution_equals_the_equation(geometry, with_bias):
    from mmcv.ops import modulated_deform_conv2d

    inputs, settings = convolution_inputs(geometry), list(geometry.values())
    if with_bias:
        inputs.append(torch.randn(6, dtype=torch.float64))
    assert_same_with_gradients(
        lambda *tensors: modulated_deform_conv2d(
            *(tensors if with_bias else (*tensors, None)), *settings
        ),
        lambda *tensors: convolution_by_equation(
            *(tensors if with_bias else (*tensors, None)), *settings
        ),
        inputs,
    )


@pytest.mark.parametrize('geometry', GEOMETRIES)
def test_deformable_convolution_equals_the_equation(geometry):
    from mmcv.ops import deform_conv2d

    input, offset, mask, weight = convolution_inputs(geometry)
    ones, settings = torch.ones_like(mask), list(geometry.values())
    assert_same_with_gradients(
        lambda input, offset, weight: deform_conv2d(input, offset, weight, *settings),
        lambda input, offset, weight: convolution_by_equation(
            input, offset, ones, weight, None, *settings
        ),
        [input, offset, weight],
    )


def test_bfloat16_keeps_its_dtype():
    from mmcv.ops import modulated_deform_conv2d

    inputs = [tensor.bfloat16().requires_grad_() for tensor in convolution_inputs(GEOMETRIES[0])]
    output = modulated_deform_conv2d(*inputs, None)
    output.sum().backward()
    assert output.dtype == torch.bfloat16
    assert all(tensor.grad.isfinite().all() and tensor.grad.any() for tensor in inputs)


def test_gradients_at_whole_pixels_are_those_toward_larger_coordinates():
    """A bilinear sample has different slopes on both sides of a whole pixel, also of the pixels
    next to the map.
    """
    from mmcv.ops import modulated_deform_conv2d

    input, weight = (
        torch.randn(1, 1, 3, 3, dtype=torch.float64),
        torch.ones(1, 1, 1, 1, dtype=torch.float64),
    )
    # With padding 1, samples are from one pixel before the map to one after it.
    mask = torch.ones(1, 1, 5, 5, dtype=torch.float64)
    offset = torch.zeros(1, 2, 5, 5, dtype=torch.float64, requires_grad=True)

    def sampled(offset: torch.Tensor) -> torch.Tensor:
        return modulated_deform_conv2d(input, offset, mask, weight, None, 1, 1)

    sampled(offset).sum().backward()
    slopes = {}
    for sign in (1, -1):
        steps = [
            torch.zeros_like(offset).index_fill(1, torch.tensor(k), sign * 1e-6) for k in (0, 1)
        ]
        slopes[sign] = torch.cat(
            [(sampled(step) - sampled(offset)) * sign / 1e-6 for step in steps], dim=1
        ).detach()
    torch.testing.assert_close(offset.grad, slopes[1], rtol=1e-6, atol=1e-6)
    assert ((offset.grad - slopes[-1]).abs() > 1e-3).sum() > 20
