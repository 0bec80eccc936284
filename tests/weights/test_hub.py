"""Folders in the form of Hugging Face's hub, of its cache, and those that are not complete."""

import json

import pytest
import torch
from rejection import rejects
from safetensors.torch import save_file

from vit_plugin.inference.load import load
from vit_plugin.weights.hub import from_hugging_face, hub_config, is_of_hub, weights_in
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.published import Published


def cached(root, *revisions, main=''):
    """A repository in the hub's cache, with a model of each revision."""
    folder = root / 'models--org--name'
    for revision in revisions:
        path = folder / 'snapshots' / revision
        path.mkdir(parents=True)
        (path / 'config.json').write_text(json.dumps(dict(revision=revision)))
        save_file(dict(a=torch.zeros(1)), path / 'model.safetensors')
    if main:
        (folder / 'refs').mkdir()
        (folder / 'refs' / 'main').write_text(main)
    return folder


@pytest.mark.parametrize(
    ('revisions', 'main', 'found'),
    [(['a'], 'a', 'a'), (['a', 'b'], 'b', 'b'), (['a'], '', 'a'), (['a', 'b'], '', None)],
)
def test_a_folder_of_the_cache_is_its_snapshot(revisions, main, found, tmp_path):
    folder = cached(tmp_path, *revisions, main=main)
    wanted = found and folder / 'snapshots' / found / 'model.safetensors'
    assert weights_in(folder) == wanted
    assert is_of_hub(str(folder)) == bool(found)
    if found:
        assert hub_config(str(folder)) == dict(revision=found)


def test_offline_a_name_is_what_the_cache_has(tmp_path, monkeypatch):
    folder = cached(tmp_path, 'a', main='a')
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_CACHE', str(tmp_path))
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_OFFLINE', True)
    assert from_hugging_face('org/name') == folder / 'snapshots' / 'a' / 'model.safetensors'


@pytest.mark.parametrize('content', ['{}', '[]', '{"model_type": "vit",'])
def test_a_config_that_names_no_model(content, tmp_path):
    save_file(dict(a=torch.zeros(1)), tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text(content)
    with rejects('config.json. names no model, neither by model_type'):
        load(tmp_path, device='cpu')


def test_a_config_alone(tmp_path):
    (tmp_path / 'config.json').write_text('{"model_type": "vit"}')
    with rejects('has a config.json and none of model.safetensors'):
        load(tmp_path, device='cpu')


@pytest.mark.parametrize('labels', [['a', 'b'], {'0': 'a', 'x': 'b'}, {'0': 1}])
def test_names_of_classes_that_are_none(labels, tmp_path):
    save_file(dict(a=torch.zeros(1)), tmp_path / 'model.safetensors')
    (tmp_path / 'config.json').write_text(json.dumps(dict(id2label=labels)))
    with rejects('id2label=.*, where names by numbers are expected'):
        _ = Published(open_checkpoint(tmp_path)).names
