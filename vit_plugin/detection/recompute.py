"""Values and gradients of plain torch functions, in the form in which a compiled op gives them."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def wide(tensor: Tensor) -> Tensor:
    """In float32 at least: torchvision's kernels know neither bfloat16 nor, on a CPU, float16."""
    return tensor.to(torch.promote_types(tensor.dtype, torch.float32))


def add_gradients(function: Callable[..., Tensor], inputs: Sequence[Tensor], grad_output: Tensor,
                  buffers: Sequence[Tensor]) -> None:
    """Add to each buffer the gradient of an input, by computing the function once more.

    Only public, differentiable functions are needed for that, at the price of a second forward. Where the
    function is linear in an input, zeros of its shape do as well as the input itself.

    Args:
        function: of all inputs.
        inputs: floating-point tensors, of any shapes.
        grad_output: gradient of the function's value, in its shape.
        buffers: one for each input, in its shape.
    """
    with torch.enable_grad():
        leaves = [wide(tensor.detach()).requires_grad_() for tensor in inputs]
        output = function(*leaves)
    grads = torch.autograd.grad(output, leaves, grad_output.to(output.dtype), materialize_grads=True)
    for buffer, grad in zip(buffers, grads, strict=True):
        buffer += grad
