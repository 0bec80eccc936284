"""A large model of Hugging Face's libraries, in several files."""

import json
from pathlib import Path

import pytest
from model_states import assert_same_state
from rejection import rejects
from safetensors.torch import save_file
from tiny_models import TINY

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import open_checkpoint
from vit_plugin.weights.hub import HUB_CONFIG
from vit_plugin.weights.reading.shards import INDEX


@pytest.fixture
def model() -> VisionTransformer:
    return VisionTransformer(TINY, img_size=16)


@pytest.fixture
def folder(tmp_path, model) -> Path:
    """The files that huggingface_hub's ``save_torch_state_dict`` writes."""
    state, files = model.state_dict(), {}
    for i in range(3):
        name = f'model-{i + 1:05}-of-00003.safetensors'
        part = dict(list(state.items())[i::3])
        save_file(part, tmp_path / name, metadata=dict(format='pt'))
        files |= dict.fromkeys(part, name)
    (tmp_path / INDEX).write_text(json.dumps(dict(metadata={}, weight_map=files)))
    (tmp_path / HUB_CONFIG).write_text('{}')
    return tmp_path


def test_the_tensors_of_all_files(folder, model):
    weights = open_checkpoint(folder).weights
    assert weights.keys() == model.state_dict().keys()
    other = VisionTransformer(TINY, img_size=16)
    assert not load_weights(other, str(folder / INDEX)).untrained
    assert_same_state(model, other)


def test_a_file_that_is_missing_is_named(folder):
    lost = sorted(folder.glob('*.safetensors'))[1]
    lost.unlink()
    with rejects(f'names {lost.name}, which is not next to it'):
        open_checkpoint(folder)


@pytest.mark.parametrize('content', ['{', '[]', '{"weight_map": {"a": "../secret"}}'])
def test_an_index_of_something_else_is_refused(folder, content):
    (folder / INDEX).write_text(content)
    with rejects('does not say in weight_map'):
        open_checkpoint(folder)
