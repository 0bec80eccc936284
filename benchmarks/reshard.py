"""Save checkpoints on N ranks and read them on M ranks, sharded or not, and compare bit for bit.

    python benchmarks reshard

The model and the optimizer must be the same for every pair of writer and reader among FSDP2 on 4,
3, 2 and 1 ranks, DDP on 4 and 2 ranks, HSDP on 2 x 2 ranks and a plain process. Each writer saves a
sharded checkpoint folder and a file as MMEngine's. It takes two minutes.
"""

import sys
import tempfile
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / 'tests/support'))
from ranks import on_ranks

from vit_plugin.engine.checkpoints.folder import write_folder
from vit_plugin.engine.checkpoints.read_state import read_state
from vit_plugin.engine.checkpoints.reading import shard_optimizer_state
from vit_plugin.engine.checkpoints.saver import write_checkpoint
from vit_plugin.engine.checkpoints.state import key_by_numbers, on_cpu, split_state
from vit_plugin.engine.sharding import Sharding, shard, without_ddp
from vit_plugin.models import VisionTransformer
from vit_plugin.models.loading.hooks import shard_like
from vit_plugin.weights.for_mmengine import read_complete

# Layout of a model on the ranks -> its sharding. None: every rank has the whole model.
LAYOUTS = {'plain': None, 'ddp': None, 'fsdp': Sharding(), 'hsdp': Sharding(group=2)}
LAYOUTS_AND_RANKS = [
    ('fsdp', 4),
    ('fsdp', 3),
    ('fsdp', 2),
    ('fsdp', 1),
    ('ddp', 4),
    ('ddp', 2),
    ('hsdp', 4),
    ('plain', 1),
]


def build(layout: str, seed: int) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A small ViT with a buffer, and AdamW with two groups.

    Not every size of its tensors is divisible by the number of ranks.
    """
    torch.manual_seed(seed)
    model = VisionTransformer(
        arch=dict(embed_dims=36, num_layers=2, num_heads=2, feedforward_channels=70, patch_size=8),
        img_size=24,
    )
    model.register_buffer('seen', torch.full((5,), float(seed)))
    if LAYOUTS[layout]:
        shard(model, LAYOUTS[layout], 'cpu')
    elif layout == 'ddp':
        model = nn.parallel.DistributedDataParallel(model)
    parameters = list(model.parameters())
    return model, torch.optim.AdamW(
        [dict(params=parameters[::2]), dict(params=parameters[1::2], weight_decay=0.0)]
    )


def step(model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """An update with gradients that are the same in every layout."""
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        whole = torch.randn(parameter.shape, generator=generator)
        parameter.grad = shard_like(whole, parameter)
    optimizer.step()


def capture_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """The state of a training as a checkpoint has it."""
    names = {parameter: name for name, parameter in without_ddp(model).named_parameters()}
    parameters = [
        [names[parameter] for parameter in group['params']] for group in optimizer.param_groups
    ]
    return dict(
        meta=dict(epoch=1, iter=3, run=dict(parameters=parameters)),
        state_dict=without_ddp(model).state_dict(),
        optimizer=optimizer.state_dict(),
    )


def save(folder: Path, layout: str) -> None:
    """On every rank: train for a step, and save a folder and a file of whole tensors."""
    model, optimizer = build(layout, seed=1)
    step(model, optimizer)
    state, main = capture_state(model, optimizer), dist.get_rank() == 0
    if not main:
        without_ddp(model).seen.fill_(-1.0)  # values that are not sharded come from rank 0
    group = dist.new_group(backend='gloo') if dist.get_world_size() > 1 else None
    write_folder(folder / 'saved', *split_state(state, main), group)
    whole = on_cpu(state, copy=False, keep=main)
    if main:
        write_checkpoint(folder / 'saved.pth', whole)


def load(folder: Path, layout: str, source: str) -> None:
    """On every rank: read a checkpoint into another model, and compare it with a plain model.

    The plain model reads the file of whole tensors. Both then train for a step.

    Args:
        folder: the folder of the writer.
        layout: the layout of the reader.
        source: ``saved``, the folder, or ``saved.pth``, the file.
    """
    model, optimizer = build(layout, seed=2)
    group = dist.new_group(backend='gloo') if dist.get_world_size() > 1 else None
    if source == 'saved':
        state = read_state(folder / source, without_ddp(model), None, group)
        state['optimizer'] = key_by_numbers(state['optimizer'], state['meta']['run']['parameters'])
    else:
        state = read_complete(str(folder / source))
        shard_optimizer_state(state['optimizer'], optimizer)
    without_ddp(model).load_state_dict(state['state_dict'])
    optimizer.load_state_dict(state['optimizer'])
    step(model, optimizer)  # training continues
    resumed = on_cpu(capture_state(model, optimizer), copy=True)
    expected = read_complete(str(folder / 'saved.pth'))
    plain_model, plain_optimizer = build('plain', seed=2)
    plain_model.load_state_dict(expected['state_dict'])
    plain_optimizer.load_state_dict(expected['optimizer'])
    step(plain_model, plain_optimizer)
    wanted = capture_state(plain_model, plain_optimizer)
    wrong = [
        name
        for (name, a), (_, b) in zip(named_tensors(resumed), named_tensors(wanted), strict=True)
        if not torch.equal(a, b)
    ]
    assert not wrong, f'{layout} on {dist.get_world_size()} ranks from {source}: {wrong}'


def named_tensors(value: Any, name: str = '') -> Iterator[tuple[str, Tensor]]:
    """All tensors in nested dicts and lists, each with its path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from named_tensors(item, f'{name}.{key}')
    elif isinstance(value, (list, tuple)):
        for i, item in enumerate(value):
            yield from named_tensors(item, f'{name}.{i}')
    elif isinstance(value, Tensor):
        yield name, value


def run(
    folder: Path, writers: Sequence[tuple[str, int]], readers: Sequence[tuple[str, int]]
) -> int:
    """Let each of the readers read what each of the writers wrote. Returns the number of ways."""
    for i, (layout, ranks) in enumerate(writers):
        saved = folder / f'{i}'
        saved.mkdir()
        on_ranks(ranks, saved, save, saved, layout)
    ways = 0
    for (i, _), (layout, ranks), source in product(
        enumerate(writers), readers, ('saved', 'saved.pth')
    ):
        # A rendezvous file of `on_ranks` can be used only once.
        (folder / f'{i}/rendezvous_of_load').unlink(missing_ok=True)
        on_ranks(ranks, folder / f'{i}', load, folder / f'{i}', layout, source)
        ways += 1
    return ways


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        ways = run(Path(folder), LAYOUTS_AND_RANKS, LAYOUTS_AND_RANKS)
    print(
        f'{ways} ways from one layout to another: model, buffer and optimizer bit-identical, '
        'before and after a step'
    )


if __name__ == '__main__':
    main()
