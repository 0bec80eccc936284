"""Start a run with a sharded model: check its requirements, initialize and shard."""

from collections import defaultdict

import mmengine.hooks
import torch
import torch.distributed as dist
from mmengine.device import get_device
from mmengine.dist import broadcast
from mmengine.model import BaseDataPreprocessor, BaseTTAModel
from mmengine.runner import Runner
from torch import nn
from torch.distributed.tensor import DTensor, Replicate, Shard, zeros

from vit_plugin.errors import ConfigError, rejecting
from vit_plugin.models.protocol import frozen_models

from .ema import EMAHook
from .shard import is_sharded, shard


def begin_sharded(runner: Runner, to_train: bool) -> None:
    """If ``runner.sharding`` is set, initialize the model, make it equal on all ranks and shard it.

    The optimizer needs the sharded parameters, and MMEngine's ``train`` initializes the model only
    after it has built the optimizer. So call this before ``train``. Until then, the model is
    complete and on the CPU. Without training, the checkpoint has all weights, and nothing is
    initialized.

    Raises:
        ConfigError: if the model cannot be sharded, if its parameters or the ranks do not fit
            ``sharding``, or if a hook copies the model.
    """
    model = runner.model.module if isinstance(runner.model, BaseTTAModel) else runner.model
    if runner.sharding is None or is_sharded(model):
        return
    if any(
        isinstance(hook, mmengine.hooks.EMAHook) and not isinstance(hook, EMAHook)
        for hook in runner.hooks
    ):
        raise ConfigError(
            'custom_hooks: EMAHook copies the model, which a sharded one does not allow; write '
            "type='vit_plugin.EMAHook'."
        )
    if to_train:
        model.init_weights()
    device = get_device()
    ensure_process_group(device)
    for network in (model, *frozen_models(model)):
        for tensor in (*network.parameters(), *network.buffers()):
            broadcast(tensor.detach())
    shard(model, runner.sharding, device)
    for module in runner.model.modules():
        if isinstance(module, BaseDataPreprocessor):
            module.to(device)  # this also sets the target device of the data


def check_sharded_step(optimizer: torch.optim.Optimizer) -> None:
    """Check that the optimizer can step a small sharded parameter. torch's fused SGD cannot.

    Every rank calls this, before the first step of the run.

    Raises:
        ConfigError: if the optimizer cannot step it.
    """
    group = optimizer.param_groups[0]
    mesh = next(
        parameter.device_mesh for parameter in group['params'] if isinstance(parameter, DTensor)
    )
    # Only the last dimension of the mesh shards.
    placements = [*[Replicate()] * (mesh.ndim - 1), Shard(0)]
    small = nn.Parameter(zeros(mesh.size(-1), 1, device_mesh=mesh, placements=placements))
    small.grad = torch.zeros_like(small)
    # A copy of the optimizer, without its parameters and state.
    trial = object.__new__(type(optimizer))
    vars(trial).update(
        vars(optimizer), param_groups=[{**group, 'params': [small]}], state=defaultdict(dict)
    )
    with rejecting(
        f'optim_wrapper.optimizer: {type(optimizer).__name__} does not step sharded parameters',
        'leave out fused=True, use another optimizer, or leave out sharding',
        (NotImplementedError, RuntimeError),
    ):
        trial.step()


def ensure_process_group(device_type: str) -> None:
    """In a process without a launcher, create a process group of one rank."""
    if not dist.is_initialized():
        backend = 'gloo' if device_type == 'cpu' else None  # None is the default of each device
        dist.init_process_group(backend, store=dist.HashStore(), rank=0, world_size=1)
