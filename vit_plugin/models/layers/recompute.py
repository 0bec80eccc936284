"""Recompute activations in the backward pass, to save memory."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts

Result = TypeVar('Result')
Recompute = bool | Literal['selective']

aten = torch.ops.aten
# Expensive to compute and small to keep: the results of products, convolutions and attention.
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
    """Call a function.

    Args:
        with_cp: what the backward computes again in place of keeping it: nothing; True: all between
            the function's arguments and its result; ``'selective'``: that, but not the results of
            products, convolutions and attention, which are kept.
        function: the function.
        args: its arguments.
    """
    if not with_cp or not torch.is_grad_enabled():
        return function(*args)
    options: dict[str, Any] = {}
    if with_cp == 'selective':
        options['context_fn'] = partial(create_selective_checkpoint_contexts, SAVED_RESULTS)
    return checkpoint(function, *args, use_reentrant=False, **options)
