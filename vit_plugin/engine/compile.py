"""Compile the blocks of a model one by one, instead of the whole model."""

from inspect import signature
from typing import Any

import torch
from torch import nn

from vit_plugin.arguments import Signature, check
from vit_plugin.errors import ConfigError
from vit_plugin.models.protocol import frozen_models, modules_to_shard

COMPILE_OPTIONS = set(signature(torch.compile).parameters) - {'model'}
# torch's limit of graphs per function, 8 by default. All blocks run the same function, which needs
# a graph for each kind of block, for the first size and for all others, and for training and
# validation.
MAX_GRAPHS = 32


def compile_blocks(model: nn.Module, **options: Any) -> int:
    """Let torch compile a model's backbone blocks and CNNs one by one, in place.

    They are compiled at their first forward. Blocks of one kind share a graph, so the first step
    waits for one block and not for all of them. Names, parameters and the state dict stay the same.
    Blocks of frozen models in use, such as a teacher, are compiled too. Everything else (head,
    losses, detector) is not.

    Args:
        model: the model, wrapped, sharded or with adapters.
        options: arguments of :func:`torch.compile`.

    Returns:
        The number of compiled parts.

    Raises:
        ConfigError: if no module of the model names its blocks, or if torch does not know an
            option.
    """
    parts = [
        part
        for network in (model, *frozen_models(model))
        for part in modules_to_shard(network)
        if any(part.children())  # a single layer gains nothing
    ]
    if not parts:
        raise ConfigError(
            'compile.blocks=True needs a backbone that names its blocks, such as '
            f'vit_plugin.VisionTransformer, and {type(model).__name__} has none; write '
            'compile=True.'
        )
    check('compile', Signature.of(torch.compile), (), options)
    if 'recompile_limit' in COMPILE_OPTIONS:  # older versions of torch lack it
        options = dict(recompile_limit=MAX_GRAPHS) | options
    for part in parts:
        part.compile(**options)
    return len(parts)
