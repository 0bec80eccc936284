"""A run is written as a hub folder, or uploaded, without a network."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from huggingface_hub import constants
from rejection import rejects
from safetensors.torch import load_file
from tiny_models import TINY

from vit_plugin.commands import convert, entry
from vit_plugin.deploy.hub.hub_folder import norm_eps
from vit_plugin.deploy.hub.libraries import LIBRARIES, with_crop
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.inference.load import load
from vit_plugin.models import VisionTransformer, load_weights

pytestmark = pytest.mark.filterwarnings('ignore')
PHOTO = np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8)


def test_norms_without_an_eps_have_torchs():
    def eps_of(**norm_cfg: Any) -> float:
        numerics = dict(base='timm', norm_cfg=norm_cfg)
        return norm_eps(VisionTransformer(TINY, img_size=32, numerics=numerics))

    assert eps_of() == 1e-6  # that of timm
    assert eps_of(type='RMSN') == torch.finfo(torch.float32).eps
    assert eps_of(type='RMSN', eps=1e-4) == 1e-4


def test_half_precision_of_a_source_is_kept(saved, tmp_path):
    publish(str(saved()), str(tmp_path / 'half'), dtype='float16')
    publish(str(tmp_path / 'half'), str(tmp_path / 'again'))
    weights = load_file(tmp_path / 'again/model.safetensors')
    assert {value.dtype for value in weights.values()} == {torch.float16}


def test_no_paths_of_the_machine_are_published(saved, tmp_path):
    folder = tmp_path / 'folder'
    publish(str(saved()), str(folder))
    for path in folder.iterdir():
        assert b'somebody' not in path.read_bytes(), path
    assert '`start.pth`' in (folder / 'README.md').read_text()


def test_backbone_weights_are_loaded_from_a_folder(saved, tmp_path):
    publish(str(saved()), str(tmp_path / 'folder'))
    backbone = VisionTransformer(
        load(tmp_path / 'folder', device='cpu').cfg.model.backbone.arch, 32
    )
    assert load_weights(backbone, tmp_path / 'folder').format == 'timm'


def test_configs_in_folders_are_validated(saved, tmp_path):
    folder = tmp_path / 'folder'
    publish(str(saved()), str(folder))
    content = json.loads((folder / 'config.json').read_text())
    text = content['vit_plugin']['config']
    content['vit_plugin']['config'] = text.replace('ImageClassifier', 'subprocess.Popen')
    (folder / 'config.json').write_text(json.dumps(content))
    with rejects(r"model.type 'subprocess.Popen' as a part of a model"):
        load(folder, device='cpu')
    content['vit_plugin']['config'] = 3
    (folder / 'config.json').write_text(json.dumps(content))
    with rejects('write the folder again with vit-plugin convert'):
        load(folder, device='cpu')


@pytest.fixture
def hub(tmp_path, monkeypatch) -> Path:
    """A fake hub, which uploads into the cache that huggingface_hub reads offline."""
    monkeypatch.setattr(constants, 'HF_HUB_CACHE', str(tmp_path / 'hub'))
    monkeypatch.setattr(constants, 'HF_HUB_OFFLINE', True)

    class Api:
        def __init__(self, **names: str) -> None:
            self.created: list[str] = []

        def create_repo(self, name: str, private: bool, exist_ok: bool) -> None:
            if not name.startswith('me/'):
                raise PermissionError('403 Forbidden')
            self.created.append(name)

        def upload_folder(self, repo_id: str, folder_path: Path, commit_message: str) -> None:
            assert repo_id in self.created
            repository = tmp_path / 'hub' / f'models--{repo_id.replace("/", "--")}'
            shutil.copytree(folder_path, repository / f'snapshots/{"0" * 40}')
            (repository / 'refs').mkdir()
            (repository / 'refs/main').write_text('0' * 40)

    monkeypatch.setattr('huggingface_hub.HfApi', Api)
    return tmp_path / 'hub'


def test_a_model_is_uploaded_and_loaded_again(saved, hub):
    checkpoint = saved()
    assert publish(str(checkpoint), 'hf://me/pets').startswith('https://huggingface.co/me/pets: ')
    before, after = (load(source, device='cpu') for source in (checkpoint, 'hf://me/pets'))
    assert after.classes == ['cat', 'dog', 'rabbit']
    np.testing.assert_allclose(after(PHOTO).scores, before(PHOTO).scores, rtol=1e-5)
    assert load_weights(VisionTransformer('Ti/8', 32), 'hf://me/pets', skip=('{rest}',))
    with rejects('hf://you/pets cannot be written .*HF_TOKEN'):
        publish(str(checkpoint), 'hf://you/pets')


def test_convert_writes_a_folder_as_a_file(saved, tmp_path):
    folder, file = tmp_path / 'folder', tmp_path / 'weights.pth'
    publish(str(saved()), str(folder))
    call = [str(folder), '--out', str(file)]
    with rejects('has the names of another library; the commands read'):
        convert.main(entry.build_parser(convert).parse_args(call))
    convert.main(entry.build_parser(convert).parse_args([*call, '--to', 'vit_plugin']))
    assert load_weights(VisionTransformer(TINY, 32), file).format == 'vit_plugin'


def test_invalid_targets_and_formats_raise(saved, tmp_path):
    checkpoint = saved()
    (tmp_path / 'full').mkdir()
    (tmp_path / 'full/file').touch()
    with rejects('exists and is not empty'):
        publish(str(checkpoint), str(tmp_path / 'full'))
    for target in ('hf://', 'hf://me/', 'hf://me/..', 'hf://pets', 'hf://me/pets/v1'):
        with rejects('names no model; give hf://USER/NAME'):
            publish(str(checkpoint), target)
    with rejects('--to jax: a hub folder is written for timm, hf'):
        publish(str(checkpoint), str(tmp_path / 'folder'), 'jax')


def test_center_crops_are_rounded_as_in_the_library():
    crop = dict(type='CenterCrop', crop_size=(9, 9))
    padded = dict(crop, auto_pad=True)
    settings = dict(test_dataloader=dict(dataset=dict(pipeline=[crop, padded, ('a', 1)])))
    steps = with_crop(settings, LIBRARIES['hf'].crop)['test_dataloader']['dataset']['pipeline']
    assert steps == [dict(crop, type='vit_plugin.FloorCenterCrop'), padded, ('a', 1)]
    assert with_crop(steps[0], LIBRARIES['timm'].crop) == crop
