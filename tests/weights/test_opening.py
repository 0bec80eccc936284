"""Open checkpoints from every source: files, URLs, hubs, and through MMEngine's loader."""

import functools
import http.server
import json
import logging
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from mmengine.runner import CheckpointLoader, load_checkpoint
from model_states import assert_same_state
from rejection import rejects

from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import FORMATS
from vit_plugin.weights.for_mmengine import reading_safely
from vit_plugin.weights.hub import quiet_retries
from vit_plugin.weights.opening import Checkpoint, open_checkpoint


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder and the local address that serves it. Downloads are cached in another folder."""
    monkeypatch.setattr(torch.hub, 'get_dir', lambda: str(tmp_path / 'hub'))
    (tmp_path / 'served').mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path / 'served')
    handler.log_message = lambda *args: None
    with http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        yield tmp_path / 'served', f'http://127.0.0.1:{httpd.server_address[1]}'
        httpd.shutdown()


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', ['weights.npz', 'weights.safetensors', 'weights.pth'])
def test_addresses_are_loaded_by_code_and_by_configs(server, tiny, name):
    folder, address = server
    source = VisionTransformer(**tiny)
    jax, _ = FORMATS['jax'].export(source.state_dict(), heads=2)
    if name.endswith('.npz'):
        np.savez(folder / name, **{key: value.detach().numpy() for key, value in jax.items()})
    elif name.endswith('.pth'):
        torch.save({'model': source.state_dict(), 'epoch': 3}, folder / name)  # as MAE and DeiT do
    else:
        safetensors.torch.save_file(source.state_dict(), folder / name)
    model = VisionTransformer(**tiny)
    load_weights(model, f'{address}/{name}')
    configured = VisionTransformer(
        **tiny, init_cfg=dict(type='Pretrained', checkpoint=f'{address}/{name}')
    )
    (folder / name).unlink()  # it is cached
    configured.init_weights()
    assert_same_state(source, model)
    assert_same_state(source, configured)


def test_missing_addresses_raise(server):
    with rejects('none.npz cannot be downloaded .*download it by hand'):
        open_checkpoint(f'{server[1]}/none.npz')


def test_checkpoints_of_hugging_face_are_read_or_raise(tmp_path, tiny, monkeypatch):
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError

    source = VisionTransformer(**tiny)
    hub = {'pytorch_model.bin': tmp_path / 'pytorch_model.bin'}
    torch.save(source.state_dict(), hub['pytorch_model.bin'])

    def download(name: str, file: str) -> str:
        if name == 'org/gated':
            raise GatedRepoError.__new__(GatedRepoError)
        if name != 'org/model':
            raise ConnectionError('offline')
        if file not in hub:
            raise EntryNotFoundError.__new__(EntryNotFoundError)
        return str(hub[file])

    monkeypatch.setattr('huggingface_hub.hf_hub_download', download)
    assert load_weights(VisionTransformer(**tiny), 'hf://org/model').format == 'vit_plugin'
    assert CheckpointLoader.load_checkpoint('hf://org/model').keys() == source.state_dict().keys()
    with rejects('hf://org/gated is gated; .*hf auth login'):
        open_checkpoint('hf://org/gated')
    with rejects('hf://org/other cannot be downloaded'):
        open_checkpoint('hf://org/other')
    hub.clear()
    with rejects('hf://org/model has none of model.safetensors, model.safetensors.index.json, '):
        open_checkpoint('hf://org/model')


def test_a_name_that_begins_with_a_tilde_may_be_no_user(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with rejects("There is no checkpoint file '~model.pth'"):
        open_checkpoint('~model.pth')
    torch.save(dict(a=torch.ones(1)), '~model.pth')
    assert [*open_checkpoint('~model.pth').weights] == ['a']


def test_checkpoints_of_timm_are_read_or_raise(monkeypatch, tiny):
    import timm

    create = timm.create_model
    monkeypatch.setattr(
        timm, 'create_model', lambda name, pretrained: create(name, pretrained=False)
    )
    weights = open_checkpoint('timm://test_vit').weights
    assert 'blocks.0.attn.qkv.weight' in weights
    monkeypatch.setattr(timm, 'create_model', create)
    with rejects('timm://vit_base_patch16_22 cannot be downloaded'):
        open_checkpoint('timm://vit_base_patch16_22')
    with rejects('timm has weights for vit_small_patch16_.*dinov3.lvd1689m, '):
        open_checkpoint('timm://vit_smal_patch16_dinov3')


@pytest.mark.parametrize('name', ['vit_tiny_patch16_224', 'vit_tiny_patch16_224.augreg_in21k'])
def test_network_errors_are_not_reported_as_wrong_names(monkeypatch, name):
    def fail(name: str, pretrained: bool) -> None:
        raise OSError('the hub does not answer')

    monkeypatch.setattr('timm.create_model', fail)
    with rejects(r'downloaded \(the hub does not answer\); check the network, or download'):
        open_checkpoint(f'timm://{name}')


# Print MMEngine's readers by their prefixes, before and after the package is imported.
READERS = """
import json
from mmengine.runner import CheckpointLoader
def readers():
    schemes = CheckpointLoader._schemes  # each registration replaces the dict
    return {key: f'{read.__module__}.{read.__name__}' for key, read in schemes.items()}
