"""Write a run as a hub folder that this package, timm and transformers read, without a network."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import timm
import torch
from huggingface_hub import constants
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from rejection import rejects
from safetensors.torch import load_file
from timm.data import create_transform, resolve_data_config
from tiny_models import TINY

import vit_plugin
from vit_plugin.commands import convert, entry
from vit_plugin.deploy.hub.hub_folder import norm_eps
from vit_plugin.deploy.hub.libraries import LIBRARIES, with_crop
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.inference.load import load
from vit_plugin.models import VisionTransformer, load_weights

pytestmark = pytest.mark.filterwarnings('ignore')
PHOTO = np.random.default_rng(0).integers(0, 255, (40, 50, 3), np.uint8)
HYBRID = dict(
    arch=dict(TINY, resnet=dict(stage_depths=())),
    numerics='timm',
    img_size=64,
)
ROTARY = dict(type='none', rotary=dict(form='centred', planes='halves', temperature=50.0))
EPS_OF_DINOV3 = dict(base='timm', norm_cfg=dict(eps=1e-5))
CASES = {
    'class token': dict(),
    'average': dict(with_cls_token=False, out_type='avg_featmap'),
    "timm's numerics": dict(numerics='timm'),
    'hybrid': HYBRID,
    # 88 * (120 / 88) is less than 120 in floating-point numbers.
    'a rounded MLP ratio': dict(arch=dict(TINY, embed_dims=88, feedforward_channels=120)),
    'a name of timm': dict(arch='timm://test_vit', img_size=32),
    "a name of timm's class Eva": dict(arch='timm://vit_tiny_patch16_dinov3_qkvb', img_size=32),
    # timm's models of these kinds have a LayerScale, unless it is turned off.
    'gated': dict(
        encoder=dict(gated_mlp=True), numerics=dict(base='timm', act_cfg=dict(type='SiLU'))
    ),
    'rotary': dict(pos_embed=ROTARY, encoder=dict(qkv_bias='qv'), numerics=EPS_OF_DINOV3),
    'rotary, gated': dict(
        pos_embed=ROTARY,
        encoder=dict(gated_mlp=True, qkv_bias='qv'),
        numerics=dict(EPS_OF_DINOV3, act_cfg=dict(type='SiLU')),
    ),
    'rotary without a class token': dict(
        pos_embed=ROTARY,
        encoder=dict(qkv_bias='qv', reg_token=2),
        with_cls_token=False,
        out_type='avg_featmap',
        numerics=EPS_OF_DINOV3,
    ),
    'BEiT': dict(
        pos_embed=dict(type='none', relative='bias'), encoder=dict(qkv_bias='qv'), numerics='timm'
    ),
}


def assert_reads_as(folder: str | Path, checkpoint: Path) -> None:
    """Check that a folder is loaded as the checkpoint's model, with its classes and pixels."""
    before, after = load(checkpoint, device='cpu'), vit_plugin.load(folder, device='cpu')
    expected, prediction = before(PHOTO), after(PHOTO)
    assert after.classes == before.classes == ['cat', 'dog', 'rabbit']
    assert prediction.names == expected.names
    np.testing.assert_allclose(prediction.scores, expected.scores, rtol=1e-5)


@pytest.mark.parametrize('case', CASES)
def test_timm_reads_the_same_model(saved, tmp_path, case):
    checkpoint, folder = saved(**CASES[case]), tmp_path / 'folder'
    summary = publish(str(checkpoint), str(folder))
    assert summary.startswith(
        f'{folder}: read by vit_plugin and timm, whose logits differ by up to '
    )
    assert_reads_as(folder, checkpoint)
    model = timm.create_model(f'local-dir:{folder}', pretrained=True).eval()
    trained = load(checkpoint, device='cpu')
    images = torch.randn(2, 3, *trained.model.backbone.img_size)
    with torch.no_grad():
        expected = trained.model.head(trained.model.extract_feat(images))
        torch.testing.assert_close(model(images), expected, rtol=0, atol=2e-5)
    pixels = resolve_data_config(model=model)
    assert pixels['mean'] == pytest.approx([123 / 255, 116 / 255, 103 / 255])
    assert create_transform(**pixels)
    assert model.pretrained_cfg['label_names'] == ['cat', 'dog', 'rabbit']


@pytest.mark.parametrize('case', ['class token', "timm's numerics"])
def test_transformers_reads_the_same_model(saved, tmp_path, case):
    transformers = pytest.importorskip('transformers', minversion='5')
    checkpoint = saved(**CASES[case])
    publish(str(checkpoint), str(tmp_path / 'folder'), 'hf')
    publish(str(checkpoint), str(tmp_path / 'timm'))
    assert_reads_as(tmp_path / 'folder', checkpoint)
    trained, images = load(checkpoint, device='cpu'), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        expected = trained.model.head(trained.model.extract_feat(images))
        for folder in ('folder', 'timm'):  # transformers wraps timm's models, too
            model = transformers.AutoModelForImageClassification.from_pretrained(tmp_path / folder)
            logits = model.eval()(pixel_values=images).logits
            torch.testing.assert_close(logits, expected, rtol=0, atol=2e-5)
            assert list(model.config.id2label.values()) == ['cat', 'dog', 'rabbit']
            assert transformers.AutoImageProcessor.from_pretrained(tmp_path / folder)


