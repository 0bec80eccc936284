"""A hub folder is read as the same model by this package, timm and transformers."""

from pathlib import Path

import numpy as np
import pytest
import timm
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from rejection import rejects
from timm.data import create_transform, resolve_data_config
from tiny_models import TINY

import vit_plugin
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.inference.load import load

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


def test_models_that_no_library_has_are_read_by_vit_plugin(saved, tmp_path):
    checkpoint = saved(encoder=dict(qk_norm=True))
    summary = publish(str(checkpoint), str(tmp_path / 'folder'), dtype='float16')
    assert 'read by vit_plugin, and by no other library, since timm ' in summary
    before, after = load(checkpoint, device='cpu'), load(tmp_path / 'folder', device='cpu')
    np.testing.assert_allclose(after(PHOTO).scores, before(PHOTO).scores, rtol=1e-2)
    with rejects('--to timm: timm .*; leave --to out'):
        publish(str(checkpoint), str(tmp_path / 'other'), 'timm')
    assert not (tmp_path / 'other').exists()


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