before = readers()
import vit_plugin.models
print(json.dumps([before, readers()]))
"""


@pytest.mark.nightly
def test_importing_keeps_mmengines_readers():
    """It adds only two schemes, and a pattern for two file formats that MMEngine cannot read."""
    done = subprocess.run(
        [sys.executable, '-W', 'ignore', '-c', READERS], capture_output=True, text=True, check=True
    )
    before, after = json.loads(done.stdout.splitlines()[-1])
    assert {prefix: after[prefix] for prefix in before} == before
    ours = after.keys() - before.keys()
    assert {'timm://', 'hf://'} < ours
    assert len(ours) == 3
    (pattern,) = ours - {'timm://', 'hf://'}
    for name in ('x.npz', '/a/b.safetensors', '~/x.npz', 'C:/x.npz', 'https://host/x.npz'):
        assert next(prefix for prefix in after if re.match(prefix, name)) == pattern
    for name in (
        'x.pth',
        's3://x.npz',
        'open-mmlab:s3://x.npz',
        'https://host/x.pth',
        'openmmlab://x.npz',
    ):
        assert next(prefix for prefix in after if re.match(prefix, name)) in before


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('suffix', ['npz', 'safetensors'])
@pytest.mark.parametrize('scheme', ['', 'http'])
def test_mmengine_reads_npz_and_safetensors(server, tiny, suffix, scheme):
    folder, address = server
    source, model = VisionTransformer(**tiny), VisionTransformer(**tiny)
    state, path = (
        FORMATS['jax'].export(source.state_dict(), heads=2)[0],
        folder / f'weights.{suffix}',
    )
    if suffix == 'npz':
        np.savez(path, **{key: value.detach().numpy() for key, value in state.items()})
    else:
        safetensors.torch.save_file(state, path)
    load_checkpoint(model, f'{address}/{path.name}' if scheme else str(path))
    assert torch.equal(model.pos_embed, source.pos_embed)


class Hostile:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('scheme', ['', 'http', 'openmmlab', 'torchvision'])
def test_reading_safely_runs_no_code_for_any_scheme(server, monkeypatch, scheme):
    """For any model; afterwards MMEngine's reader is restored."""
    folder, address = server
    marker = folder / 'it_ran'
    torch.save(
        {'state_dict': {'weight': torch.ones(2, 2)}, 'meta': Hostile(marker)},
        folder / 'hostile.pth',
    )
    listed = {'hostile': f'{address}/hostile.pth'}
    monkeypatch.setattr('vit_plugin.weights.opening.get_external_models', lambda: listed)
    monkeypatch.setattr('vit_plugin.weights.opening.get_torchvision_models', lambda: listed)
    address_of_scheme = {
        '': str(folder / 'hostile.pth'),
        'http': listed['hostile'],
        'openmmlab': 'openmmlab://hostile',
        'torchvision': 'torchvision://hostile',
    }
    name = address_of_scheme[scheme]
    theirs = CheckpointLoader.load_checkpoint
    with reading_safely():
        with rejects('could run code'):
            load_checkpoint(torch.nn.Linear(2, 2), name)
        with reading_safely(), rejects('could run code'):  # nested
            load_checkpoint(torch.nn.Linear(2, 2), name)
    assert not marker.exists()
    assert CheckpointLoader.load_checkpoint == theirs
    assert isinstance(vars(CheckpointLoader)['load_checkpoint'], classmethod)


