"""Bilinear interpolation by its definition: what the tests of the detection ops compare with."""

import torch


def sample(image: torch.Tensor, y: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Values (..., C) of an image (C, H, W) at coordinates (...); the image is zero outside."""
    rows, columns = (torch.arange(size, dtype=image.dtype) for size in image.shape[1:])
    hats = [
        (1 - (at[..., None] - grid).abs()).clamp(min=0) for at, grid in ((y, rows), (x, columns))
    ]
    return torch.einsum('chw,...h,...w->...c', image, *hats)


def assert_same_with_gradients(ours, reference, inputs: list[torch.Tensor]) -> None:
    """Two functions have the same value and the same gradients by all inputs."""
    inputs = [tensor.detach().requires_grad_() for tensor in inputs]
    values = ours(*inputs), reference(*inputs)
    torch.testing.assert_close(*values)
    weight = torch.randn_like(values[0])
    for ours, reference in zip(
        *(torch.autograd.grad((value * weight).sum(), inputs) for value in values), strict=True
    ):
        assert reference.any()
        torch.testing.assert_close(ours, reference)
