"""Names of models in hubs, the cache of Hugging Face's, and what cannot be downloaded."""

import json

import pytest
import torch
from rejection import rejects
from safetensors.torch import save_file

from vit_plugin.weights.hub import download_hugging_face, hub_config, is_of_hub, timm_name
from vit_plugin.weights.hub_files import weights_in
from vit_plugin.weights.opening import open_checkpoint
from vit_plugin.weights.reading.shards import INDEX


def cached(root, *revisions, main=''):
    """A repository in the hub's cache, with a model of each revision.

    ``main`` is the revision that the branch main refers to; '' leaves it out.
    """
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
    ('revisions', 'main', 'expected'),
    [(['a'], 'a', 'a'), (['a', 'b'], 'b', 'b'), (['a'], '', 'a'), (['a', 'b'], '', None)],
)
def test_a_folder_of_the_cache_stands_for_its_main_or_only_snapshot(
    revisions, main, expected, tmp_path
):
    folder = cached(tmp_path, *revisions, main=main)
    if expected is None:
        assert weights_in(folder) is None
        assert not is_of_hub(str(folder))
    else:
        assert weights_in(folder) == folder / 'snapshots' / expected / 'model.safetensors'
        assert is_of_hub(str(folder))
        assert hub_config(str(folder)) == dict(revision=expected)


def test_names_are_found_in_the_cache_offline(tmp_path, monkeypatch):
    folder = cached(tmp_path, 'a', main='a')
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_CACHE', str(tmp_path))
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_OFFLINE', True)
    assert download_hugging_face('org/name') == folder / 'snapshots' / 'a' / 'model.safetensors'


@pytest.mark.parametrize(
    ('source', 'name'),
    [
        ('timm://vit_base_patch16_224.mae', 'vit_base_patch16_224.mae'),
        ('hf://timm/vit_base_patch16_224.mae', 'vit_base_patch16_224.mae'),
        ('hf://timm/ViT-B-16-SigLIP', None),  # of OpenCLIP
        ('hf://org/vit_base_patch16_224', None),
    ],
)
def test_names_of_timm_are_told_from_those_of_open_clip(source, name):
    assert timm_name(source) == name


def test_a_config_that_cannot_be_downloaded_is_logged(tmp_path, monkeypatch):
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    def download(name: str, file: str) -> str:
        if file != 'model.safetensors':
            raise LocalEntryNotFoundError('no route to host') if name == 'org/cut' else absent
        return str(tmp_path / file)

    logged, absent = [], EntryNotFoundError.__new__(EntryNotFoundError)
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_OFFLINE', False)
    monkeypatch.setattr('huggingface_hub.hf_hub_download', download)
    monkeypatch.setattr('vit_plugin.weights.hub.print_log', lambda text, *args: logged.append(text))
    for name in ('org/whole', 'org/cut'):
        assert download_hugging_face(name) == tmp_path / 'model.safetensors'
    assert len(logged) == 1
    assert 'hf://org/cut: its weights are read without config.json' in logged[0]


def test_a_model_without_a_file_that_its_index_names_raises(tmp_path, monkeypatch):
    from huggingface_hub.errors import EntryNotFoundError

    (tmp_path / INDEX).write_text(json.dumps(dict(weight_map=dict(w='part.safetensors'))))

    def download(name: str, file: str) -> str:
        if file != INDEX:
            raise EntryNotFoundError.__new__(EntryNotFoundError)
        return str(tmp_path / file)

    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_OFFLINE', False)
    monkeypatch.setattr('huggingface_hub.hf_hub_download', download)
    with rejects(rf'hf://org/cut cannot be downloaded \({INDEX} names part.safetensors, which is'):
        download_hugging_face('org/cut')


@pytest.mark.parametrize(
    'error', [TimeoutError('timed out'), RuntimeError('peer closed connection\nmore')]
)
@pytest.mark.parametrize('hub', ['hf', 'timm'])
def test_any_error_of_a_hub_becomes_one_sentence(hub, error, monkeypatch):
    """The hubs' libraries let errors of their HTTP clients through."""

    def fail(*args, **kwargs):
        raise error

    monkeypatch.setattr('huggingface_hub.hf_hub_download', fail)
    monkeypatch.setattr('timm.create_model', fail)
    with rejects(rf'{hub}://vit_tiny cannot be .* \({str(error).splitlines()[0]}\)'):
        open_checkpoint(f'{hub}://vit_tiny')
