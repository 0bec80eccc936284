"""Rotations, against products of complex numbers."""

import pytest
import torch

from vit_plugin.models.layers.rotary_attention import rotate


def rotated_by_complex_product(
    x: torch.Tensor, angles: torch.Tensor, interleaved: bool
) -> torch.Tensor:
    """Vectors x (..., d) with plane i rotated by angle i of (..., d/2)."""
    rotated, half = torch.empty_like(x), x.shape[-1] // 2
    for i in range(half):
        first, second = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        expected = torch.complex(x[..., first], x[..., second]) * torch.polar(
            torch.ones_like(angles[..., i]), angles[..., i]
        )
        rotated[..., first], rotated[..., second] = expected.real, expected.imag
    return rotated


def rotation_of(angles: torch.Tensor, interleaved: bool) -> torch.Tensor:
    """The rotation (..., d) by angles (..., d/2), see :mod:`vit_plugin.models.layers.rotary`."""
    return torch.stack((angles.cos(), angles.sin()), dim=-1 if interleaved else -2).flatten(-2)


@pytest.mark.parametrize('interleaved', [True, False])
@pytest.mark.parametrize('heads', [(), (3,)], ids=['all heads alike', 'each head'])
def test_each_plane_is_rotated_by_its_angle(interleaved, heads):
    x, angles = (
        torch.randn(2, 3, 5, 8, dtype=torch.float64),
        torch.randn(*heads, 5, 4, dtype=torch.float64),
    )
    torch.testing.assert_close(
        rotate(x, rotation_of(angles, interleaved), interleaved),
        rotated_by_complex_product(x, angles, interleaved),
    )


@pytest.mark.parametrize('interleaved', [True, False])
def test_eager_and_compiled_rotations_have_equal_values_and_gradients(interleaved):
    torch.compiler.reset()
    x, rotation = torch.randn(2, 3, 5, 8), rotation_of(torch.randn(5, 4), interleaved)
    compiled = torch.compile(rotate, backend='aot_eager', fullgraph=True)
    results = []
    for function in (rotate, compiled):
        leaf, factors = x.clone().requires_grad_(), rotation.clone().requires_grad_()
        rotated = function(leaf, factors, interleaved)
        rotated.square().mul(torch.arange(8.0)).sum().backward()
        results.append((rotated, leaf.grad, factors.grad))
    for eager, other in zip(*results, strict=True):
        torch.testing.assert_close(eager, other)


@pytest.mark.parametrize('interleaved', [True, False])
@pytest.mark.parametrize('dtype', [torch.bfloat16, torch.float16, torch.float64])
def test_the_result_is_rounded_once(interleaved, dtype):
    x, rotation = torch.randn(1, 2, 5, 8).to(dtype), rotation_of(torch.randn(5, 4), interleaved)
    rotated = rotate(x, rotation, interleaved)
    assert rotated.dtype == dtype
    exact = rotate(x.double(), rotation.double(), interleaved)
    # An error of float32 at a rounding limit may give the next number of the dtype.
    assert (rotated.double() - exact).abs().max() <= torch.finfo(dtype).eps * exact.abs().max()


def test_views_into_a_projection_are_rotated():
    """Queries are a view that is not contiguous."""
    x, angles = (
        torch.randn(2, 5, 3 * 24).unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)[0],
        torch.randn(5, 4),
    )
    torch.testing.assert_close(
        rotate(x, rotation_of(angles, True), True), rotated_by_complex_product(x, angles, True)
    )
