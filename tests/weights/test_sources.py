import functools
import http.server
import threading

import numpy as np
import pytest
import safetensors.torch
import torch
from mmengine.runner import CheckpointLoader

from vit_plugin.errors import ConfigError
from vit_plugin.models import VisionTransformer
from vit_plugin.weights import FORMATS, load_weights
from vit_plugin.weights.sources import open_weights


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder behind an address of this machine; what is fetched from it is cached in another folder."""
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
def test_address_in_code_and_in_a_config(server, tiny, name):
    folder, address = server
    source = VisionTransformer(**tiny)
    jax, _ = FORMATS['jax'].export(source.state_dict(), 2)
    if name.endswith('.npz'):
        np.savez(folder / name, **{key: value.detach().numpy() for key, value in jax.items()})
    elif name.endswith('.pth'):
        torch.save({'model': source.state_dict(), 'epoch': 3}, folder / name)  # as MAE and DeiT do
    else:
        safetensors.torch.save_file(source.state_dict(), folder / name)
    model = VisionTransformer(**tiny)
    load_weights(model, f'{address}/{name}')
    configured = VisionTransformer(**tiny, init_cfg=dict(type='Pretrained', checkpoint=f'{address}/{name}'))
    (folder / name).unlink()  # it is cached
    configured.init_weights()
    for key, value in source.state_dict().items():
        assert torch.equal(model.state_dict()[key], value)
        assert torch.equal(configured.state_dict()[key], value)


def test_an_address_that_is_not_there(server):
    with pytest.raises(ConfigError, match='none.npz cannot be fetched .*fetch it by hand'):
        open_weights(f'{server[1]}/none.npz')


def test_hugging_face(tmp_path, tiny, monkeypatch):
    from huggingface_hub.errors import EntryNotFoundError
    source = VisionTransformer(**tiny)
    hub = {'pytorch_model.bin': tmp_path / 'pytorch_model.bin'}
    torch.save(source.state_dict(), hub['pytorch_model.bin'])

    def download(name: str, file: str) -> str:
        if name != 'org/model':
            raise ConnectionError('offline')
        if file not in hub:
            raise EntryNotFoundError.__new__(EntryNotFoundError)
        return str(hub[file])

    monkeypatch.setattr('huggingface_hub.hf_hub_download', download)
    assert load_weights(VisionTransformer(**tiny), 'hf://org/model').format == 'vit_plugin'
    assert CheckpointLoader.load_checkpoint('hf://org/model').keys() == source.state_dict().keys()
    with pytest.raises(ConfigError, match='hf://org/other cannot be fetched'):
        open_weights('hf://org/other')
    hub.clear()
    with pytest.raises(ConfigError, match='hf://org/model has none of model.safetensors, pytorch_model.bin'):
        open_weights('hf://org/model')


def test_timm(monkeypatch, tiny):
    import timm
    create = timm.create_model
    monkeypatch.setattr(timm, 'create_model', lambda name, pretrained: create(name, pretrained=False))
    weights = open_weights('timm://test_vit')
    assert 'blocks.0.attn.qkv.weight' in weights
    monkeypatch.setattr(timm, 'create_model', create)
    with pytest.raises(ConfigError, match='timm://vit_base_patch16_22 cannot be had'):
        open_weights('timm://vit_base_patch16_22')
