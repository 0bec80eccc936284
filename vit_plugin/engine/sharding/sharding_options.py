"""The setting ``sharding`` of a config: which ranks share a copy of the model, in which dtypes."""

import os
import socket
from dataclasses import dataclass
from typing import Any, Literal

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from vit_plugin.arguments import checked
from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import ConfigError


@checked
@dataclass(frozen=True)
class Sharding:
    """Settings of sharding. In a config this is ``sharding=dict(...)``.

    Attributes:
        group: the ranks that share one copy of the model: ``'all'`` ranks (FSDP), ``'node'``, those
            of one machine, or a number of consecutive ranks (both HSDP). The size of the group must
            divide the number of ranks.
        param_dtype: dtype in which the blocks and the stem are gathered and computed. Their
            outputs, and everything outside of them (norm, neck, head, losses), keep the dtype of
            the parameters. None: that of the parameters everywhere.
        reduce_dtype: dtype in which gradients are averaged. None: that of the parameters.
        reshard_after_forward: whether the blocks' parameters are freed after the forward and
            gathered again for the backward. False takes more memory and less communication.
        cpu_offload: whether parameters, gradients and optimizer state stay in the memory of the
            CPU between their uses.
    """

    group: Literal['all', 'node'] | PositiveInt = 'all'
    param_dtype: Literal['bfloat16'] | None = None
    reduce_dtype: Literal['float32', 'bfloat16'] | None = None
    reshard_after_forward: bool = True
    cpu_offload: bool = False

    def mesh(self, device_type: str) -> DeviceMesh:
        """The ranks as a mesh: (shard, ) if all share one copy, and (replicate, shard) otherwise.

        Raises:
            ConfigError: if the group does not divide the ranks, or if the machines have different
                numbers of ranks.
        """
        ranks = dist.get_world_size()
        if isinstance(self.group, int):
            group = self.group
        else:
            group = ranks if self.group == 'all' else _ranks_per_node()
        if ranks % group:
            raise ConfigError(
                f'sharding: group={self.group!r} does not divide the {ranks} ranks; choose one of '
                f'{", ".join(str(i) for i in range(1, ranks + 1) if ranks % i == 0)}.'
            )
        if group == ranks:
            return init_device_mesh(device_type, (ranks,), mesh_dim_names=('shard',))
        return init_device_mesh(
            device_type, (ranks // group, group), mesh_dim_names=('replicate', 'shard')
        )


def _ranks_per_node() -> int:
    """The number of ranks on each machine. Every rank must call this function.

    Raises:
        ConfigError: if the numbers differ, or if the ranks of a machine are not consecutive.
    """
    # Launchers may start several "nodes" on one host, or hosts may share a name.
    node = socket.gethostname(), os.environ.get('GROUP_RANK'), os.environ.get('SLURM_NODEID')
    nodes: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(nodes, node)
    size = nodes.count(nodes[0])
    if any(
        len({*nodes[i : i + size]}) > 1 or nodes.count(nodes[i]) != size
        for i in range(0, len(nodes), size)
    ):
        raise ConfigError(
            "sharding: group='node' needs the same number of consecutive ranks on each machine; "
            'launch them like that, or give group=NUMBER.'
        )
    return size
