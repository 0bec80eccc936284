"""Write trained models as folders of transformers, for each supported class."""

import json

import pytest
import torch
from rejection import rejects
from tiny_models import TINY

from vit_plugin.deploy.hub.hub_folder import hub_outputs
from vit_plugin.deploy.hub.publishing import publish
from vit_plugin.inference.load import load

pytestmark = pytest.mark.filterwarnings('ignore')
SCALED = dict(layer_scale_init_value=0.1)
DINOV3_POSITIONS = dict(type='none', rotary=dict(form='centred', planes='halves', temperature=50.0))
CLIP = dict(
    patch_embed=dict(bias=False),
    numerics=dict(base='timm', act_cfg=dict(type='QuickGELU'), norm_cfg=dict(eps=1e-5)),
)
NO_HEAD = dict(head={})
HEAD_ON_TWO_TOKENS = dict(head=dict(in_channels=64))  # class token and average, of width 32 each
DISTILLED = dict(head=dict(type='vit_plugin.DistilledViTClsHead', distillation='none'))
MAP_POOLING = dict(
    neck=dict(mode='map', map_cfg=dict(num_heads=2, feedforward_channels=64, numerics='timm'))
)
MODELS = {
    # class of transformers: arguments of the fixture `saved`
    'ViTForImageClassification': dict(numerics='timm'),
    'ViTModel': dict(numerics='timm', **NO_HEAD),
    'DeiTForImageClassification': dict(encoder=dict(dist_token=1)),
    'DeiTForImageClassificationWithTeacher': dict(
        encoder=dict(dist_token=1), out_type='raw', **DISTILLED
    ),
    'IJepaForImageClassification': dict(with_cls_token=False, out_type='avg_featmap'),
    'Dinov2ForImageClassification': dict(
        encoder=SCALED,
        out_type='raw',
        neck=dict(mode='cls_avg', num_prefix_tokens=1),
        **HEAD_ON_TWO_TOKENS,
    ),
    'Dinov2Model': dict(
        arch=dict(TINY, feedforward_channels=48),
        encoder=dict(SCALED, gated_mlp=True),
        numerics=dict(base='timm', act_cfg=dict(type='SiLU')),
        **NO_HEAD,
    ),
    'Dinov2WithRegistersForImageClassification': dict(encoder=dict(SCALED, reg_token=2)),
    'DINOv3ViTModel': dict(
        encoder=dict(SCALED, reg_token=2, qkv_bias='qv'), pos_embed=DINOV3_POSITIONS, **NO_HEAD
    ),
    'CLIPVisionModel': dict(CLIP, encoder=dict(pre_norm=True), **NO_HEAD),
    'CLIPForImageClassification': dict(
        CLIP, encoder=dict(pre_norm=True, final_norm=False), out_type='avg_featmap'
    ),
    'SiglipForImageClassification': dict(with_cls_token=False, out_type='avg_featmap'),
    'SiglipVisionModel': dict(
        with_cls_token=False, numerics='timm', out_type='raw', **MAP_POOLING, **NO_HEAD
    ),
}
# Class -> another that computes the same with the same weights, and is tried first.
SAME_AS = {'SiglipForImageClassification': 'IJepaForImageClassification'}


@pytest.mark.parametrize('class_name', MODELS)
def test_folders_are_read_back_as_the_same_model(saved, tmp_path, class_name):
    """With the same class names and pixels."""
    checkpoint, folder = saved(**MODELS[class_name]), tmp_path / 'folder'
    summary = publish(str(checkpoint), str(folder), 'hf')
    assert 'read by vit_plugin and transformers' in summary
    content = json.loads((folder / 'config.json').read_text())
    assert content['architectures'] == [SAME_AS.get(class_name, class_name)]
    del content['vit_plugin']  # as in a folder that others have written
    (folder / 'config.json').write_text(json.dumps(content))
    before, after = (load(path, device='cpu', classify=None) for path in (checkpoint, folder))
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(hub_outputs(after, images), hub_outputs(before, images))
    assert after.classes == (before.classes if 'Classification' in class_name else [])
    assert [*after.model.data_preprocessor.mean.flatten()] == pytest.approx([123, 116, 103])


