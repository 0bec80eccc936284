"""A checkpoint of some ranks is read by any others."""

import json
from pathlib import Path

import pytest
import torch
from campaigns import reshard
from safetensors import safe_open

pytest.importorskip('torch', minversion='2.9')


@pytest.mark.nightly
def test_other_ranks_read_it(tmp_path):
    """Two sharded ranks write.

    Three sharded ranks, two of DDP and a plain process read, and the other way.
    """
    reshard.run(tmp_path, [('fsdp', 2), ('plain', 1)], [('fsdp', 3), ('ddp', 2), ('plain', 1)])
    shards = sorted(Path(tmp_path, '0/saved').glob('*.safetensors'))
    sizes = [path.stat().st_size for path in shards]
    assert len(shards) == 2
    assert max(sizes) < 0.6 * sum(sizes)  # each rank writes its part


def test_it_is_plain_safetensors(tmp_path):
    """Others read it too: names as in the state, no pickle."""
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
