"""Bilinear interpolation by its definition, to compare operators with."""

import torch


def sample(image: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Values (..., C) of an image (C, H, W) at coordinates (...) in pixels. It is zero outside."""
    rows, columns = (torch.arange(size, dtype=image.dtype) for size in image.shape[1:])
    row_weights = (1 - (y[..., None] - rows).abs()).clamp(min=0)
    column_weights = (1 - (x[..., None] - columns).abs()).clamp(min=0)
    return torch.einsum('chw,...h,...w->...c', image, row_weights, column_weights)


def assert_same_with_gradients(ours, reference, inputs: list[torch.Tensor]) -> None:
    """Assert that two functions have the same value and gradients with respect to all inputs.

    No reference gradient may be zero everywhere.
    """
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    values = ours(*inputs), reference(*inputs)
    torch.testing.assert_close(*values)
    weight = torch.randn_like(values[0])
    for gradient, expected in zip(
        *(torch.autograd.grad((value * weight).sum(), inputs) for value in values), strict=True
    ):
        assert expected.any()
        torch.testing.assert_close(gradient, expected)
