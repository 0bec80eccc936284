"""Compute values and gradients of plain torch functions with the interface of a compiled op."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def promoted_to_float32(tensor: Tensor) -> Tensor:
    """Convert to at least float32: torchvision's kernels lack bfloat16, and float16 on a CPU."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def add_gradients(
    function: Callable[..., Tensor],
    inputs: Sequence[Tensor],
    grad_output: Tensor,
    buffers: Sequence[Tensor],
) -> None:
    """Add to each buffer the gradient of an input.

    The function is computed once more for this, so only public, differentiable functions are
    needed. If the function is linear in an input, zeros of the same shape can replace that input.

    Args:
        function: a function of all inputs.
        inputs: floating-point tensors of any shape.
        grad_output: gradient of the function's value, in the shape of that value.
        buffers: one tensor for each input, in the shape of that input.
    """
    with torch.enable_grad():
        leaves = [promoted_to_float32(tensor.detach()).requires_grad_() for tensor in inputs]
        output = function(*leaves)
    if not output.requires_grad:  # constant, such as the pooling of no RoI
        return
    grads = torch.autograd.grad(
        output, leaves, grad_output.to(output.dtype), materialize_grads=True
    )
    for buffer, grad in zip(buffers, grads, strict=True):
        buffer += grad
