"""Sharded checkpoints of Hugging Face's libraries."""

import json
from pathlib import Path

import pytest
from model_states import assert_same_state
from rejection import rejects
from safetensors.torch import save_file
from tiny_models import TINY

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import open_checkpoint
from vit_plugin.weights.hub_files import HUB_CONFIG
from vit_plugin.weights.reading.shards import INDEX


@pytest.fixture
def model() -> VisionTransformer:
    return VisionTransformer(TINY, img_size=16)


@pytest.fixture
def folder(tmp_path, model) -> Path:
    """The files that huggingface_hub's ``save_torch_state_dict`` writes."""
    state, weight_map = model.state_dict(), {}
    for i in range(3):
        name = f'model-{i + 1:05}-of-00003.safetensors'
        shard = dict(list(state.items())[i::3])
        save_file(shard, tmp_path / name, metadata=dict(format='pt'))
        weight_map |= dict.fromkeys(shard, name)
    (tmp_path / INDEX).write_text(json.dumps(dict(metadata={}, weight_map=weight_map)))
    (tmp_path / HUB_CONFIG).write_text('{}')
    return tmp_path


def test_tensors_of_all_shards_are_read(folder, model):
    weights = open_checkpoint(folder).weights
    assert weights.keys() == model.state_dict().keys()
    other = VisionTransformer(TINY, img_size=16)
    assert not load_weights(other, str(folder / INDEX)).untrained
    assert_same_state(model, other)


def test_missing_shards_raise(folder):
    missing = sorted(folder.glob('*.safetensors'))[1]
    missing.unlink()
    with rejects(f'names {missing.name}, which is not next to it'):
        open_checkpoint(folder)


@pytest.mark.parametrize('content', ['{', '[]', '{"weight_map": {"a": "../secret"}}'])
def test_invalid_indices_raise(folder, content):
    (folder / INDEX).write_text(content)
    with rejects('does not say in weight_map'):
        open_checkpoint(folder)


def test_shards_of_another_model_raise(folder):
    first, second, _ = sorted(folder.glob('*.safetensors'))
    second.write_bytes(first.read_bytes())
    with rejects(rf'names .* in {second.name}, which lacks it; download both again'):
        open_checkpoint(folder)