def test_registers_are_written_if_the_table_has_only_rows_of_patches(saved, tmp_path):
    """timm's DINOv2 with registers is such a model."""
    positions = dict(type='learned', prefix_rows=False)
    checkpoint = saved(encoder=dict(SCALED, reg_token=2), pos_embed=positions)
    summary = publish(str(checkpoint), str(tmp_path / 'folder'), 'hf')
    assert 'read by vit_plugin and transformers' in summary


@pytest.mark.parametrize('class_name', MODELS)
def test_transformers_computes_the_same(saved, tmp_path, class_name):
    transformers = pytest.importorskip('transformers', minversion='5')
    checkpoint = saved(**MODELS[class_name])
    publish(str(checkpoint), str(tmp_path / 'folder'), 'hf')
    class_name = SAME_AS.get(class_name, class_name)
    model = getattr(transformers, class_name).from_pretrained(tmp_path / 'folder')
    trained, images = load(checkpoint, device='cpu', classify=None), torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        outputs = model.eval()(pixel_values=images)
        expected = hub_outputs(trained, images)
    if 'Classification' in class_name:
        torch.testing.assert_close(outputs.logits, expected, rtol=0, atol=2e-5)
        assert model.config.id2label == {0: 'cat', 1: 'dog', 2: 'rabbit'}
    elif class_name.startswith(('CLIP', 'Siglip')):
        torch.testing.assert_close(outputs.pooler_output, expected, rtol=0, atol=2e-5)
    else:
        torch.testing.assert_close(outputs.last_hidden_state[:, 0], expected, rtol=0, atol=2e-5)
    assert transformers.AutoImageProcessor.from_pretrained(tmp_path / 'folder')


@pytest.mark.parametrize(
    ('model', 'message'),
    [
        (dict(encoder=dict(qk_norm=True)), 'transformers has no name for blocks.0.attn'),
        (dict(encoder=dict(dist_token=1, **SCALED)), 'has no encoder with .*dist_token.* alone'),
        (dict(arch=dict(TINY, resnet=dict(stage_depths=())), img_size=64), 'has no CNN'),
        (
            dict(
                with_cls_token=False, numerics='authors', out_type='raw', **MAP_POOLING, **NO_HEAD
            ),
            "transformers's features differ by .* of the largest",
        ),
        (
            dict(encoder=dict(SCALED, qkv_bias='qv'), pos_embed=DINOV3_POSITIONS),
            r'no model of transformers of type dinov3_vit classifies .* as here \(cls\)',
        ),
    ],
)
def test_models_that_transformers_lacks_raise(saved, tmp_path, model, message):
    with rejects(f'--to hf: .*{message}'):
        publish(str(saved(**model)), str(tmp_path / 'folder'), 'hf')


MODELS_OF_TIMM = {
    'vit_base_patch16_clip_224': dict(CLIP, encoder=dict(pre_norm=True)),
    'vit_base_patch16_224': dict(encoder=dict(SCALED, reg_token=2), numerics='timm'),
    'deit_base_distilled_patch16_224': MODELS['DeiTForImageClassificationWithTeacher'],
    'vit_giant_patch14_dinov2': dict(MODELS['Dinov2Model'], head=None),
    'vit_small_patch16_dinov3': dict(
        encoder=dict(SCALED, reg_token=2, qkv_bias='qv'),
        pos_embed=DINOV3_POSITIONS,
        numerics=dict(base='timm', norm_cfg=dict(eps=1e-5)),
    ),
}


@pytest.mark.parametrize('name', MODELS_OF_TIMM)
def test_models_are_written_for_timm(saved, tmp_path, name):
    checkpoint, folder = saved(**MODELS_OF_TIMM[name]), tmp_path / 'folder'
    summary = publish(str(checkpoint), str(folder), 'timm')
    assert json.loads((folder / 'config.json').read_text())['architecture'] == name
    difference = float(summary.rpartition('by up to ')[2].split()[0])
    assert difference < 1e-4
