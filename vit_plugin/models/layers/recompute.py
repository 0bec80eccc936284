"""Activation checkpointing: recompute activations in the backward pass, to save memory."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

Result = TypeVar('Result')
Recompute = bool | Literal['selective']

aten = torch.ops.aten
# Operations whose results are expensive to compute and small to keep: matrix products, convolutions
# and attention.
SAVED_RESULTS = [
    aten.mm.default,
    aten.addmm.default,
    aten.bmm.default,
    aten.baddbmm.default,
    aten.convolution.default,
    aten._scaled_dot_product_flash_attention.default,
    aten._scaled_dot_product_efficient_attention.default,
    aten._scaled_dot_product_cudnn_attention.default,
    aten._scaled_dot_product_flash_attention_for_cpu.default,
]


def recomputed(with_cp: Recompute, function: Callable[..., Result], *args: Any) -> Result:
    """Call a function with activation checkpointing.

    Args:
        with_cp: False keeps all activations. True keeps only the arguments and recomputes the rest
            in the backward pass. ``'selective'`` also keeps the results of matrix products,
            convolutions and attention.
        function: the function.
        args: its arguments.
    """
    if not with_cp or not torch.is_grad_enabled():
        return function(*args)
    options: dict[str, Any] = {}
    if with_cp == 'selective':
        options['context_fn'] = partial(create_selective_checkpoint_contexts, SAVED_RESULTS)
    return checkpoint(function, *args, use_reentrant=False, **options)
