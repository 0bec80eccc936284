"""Standardized convolutions, the padding of XLA, and the max-pool."""

import functools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn.functional import conv2d, pad

from vit_plugin.models.layers.std_conv import (
    StdConv2d,
    lecun_normal_,
    max_pool,
    same_padding,
    standardize,
)


@given(scale=st.floats(0.1, 10), shift=st.floats(-10, 10))
def test_output_ignores_scale_and_shift_of_a_filter(scale, shift):
    weight = torch.randn(4, 3, 3, 3, dtype=torch.float64)
    torch.testing.assert_close(
        standardize(scale * weight + shift), standardize(weight), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize('eps_inside_root', [False, True])
def test_filters_have_mean_0_and_variance_1(eps_inside_root):
    weight = standardize(torch.randn(4, 3, 3, 3), 1e-8, eps_inside_root)
    torch.testing.assert_close(weight.flatten(1).mean(1), torch.zeros(4), atol=1e-6, rtol=0)
    torch.testing.assert_close(weight.flatten(1).square().mean(1), torch.ones(4))


def test_eps_is_added_to_the_deviation_or_the_variance():
    weight = torch.randn(1, 2, 3, 3) * 1e-3
    centered = weight - weight.mean()
    torch.testing.assert_close(
        standardize(weight, 1e-3), centered / (centered.square().mean().sqrt() + 1e-3)
    )
    torch.testing.assert_close(
        standardize(weight, 1e-3, True), centered / (centered.square().mean() + 1e-3).sqrt()
    )


@pytest.mark.parametrize('eps_inside_root', [False, True])
def test_gradients_of_the_standardization_are_correct(eps_inside_root):
    weight = torch.randn(3, 2, 3, 3, dtype=torch.float64, requires_grad=True)
    check = functools.partial(standardize, eps=1e-2, eps_inside_root=eps_inside_root)
    assert torch.autograd.gradcheck(check, weight)
    assert torch.autograd.gradgradcheck(check, weight)


def test_a_constant_filter_becomes_zero_and_has_a_finite_gradient():
    weight = torch.ones(2, 2, 3, 3, requires_grad=True)
    filters = standardize(weight)
    assert not filters.any()
    assert torch.autograd.grad(filters, weight, torch.randn(2, 2, 3, 3))[0].isfinite().all()


@pytest.mark.nightly
def test_standardization_compiles_to_one_graph():
    weight = torch.randn(3, 2, 3, 3, requires_grad=True)
    grad = torch.randn(3, 2, 3, 3)
    compiled = torch.compile(standardize, backend='aot_eager', fullgraph=True)
    torch.testing.assert_close(
        *(torch.autograd.grad(f(weight), weight, grad)[0] for f in (compiled, standardize))
    )


def test_standardization_takes_fake_tensors():
    with FakeTensorMode():
        weight = torch.empty(3, 2, 3, 3, requires_grad=True)
        assert torch.autograd.grad(standardize(weight).sum(), weight)[0].shape == weight.shape


@given(size=st.integers(1, 40), kernel=st.sampled_from([1, 3, 7]), stride=st.sampled_from([1, 2]))
def test_same_padding_gives_ceil_of_size_over_stride(size, kernel, stride):
    before, after = same_padding(size, kernel, stride)
    assert 0 <= after - before <= 1
    assert (size + before + after - kernel) // stride + 1 == math.ceil(size / stride)


@pytest.mark.parametrize('size', [(8, 8), (7, 7), (8, 7), (7, 8)])
def test_convolution_pads_like_xla(size):
    conv = StdConv2d(3, 4, 3, 2)
    image = torch.randn(1, 3, *size)
    (top, bottom), (left, right) = (((1, 1) if side % 2 else (0, 1)) for side in size)
    expected = conv2d(pad(image, (left, right, top, bottom)), standardize(conv.weight), stride=2)
    torch.testing.assert_close(conv(image), expected)


@pytest.mark.parametrize('size', [(8, 8), (7, 7), (8, 7), (7, 8), (4, 3), (2, 3)])
def test_pool_pads_with_minus_infinity(size):
    image = -torch.rand(1, 2, *size) - 1  # all negative: padding by zero would show
    (top, bottom), (left, right) = (((1, 1) if side % 2 else (0, 1)) for side in size)
    padded = pad(image, (left, right, top, bottom), value=-torch.inf)
    expected = padded.unfold(2, 3, 2).unfold(3, 3, 2).amax((-2, -1))
    assert torch.equal(max_pool(image), expected)


@pytest.mark.parametrize('size', [(8, 8), (7, 7), (8, 7), (5, 12), (3, 3), (4, 4)])
@pytest.mark.parametrize('padding', ['same', 'valid'])
def test_pool_gives_the_same_values_with_and_without_gradients(size, padding):
    image = torch.randn(2, 3, *size)
    image[0, 0, 1, 1] = torch.nan
    before = image.clone()
    out = max_pool(image, padding)  # computed by rows on a CPU
    with_gradients = max_pool(image.clone().requires_grad_(), padding)
    torch.testing.assert_close(out, with_gradients, rtol=0, atol=0, equal_nan=True)
    assert out.is_contiguous()
    torch.testing.assert_close(image, before, rtol=0, atol=0, equal_nan=True)  # is not written to


def test_lecun_normal_has_variance_one_over_fan_in():
    weight = torch.empty(512, 8, 4, 4)
    lecun_normal_(weight)
    assert weight.var().item() == pytest.approx(1 / 128, rel=0.02)
    # Truncated at two deviations of a normal distribution, whose truncated deviation is 0.8796.
    assert weight.abs().max() < 2 / 128**0.5 / 0.8796 * 1.001