def test_addresses_that_cannot_be_read_safely_are_refused():
    with reading_safely():
        with rejects('s3://, which is not read safely'):
            load_checkpoint(torch.nn.Linear(2, 2), 's3://bucket/x.pth')
        with rejects('is not among the checkpoints that MMEngine lists for openmmlab://'):
            load_checkpoint(torch.nn.Linear(2, 2), 'openmmlab://none')


def test_reading_safely_returns_all_that_was_saved(tmp_path):
    torch.save(
        {
            'state_dict': {'weight': torch.ones(2, 2), 'bias': torch.ones(2)},
            'meta': dict(epoch=3),
            'optimizer': dict(state={}, param_groups=[]),
        },
        tmp_path / 'x.pth',
    )
    with reading_safely():
        content = load_checkpoint(torch.nn.Linear(2, 2), str(tmp_path / 'x.pth'))
    assert content.keys() == {'state_dict', 'meta', 'optimizer'}


def test_concurrent_requests_for_a_file_download_it_once(server):
    folder, _ = server
    torch.save({'weight': torch.ones(2)}, folder / 'x.pth')
    requests: list[str] = []
    with http.server.ThreadingHTTPServer(
        ('127.0.0.1', 0), functools.partial(Counting, requests, directory=folder)
    ) as httpd:
        threading.Thread(target=httpd.serve_forever, daemon=True).start()
        url = f'http://127.0.0.1:{httpd.server_address[1]}/x.pth'
        with ThreadPoolExecutor(4) as pool:
            checkpoints = list(pool.map(open_checkpoint, [url] * 4))
        httpd.shutdown()
    assert [checkpoint.weights['weight'].tolist() for checkpoint in checkpoints] == [[1, 1]] * 4
    assert requests == ['/x.pth']


@pytest.mark.parametrize(
    ('content', 'words'),
    [
        (dict(meta=None), None),
        (dict(meta=dict(dataset_meta=None)), None),
        ({}, None),
        (dict(meta=[1]), 'has a list as meta, where a dict is expected'),
        (
            dict(meta=dict(dataset_meta=['a'])),
            'has a list as dataset_meta, where a dict is expected',
        ),
    ],
)
def test_dataset_meta_is_a_dict_or_raises(content, words):
    checkpoint = Checkpoint('x.pth', content)
    if words is None:
        assert checkpoint.dataset_meta == {}
    else:
        with rejects(words):
            assert checkpoint.dataset_meta


class Counting(http.server.SimpleHTTPRequestHandler):
    """Records the requested paths, and answers slowly so that requests overlap."""

    def __init__(self, requests: list[str], *args, **kwargs) -> None:
        self.requests = requests
        super().__init__(*args, **kwargs)

    def do_GET(self) -> None:
        self.requests.append(self.path)
        time.sleep(0.5)
        super().do_GET()

    def log_message(self, *args) -> None:
        pass


def test_retries_of_a_hub_are_logged_once(caplog):
    logger = logging.getLogger('huggingface_hub.utils._http')
    for _ in range(2):
        with quiet_retries():
            for retry in range(5):
                logger.warning('Retrying [Retry %s/5].', retry)
    expected = 'Retrying [Retry 0/5]. Trying again, for up to a minute.'
    assert [record.message for record in caplog.records] == [expected, expected]
    assert not logger.filters
