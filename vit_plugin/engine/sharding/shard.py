"""Shard model parameters, gradients and optimizer state by torch's ``fully_shard`` (FSDP2)."""

from dataclasses import replace
from typing import Any

import torch
import torch.distributed as dist
from mmengine.model import BaseAveragedModel, is_model_wrapper
from torch import Tensor, nn
from torch.distributed import fsdp
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import Shard

from vit_plugin.errors import ConfigError
from vit_plugin.models.loading.hooks import shard_like
from vit_plugin.models.protocol import frozen_models, modules_to_shard

from .sharding_options import Sharding

BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.SyncBatchNorm)


def parts_to_shard(model: nn.Module) -> list[nn.Module]:
    """The modules to gather one at a time, as named by ``parts_to_shard()``.

    Raises:
        ConfigError: if no module has ``parts_to_shard()``.
    """
    parts = modules_to_shard(model)
    if not parts:
        raise ConfigError(
            f'sharding: no part of {type(model).__name__} has parts_to_shard(), which names the '
            'modules to gather one at a time; use a vit_plugin.VisionTransformer or TimmBackbone '
            'as the backbone, or leave sharding out.'
        )
    return parts


def shard(model: nn.Module, sharding: Sharding, device_type: str) -> nn.Module:
    """Shard a model in place. Each of :func:`parts_to_shard` is an FSDP unit, all else is one more.

    Frozen models in use, such as a teacher, are sharded too, in their own dtype. They have no
    backward pass to free their parameters, so these are freed after each forward. Each rank keeps
    its part of its current values, so all ranks must have the same values. Every rank must call
    this function. The optimizer must be built afterward.

    Args:
        model: the model, on any device or the meta device.
        sharding: the settings.
        device_type: ``'cuda'`` or ``'cpu'``. The process group must have a backend for it.

    Returns:
        The model. Its parameters are now ``DTensor``.

    Raises:
        ConfigError: if the model averages its own weights, names no parts, or has parameters that
            torch cannot shard or that do not fit the group.
    """
    check_averages(model)
    parts, mesh = parts_to_shard(model), sharding.mesh(device_type)
    _check_parameters(model, mesh)
    ranks, offload_policy = mesh.size(-1), _offload_policy(sharding, device_type)
    for module, policy in _precision_policies(model, parts, sharding).items():
        fsdp.fully_shard(
            module,
            mesh=mesh,
            # The root's parameters are needed first in the backward pass, so they stay gathered.
            reshard_after_forward=module is not model and sharding.reshard_after_forward,
            shard_placement_fn=lambda parameter: Shard(shard_dim(parameter.shape, ranks)),
            mp_policy=policy,
            offload_policy=offload_policy,
        )
    for module in model.modules():
        module.register_load_state_dict_pre_hook(_take_own_part)
    for frozen in frozen_models(model):
        shard(frozen, replace(sharding, param_dtype=None, reshard_after_forward=True), device_type)
    return model


def _precision_policies(
    model: nn.Module, parts: list[nn.Module], sharding: Sharding
) -> dict[nn.Module, 'fsdp.MixedPrecisionPolicy']:
    """The modules to shard, in this order, with their dtypes. The last is the whole model."""
    model_dtype = next(model.parameters()).dtype
    reduce_dtype = getattr(torch, sharding.reduce_dtype or '', None) or model_dtype
    param_dtype = getattr(torch, sharding.param_dtype or '', None)
    # Outputs are cast back to the model's dtype, for norms and losses outside these modules.
    mixed = fsdp.MixedPrecisionPolicy(
        param_dtype, reduce_dtype, model_dtype if param_dtype else None
    )
    unmixed = fsdp.MixedPrecisionPolicy(reduce_dtype=reduce_dtype)
    # The statistics of a BatchNorm are float32, so its weights must be, too. With another
    # `param_dtype`, each is sharded by itself, before the part that contains it. Its input may have
    # either dtype.
    norms = [
        layer
        for part in parts
        for layer in part.modules()
        if param_dtype and _is_affine_batch_norm(layer)
    ]
    return {
        **dict.fromkeys(norms, unmixed),
        **{part: mixed for part in parts if part not in norms},
        model: unmixed,
    }


def _is_affine_batch_norm(module: nn.Module) -> bool:
    return isinstance(module, BATCH_NORMS) and module.affine