def test_norms_without_an_eps_have_torchs():
    def eps_of(**norm_cfg: Any) -> float:
        numerics = dict(base='timm', norm_cfg=norm_cfg)
        return norm_eps(VisionTransformer(TINY, img_size=32, numerics=numerics))

    assert eps_of() == 1e-6  # that of timm
    assert eps_of(type='RMSN') == torch.finfo(torch.float32).eps
    assert eps_of(type='RMSN', eps=1e-4) == 1e-4


def test_models_that_no_library_has_are_read_by_vit_plugin(saved, tmp_path):
    checkpoint = saved(encoder=dict(qk_norm=True))
    summary = publish(str(checkpoint), str(tmp_path / 'folder'), dtype='float16')
    assert 'read by vit_plugin, and by no other library, since timm ' in summary
    before, after = load(checkpoint, device='cpu'), load(tmp_path / 'folder', device='cpu')
    np.testing.assert_allclose(after(PHOTO).scores, before(PHOTO).scores, rtol=1e-2)
    with rejects('--to timm: timm .*; leave --to out'):
        publish(str(checkpoint), str(tmp_path / 'other'), 'timm')
    assert not (tmp_path / 'other').exists()


def test_half_precision_of_a_source_is_kept(saved, tmp_path):
    publish(str(saved()), str(tmp_path / 'half'), dtype='float16')
    publish(str(tmp_path / 'half'), str(tmp_path / 'again'))
    weights = load_file(tmp_path / 'again/model.safetensors')
    assert {value.dtype for value in weights.values()} == {torch.float16}


def test_a_segmentor_is_read_by_vit_plugin(tmp_path):
    pytest.importorskip('mmseg')
    head = dict(type='FCNHead', in_channels=32, channels=8, num_convs=1, num_classes=3)
    model = dict(
        type='EncoderDecoder',
        data_preprocessor=dict(type='SegDataPreProcessor', mean=[0, 0, 0], std=[255] * 3),
        backbone=dict(
            type='vit_plugin.VisionTransformer', arch=TINY, img_size=32, out_type='featmap'
        ),
        decode_head=dict(head, norm_cfg=dict(type='BN')),
        test_cfg=dict(mode='whole'),
    )
    steps = [
        dict(type='LoadImageFromFile'),
        dict(type='Resize', scale=(32, 32)),
        dict(type='PackSegInputs'),
    ]
    loader = dict(dataset=dict(type='BaseSegDataset', pipeline=steps))
    cfg = Config(dict(model=model, default_scope='mmseg', test_dataloader=loader))
    register = pytest.importorskip('mmseg.utils').register_all_modules
    register(init_default_scope=False)
    with DefaultScope.overwrite_default_scope('mmseg'):
        state = MODELS.build(model).state_dict()
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=('a', 'b', 'c'), palette='random'))
    torch.save(dict(meta=meta, state_dict=state), tmp_path / 'epoch_1.pth')
    summary = publish(str(tmp_path / 'epoch_1.pth'), str(tmp_path / 'folder'))
    assert 'since this is a model of segmentation' in summary
    before, after = (load(tmp_path / name, device='cpu') for name in ('epoch_1.pth', 'folder'))
    assert after.classes == ['a', 'b', 'c']
    assert np.array_equal(after(PHOTO).map, before(PHOTO).map)


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
    assert_reads_as('hf://me/pets', checkpoint)
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
    with rejects('is there already'):
        publish(str(checkpoint), str(tmp_path / 'full'))
    for target in ('hf://', 'hf://me/', 'hf://me/..'):
        with rejects('names no model; give hf://USER/NAME'):
            publish(str(checkpoint), target)
    with rejects('--to jax: a folder of the hub is read by timm, hf'):
        publish(str(checkpoint), str(tmp_path / 'folder'), 'jax')


def test_center_crops_are_rounded_as_in_the_library():
    crop = dict(type='CenterCrop', crop_size=(9, 9))
    padded = dict(crop, auto_pad=True)
    settings = dict(test_dataloader=dict(dataset=dict(pipeline=[crop, padded, ('a', 1)])))
    steps = with_crop(settings, LIBRARIES['hf'].crop)['test_dataloader']['dataset']['pipeline']
    assert steps == [dict(crop, type='vit_plugin.FloorCenterCrop'), padded, ('a', 1)]
    assert with_crop(steps[0], LIBRARIES['timm'].crop) == crop
