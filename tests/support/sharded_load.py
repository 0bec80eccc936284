"""Load weights into a model that is sharded over two ranks, for test_loadable.py."""

import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import open_checkpoint


def load(rank: int, config: dict, folder: str) -> None:
    """Load theirs.npz, weights in the authors' format, into a sharded model in three ways.

    The model must then have the weights of ours.pth, the same ones in our format. This is the
    program of each rank.
    """
    dist.init_process_group(
        'gloo', init_method=f'file://{folder}/rendezvous', rank=rank, world_size=2
    )
    expected = torch.load(Path(folder, 'ours.pth'), weights_only=True)
    for way in ('load_weights', 'load_state_dict', 'meta'):
        with torch.device('meta' if way == 'meta' else 'cpu'):
            model = VisionTransformer(**config)
        mesh = init_device_mesh('cpu', (2,))
        for block in model.blocks:
            fully_shard(block, mesh=mesh)
        fully_shard(model, mesh=mesh)
        if way == 'load_state_dict':
            model.load_state_dict(dict(open_checkpoint(f'{folder}/theirs.npz').weights))
        else:
            load_weights(model, f'{folder}/theirs.npz')
        for name, parameter in model.named_parameters():
            assert isinstance(parameter, DTensor), name
            assert parameter.to_local().shape != parameter.shape or parameter.shape[0] == 1, name
            assert torch.equal(parameter.full_tensor(), expected[name]), name
        model.eval()(torch.zeros(1, 3, 32, 32))
    dist.destroy_process_group()
    sys.stdout.flush()
