"""Checkpoints as folders: all ranks write them, and any number of ranks can read them."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from ranks import on_ranks
from rejection import rejects
from safetensors import safe_open

from benchmarks import reshard
from vit_plugin.engine.checkpoints import folder as folder_module
from vit_plugin.engine.checkpoints.folder import write_folder
from vit_plugin.engine.checkpoints.state import split_state

pytest.importorskip('torch', minversion='2.9')


@pytest.mark.nightly
def test_other_numbers_of_ranks_read_a_folder(tmp_path):
    """Two sharded ranks and one plain process write; three sharded ranks, two of DDP and one plain
    process read.
    """
    reshard.run(tmp_path, [('fsdp', 2), ('plain', 1)], [('fsdp', 3), ('ddp', 2), ('plain', 1)])
    shards = sorted(Path(tmp_path, '0/saved').glob('*.safetensors'))
    sizes = [path.stat().st_size for path in shards]
    assert len(shards) == 2
    assert max(sizes) < 0.6 * sum(sizes)  # each rank writes its part


def test_folder_has_plain_safetensors_and_json(tmp_path):
    """Without pickle, and with the names of the state, so that other programs can read it."""
    reshard.run(tmp_path, [('plain', 1)], [])
    folder = tmp_path / '0/saved'
    assert sorted(path.name for path in folder.iterdir()) == [
        'manifest.json',
        'run.json',
        'shard-00001.safetensors',
    ]
    saved = torch.load(tmp_path / '0/saved.pth', weights_only=True)
    with safe_open(folder / 'shard-00001.safetensors', framework='pt') as file:
        for name, value in saved['state_dict'].items():
            assert torch.equal(file.get_tensor(f'state_dict.{name}'), value)
    assert json.loads((folder / 'run.json').read_text())['meta']['iter'] == 3


def flip_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)


# Damage to the second rank's file after it was written, and the sentence about it.
DAMAGE: dict[str, tuple[Callable[[Path], object], str]] = {
    'other bytes': (flip_bit, 'rank 0: shard-00002.safetensors has other content'),
    'short': (lambda file: os.truncate(file, 100), 'rank 0: shard-00002.safetensors has 100 bytes'),
    'elsewhere': (Path.unlink, 'rank 0: shard-00002.safetensors is missing'),
}


def save_to_bad_disk(parent: Path, name: str) -> None:
    """Save twice, where the second time one rank's file is damaged; the first folder must stay."""
    damage, words = DAMAGE[name]
    model, optimizer = reshard.build('fsdp', seed=1)
    reshard.step(model, optimizer)
    parts = split_state(reshard.capture_state(model, optimizer), main=dist.get_rank() == 0)
    group = dist.new_group(backend='gloo')
    write_folder(parent / 'saved', *parts, group)
    dist.barrier()
    before = sorted((path.name, path.stat().st_mtime_ns) for path in (parent / 'saved').iterdir())
    write = folder_module.write_safetensors

    def write_badly(path: Path, *args: object) -> dict:
        size_and_hash = write(path, *args)
        if dist.get_rank():
            damage(path)
        return size_and_hash

    folder_module.write_safetensors = write_badly
    with rejects(f'cannot be read back .*{words}.*is unchanged'):
        write_folder(parent / 'saved', *parts, group)
    dist.barrier()
    assert before == sorted(
        (path.name, path.stat().st_mtime_ns) for path in (parent / 'saved').iterdir()
    )
    assert not (parent / '.saved.saving').exists()


@pytest.mark.parametrize(
    'name',
    [
        'other bytes',
        pytest.param('short', marks=pytest.mark.nightly),
        pytest.param('elsewhere', marks=pytest.mark.nightly),
    ],
)
def test_damaged_folder_does_not_replace_the_last_one(tmp_path, name):
    on_ranks(2, tmp_path, save_to_bad_disk, tmp_path, name)


def test_missing_tensor_raises(tmp_path, monkeypatch):
    write = folder_module.write_safetensors
    monkeypatch.setattr(
        folder_module,
        'write_safetensors',
        lambda path, items, resolve: write(path, items[:-1], resolve),
    )
    state = dict(a=torch.zeros(3), b=torch.ones(3))
    with rejects('cannot be read back .rank 0: b is missing'):
        write_folder(tmp_path / 'saved', state, dict(meta=dict(epoch=0, iter=1)), None)
    assert not [*tmp_path.iterdir()]