def is_sharded(module: nn.Module) -> bool:
    """True if ``fully_shard`` was called on this module."""
    return isinstance(module, fsdp.FSDPModule)


def without_ddp(model: nn.Module) -> nn.Module:
    """The model without DDP's wrapper. A sharded model has none."""
    return model.module if is_model_wrapper(model) else model


def _take_own_part(module: nn.Module, state: dict[str, Any], prefix: str, *args: Any) -> None:
    """``load_state_dict`` hook: keep this rank's part of complete tensors.

    It works on modules of the frameworks, too.
    """
    for name, target in module.named_parameters(recurse=False):
        value = state.get(f'{prefix}{name}')
        if isinstance(value, Tensor):
            state[f'{prefix}{name}'] = shard_like(value, target)


def shard_dim(shape: torch.Size, ranks: int) -> int:
    """The dimension to shard a parameter on: the first, or another one that needs no padding.

    torch pads the first dimension to a multiple of the ranks, also if it is 1 as in ``pos_embed``,
    (1, N, C).
    """
    if shape[0] >= ranks:
        return 0
    return next((dim for dim in range(len(shape) - 1, 0, -1) if shape[dim] % ranks == 0), 0)


def padded_size(shape: torch.Size, ranks: int) -> int:
    """Number of elements of a gathered parameter with its padding."""
    dim = shard_dim(shape, ranks)
    return shape.numel() // max(shape[dim], 1) * -(-shape[dim] // ranks) * ranks


def reshard(model: nn.Module) -> None:
    """Free gathered parameters, so that ``model.parameters()`` are the writable parts again."""
    for module in model.modules():
        if is_sharded(module):
            module.reshard()


def check_averages(model: nn.Module) -> None:
    """Raise a ``ConfigError`` if a model averages its own weights, as MoCo v3 and DINO do."""
    for name, module in model.named_modules():
        if isinstance(module, BaseAveragedModel):
            raise ConfigError(
                f'sharding: {type(model).__name__} updates the averages {name!r} within its step, '
                'where weights are gathered and cannot be written; train it by DDP, without '
                'sharding.'
            )


def _check_parameters(model: nn.Module, mesh: DeviceMesh) -> None:
    """Check that torch can shard all parameters, without too much padding.

    Raises:
        ConfigError: if it cannot. The message names a group of ranks that fits.
    """
    for name, parameter in model.named_parameters():
        if parameter.ndim == 0:
            raise ConfigError(
                f'sharding: torch cannot shard {name!r}, which is a scalar; train this model '
                'without sharding.'
            )
    shapes = {name: parameter.shape for name, parameter in model.named_parameters()}
    ranks = mesh.size(-1)
    name = max(shapes, key=lambda name: _padding(shapes[name], ranks))
    if _is_costly(shapes[name], shapes, ranks):
        fitting = max(
            group
            for group in range(1, ranks)
            if dist.get_world_size() % group == 0
            and not any(_is_costly(shape, shapes, group) for shape in shapes.values())
        )
        raise ConfigError(
            f'sharding: no dimension of {name!r}, {tuple(shapes[name])}, is a multiple of {ranks} '
            f'ranks, so each would gather {ranks} times its size; give group={fitting}.'
        )


def _padding(shape: torch.Size, ranks: int) -> int:
    """Number of elements that torch adds to a parameter."""
    return padded_size(shape, ranks) - shape.numel()


def _is_costly(shape: torch.Size, shapes: dict[str, torch.Size], ranks: int) -> bool:
    """True if a parameter's padding is more than a rank's share of the model."""
    return _padding(shape, ranks) * ranks > sum(size.numel() for size in shapes.values())


def _offload_policy(sharding: Sharding, device_type: str) -> 'fsdp.OffloadPolicy':
    """The policy of ``cpu_offload``, if the process group has a backend for the CPU."""
    if not sharding.cpu_offload:
        return fsdp.OffloadPolicy()
    # The norm of offloaded gradients is summed on the CPU.
    if 'cpu' not in str(dist.get_backend_config()):
        raise ConfigError(
            'sharding: cpu_offload=True needs a backend for the CPU too; set '
            f"env_cfg=dict(dist_cfg=dict(backend='cpu:gloo,{device_type}:{dist.get_backend()}'))."
        )
    return fsdp.CPUOffloadPolicy(pin_memory=device_type != 'cpu')
