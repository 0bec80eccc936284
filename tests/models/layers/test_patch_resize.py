"""Resized patch embeddings, against the pseudo-inverse of the matrix that resizes patches."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import conv2d, interpolate

from vit_plugin.models.layers.patch_resize import ResizableConv2d, adapt_channels, resize_patches

sizes = st.integers(2, 9)


@pytest.mark.parametrize(('old', 'new'), [((4, 4), (6, 6)), ((6, 6), (4, 4)), ((5, 3), (2, 7))])
def test_resize_equals_the_pseudo_inverse(old, new):
    """FlexiViT's Equation 4: w' = pinv(B^T)^T w, where B resizes a patch on both axes at once."""
    pixels = torch.eye(old[0] * old[1], dtype=torch.float64).unflatten(1, (1, *old))
    resize = (
        interpolate(pixels, new, mode='bilinear', align_corners=False, antialias=True)
        .flatten(1)
        .numpy()
    )
    kernel = torch.randn(3, 2, *old, dtype=torch.float64)
    expected = kernel.flatten(2).numpy() @ np.linalg.pinv(resize).T
    np.testing.assert_allclose(resize_patches(kernel, new).flatten(2).numpy(), expected, atol=1e-12)


@given(old=st.tuples(sizes, sizes))
def test_resize_to_the_same_size_is_the_identity(old):
    kernel = torch.randn(3, 2, *old)
    torch.testing.assert_close(resize_patches(kernel, old), kernel, atol=1e-5, rtol=1e-5)


@given(old=sizes, growth=st.integers(0, 8))
def test_enlarged_patches_give_the_tokens_of_the_original(old, growth):
    kernel, patch = torch.randn(3, 2, old, old), torch.randn(1, 2, old, old)
    new = old + growth
    larger = interpolate(patch, (new, new), mode='bilinear', antialias=True)
    torch.testing.assert_close(
        conv2d(larger, resize_patches(kernel, (new, new))),
        conv2d(patch, kernel),
        atol=1e-4,
        rtol=1e-4,
    )


def test_resizable_convolution_takes_any_patch_size():
    layer, images = ResizableConv2d(3, 5, 8, 8, sizes=(4, 12)), torch.randn(2, 3, 24, 24)
    assert [name for name, _ in layer.named_parameters()] == ['weight', 'bias']
    assert list(layer.state_dict()) == ['weight', 'bias']
    torch.testing.assert_close(layer(images, 8), conv2d(images, layer.weight, layer.bias, stride=8))
    for size in (4, 12):
        kernel = resize_patches(layer.weight.detach(), (size, size))
        torch.testing.assert_close(
            layer(images, size),
            conv2d(images, kernel, layer.bias, stride=size),
            atol=1e-5,
            rtol=1e-5,
        )
    layer(images, 12).sum().backward()
    assert layer.weight.grad.abs().min() > 0


def test_the_kernel_is_resized_in_full_precision_under_autocast():
    layer = ResizableConv2d(3, 5, 8, 8, sizes=(4,))
    with torch.autocast('cpu', torch.bfloat16):
        under_autocast = layer.kernel(4)
    assert torch.equal(under_autocast, layer.kernel(4))


@pytest.mark.parametrize('channels', [1, 3, 4, 9])
def test_input_channels_are_adapted(channels):
    kernel = torch.randn(5, 3, 2, 2)
    adapted = adapt_channels(kernel, channels)
    assert adapted.shape == (5, channels, 2, 2)
    if channels in (1, 3, 9):  # gray images give the same output; 4 channels repeat one of three
        gray = torch.randn(1, 1, 2, 2)
        torch.testing.assert_close(
            conv2d(gray.expand(-1, channels, -1, -1), adapted),
            conv2d(gray.expand(-1, 3, -1, -1), kernel),
        )
