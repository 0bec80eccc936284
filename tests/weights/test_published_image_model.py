"""Build encoders and classifiers from folders of transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from extras import needs_task
from rejection import rejects
from safetensors.torch import save_file
from tiny_models import TINY, randomize

from vit_plugin.inference.load import load
from vit_plugin.models import VisionTransformer
from vit_plugin.models.classifier import Classifier, Parts
from vit_plugin.weights import FORMATS, open_checkpoint
from vit_plugin.weights.published_run import as_run
from vit_plugin.weights.saved_settings import saved_backbone, training_settings

pytestmark = needs_task('classification')

# The `pos_embed` of a DINOv3.
V3 = dict(type='none', rotary=dict(form='centred', planes='halves', temperature=50.0))
SCALED = dict(layer_scale_init_value=0.1, reg_token=2)
# Arguments of our backbone, by the `model_type` of transformers; 'gated' is a DINOv3, too.
ENCODER_ARGUMENTS = {
    'dinov2': dict(encoder=dict(layer_scale_init_value=0.1)),
    'dinov2_with_registers': dict(encoder=SCALED),
    'dinov3_vit': dict(encoder=dict(SCALED, qkv_bias='qv'), pos_embed=V3),
    'gated': dict(
        encoder=dict(SCALED, qkv_bias=False, gated_mlp=True, proj_bias=False),
        pos_embed=V3,
        numerics=dict(base='timm', act_cfg=dict(type='SiLU'), norm_cfg=dict(eps=1e-5)),
    ),
}


def model_of(name: str) -> VisionTransformer:
    """Our random model with the arguments of this name. Two calls give the same."""
    torch.manual_seed(0)
    arguments = dict(dict(numerics='timm'), **ENCODER_ARGUMENTS[name])
    return randomize(VisionTransformer(TINY, img_size=32, **arguments)).eval()


def folder_of(path: Path, name: str, **config: Any) -> Path:
    """A folder of transformers with the weights of ``model_of``, and with this config."""
    state = model_of(name).state_dict()
    if name == 'dinov2_with_registers':  # its table has no rows for the registers
        state['pos_embed'] = torch.cat((state['pos_embed'][:, :1], state['pos_embed'][:, 3:]), 1)
    is_v3 = 'rotary' in ENCODER_ARGUMENTS[name].get('pos_embed', {})
    weights, omitted = FORMATS['hf_dinov3' if is_v3 else 'hf_dinov2'].export(state, heads=2)
    assert not omitted
    path.mkdir()
    save_file(weights, path / 'model.safetensors')
    fields_of_v3 = dict(rope_theta=50.0, use_gated_mlp=name == 'gated') if is_v3 else {}
    defaults = dict(
        fields_of_v3,
        model_type='dinov3_vit' if is_v3 else name,
        num_attention_heads=2,
        image_size=32,
        hidden_act='silu' if name == 'gated' else 'gelu',
        layer_norm_eps=1e-5 if name == 'gated' else 1e-6,
    )
    (path / 'config.json').write_text(json.dumps(defaults | config))
    processor = dict(image_mean=[0.1, 0.2, 0.3], image_std=[0.4, 0.5, 0.6])
    (path / 'preprocessor_config.json').write_text(json.dumps(processor))
    return path


@pytest.mark.parametrize('name', ENCODER_ARGUMENTS)
def test_saved_backbone_computes_the_same(name, tmp_path):
    run = as_run(open_checkpoint(folder_of(tmp_path / 'theirs', name)))
    arguments = saved_backbone(run)
    built = VisionTransformer(**{**arguments, 'img_size': 32}).eval()
    built.load(run)
    images = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        model = model_of(name)
        if name == 'dinov2_with_registers':
            model.pos_embed[:, 1:3] = 0
        torch.testing.assert_close(built(images), model(images))
    settings = training_settings(run)
    assert settings['img_size'] == 32
    assert settings['mean'] == pytest.approx((0.1, 0.2, 0.3), abs=1e-5)
    assert settings['std'] == pytest.approx((0.4, 0.5, 0.6), abs=1e-5)


@pytest.mark.parametrize(
    ('config', 'message'),
    [
        (dict(hidden_act='laplace'), "hidden_act='laplace', which no model here computes"),
        (dict(num_attention_heads=3), 'num_attention_heads=3, which must divide 32 channels'),
        (dict(num_attention_heads='2'), "num_attention_heads='2', where a value such as 6"),
        (dict(value_bias=False), 'query_bias=True and key_bias=False and value_bias=False, of'),
        (dict(mlp_bias=False), 'proj_bias=True and mlp_bias=False, of which'),
        (dict(key_bias=True), 'key_bias=True, but its weights show False'),
        (dict(hidden_size=64), 'hidden_size=64, but its weights show 32'),
        (dict(head_dim=8), 'head_dim=8, which no model here computes; give a model without'),
    ],
)
def test_other_models_are_refused(tmp_path, config, message):
    biases = dict(query_bias=True, key_bias=False, value_bias=True, proj_bias=True, mlp_bias=True)
    folder = folder_of(tmp_path / 'theirs', 'dinov3_vit', **{**biases, **config})
    with rejects(message):
        as_run(open_checkpoint(folder))


@pytest.mark.parametrize(
    ('name', 'model_type', 'message'),
    [
        ('dinov2_with_registers', 'dinov2', "its weights have reg_token, unlike .*'dinov2'"),
        ('dinov3_vit', 'dinov2_with_registers', 'its weights lack pos_embed, unlike each model of'),
        ('dinov2', 'vit', 'its weights have blocks.0.ls1.gamma, unlike each model of'),
    ],
)
def test_weights_of_another_model_type_are_refused(tmp_path, name, model_type, message):
    folder = folder_of(tmp_path / 'theirs', name, model_type=model_type)
    with rejects(message):
        as_run(open_checkpoint(folder))


def test_fields_of_old_releases_of_transformers_are_ignored(tmp_path):
    old = dict(output_past=True, xla_device=None, use_return_dict=True)
    assert as_run(open_checkpoint(folder_of(tmp_path / 'theirs', 'dinov2', **old))).meta


def test_unsupported_folders_are_returned_unchanged(tmp_path):
    for name, config in (
        ('a', dict(model_type='yolos')),
        ('b', dict(architectures=['Dinov2Backbone'])),
    ):
        folder = folder_of(tmp_path / name, 'dinov2', **config)
        assert not as_run(open_checkpoint(folder)).meta


CLASSIFIERS = {
    # model_type: class of transformers, format, arguments of our backbone, our neck
    'vit': ('ViTForImageClassification', 'hf', {}, None),
    'deit': (
        'DeiTForImageClassificationWithTeacher',
        'hf_deit',
        dict(encoder=dict(dist_token=1), out_type='raw'),
        dict(type='vit_plugin.TokenPooling', mode='cls'),
    ),
    'ijepa': (
        'IJepaForImageClassification',
        'hf',
        dict(with_cls_token=False, out_type='avg_featmap'),
        None,
    ),
    'dinov2': (
        'Dinov2ForImageClassification',
        'hf_dinov2',
        dict(encoder=dict(layer_scale_init_value=0.1), out_type='raw'),
        dict(type='vit_plugin.TokenPooling', mode='cls_avg', num_prefix_tokens=1),
    ),
}
NAMES = {'0': 'cat', '1': 'dog', '2': 'owl'}


def classifier_in(folder: Path, model_type: str) -> Classifier:
    """Write random weights of one of :data:`CLASSIFIERS`, and return the same model here."""
    class_name, form, arguments, neck = CLASSIFIERS[model_type]
    numerics = dict(base='timm', norm_cfg=dict(eps=1e-6 if model_type == 'dinov2' else 1e-12))
    ours = Classifier(
        Parts(
            dict(
                type='vit_plugin.VisionTransformer',
                arch=TINY,
                img_size=32,
                numerics=numerics,
                **{'out_type': 'cls_token', **arguments},
            ),
            neck,
            # cls_avg concatenates the class token and the average of the patches.
            (2 if model_type == 'dinov2' else 1) * TINY['embed_dims'],
        ),
        num_classes=len(NAMES),
    )
    if model_type == 'deit':
        ours.head.layers.head_dist = torch.nn.Linear(TINY['embed_dims'], len(NAMES))
    randomize(ours).eval()
    state = {key.removeprefix('backbone.'): value for key, value in ours.state_dict().items()}
    weights, omitted = FORMATS[form].export(state, heads=2)
    assert not omitted
    save_file(weights, folder / 'model.safetensors')
    config = dict(
        model_type=model_type,
        architectures=[class_name],
        num_attention_heads=2,
        image_size=32,
        patch_size=8,
        id2label=NAMES,
        intermediate_size=TINY['feedforward_channels'],
    )
    if model_type == 'dinov2':
        config['mlp_ratio'] = config.pop('intermediate_size') // TINY['embed_dims']
    (folder / 'config.json').write_text(json.dumps(config))
    return ours


@pytest.mark.parametrize('model_type', CLASSIFIERS)
def test_classifiers_have_their_class_names_and_logits(model_type, tmp_path):
    ours = classifier_in(tmp_path, model_type)
    trained = load(tmp_path, device='cpu')
    assert trained.classes == ['cat', 'dog', 'owl']
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        logits = trained.model.head(trained.model.extract_feat(images))
        if model_type == 'deit':
            layers, tokens = ours.head.layers, ours.backbone(images)[-1]
            expected = (layers.head(tokens[:, 0]) + layers.head_dist(tokens[:, 1])) / 2
        else:
            expected = ours(images)
    torch.testing.assert_close(logits, expected)


def test_encoders_give_features_and_raise_as_classifiers(tmp_path):
    folder = folder_of(tmp_path / 'theirs', 'dinov2')
    with rejects('gives features of an image and no classes, since it has no head. vit-plugin em'):
        load(folder, device='cpu')
    trained = load(folder, device='cpu', classify=False)
    image = np.zeros((20, 30, 3), np.uint8)
    assert trained.features([trained.sample(image)]).shape == (1, TINY['embed_dims'])


@pytest.mark.parametrize(
    ('config', 'words'),
    [
        (dict(problem_type='multi_label_classification'), 'problem_type=.*one class; give another'),
        (dict(id2label={'0': 'cat'}), 'names 1 classes in id2label, and its classifier has 3'),
        (dict(image_size=[32, 48]), 'which are 4 x 6 patches, where its position table has 17'),
    ],
)
def test_configs_of_classifiers_that_do_not_fit_raise(tmp_path, config, words):
    classifier_in(tmp_path, 'vit')
    file = tmp_path / 'config.json'
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    with rejects(words):
        load(tmp_path, device='cpu')


POOL = dict(type='vit_plugin.TokenPooling', in_channels=TINY['embed_dims'])
QV = dict(qkv_bias='qv', layer_scale_init_value=0.1)
RMS = dict(type='RMSN', eps=1e-5)
AIMV2 = dict(
    with_cls_token=False,
    encoder=dict(qkv_bias=False, proj_bias=False, gated_mlp=True),
    numerics=dict(base='timm', act_cfg=dict(type='SiLU'), norm_cfg=RMS),
    patch_embed=dict(norm_cfg=RMS),
)
MAP = dict(num_heads=2, feedforward_channels=0, query_proj=False, qkv_bias=False)
BEIT = dict(numerics=dict(base='timm', norm_cfg=dict(eps=1e-12)))
TABLE = dict(pos_embed=dict(type='learned', interpolate_mode='bicubic_mmpretrain'))
ENCODERS = {
    # model_type, class of transformers, format, arguments of our backbone, our neck, config
    'beit': (
        'beit',
        'BeitModel',
        'hf_beit',
        BEIT
        | dict(
            pos_embed=dict(type='none', relative='bias'),
            encoder=dict(QV, final_norm=False),
            out_type='featmap',
        ),
        dict(POOL, mode='avg', norm_cfg=dict(type='LN', eps=1e-12)),
        dict(use_relative_position_bias=True),
    ),
    'data2vec': (
        'data2vec-vision',
        'Data2VecVisionModel',
        'hf_beit',
        BEIT
        | dict(
            pos_embed=dict(type='none', relative='shared_bias'),
            encoder=dict(QV, layer_scale_init_value=0.0),
        ),
        None,
        dict(
            use_shared_relative_position_bias=True, use_mean_pooling=False, layer_scale_init_value=0
        ),
    ),
    'data2vec, without a norm': (
        'data2vec-vision',
        'Data2VecVisionModel',
        'hf_beit',
        BEIT | TABLE | dict(encoder=dict(QV, final_norm=False), out_type='avg_featmap'),
        None,
        dict(use_absolute_position_embeddings=True),
    ),
    'masked': (
        'beit',
        'BeitForMaskedImageModeling',
        'hf_beit_masked',
        BEIT | TABLE | dict(encoder=QV, out_type='avg_featmap'),
        None,
        dict(use_absolute_position_embeddings=True),
    ),
    'pixio': (
        'pixio',
        'PixioModel',
        'hf_pixio',
        TABLE | dict(numerics='timm', encoder=dict(reg_token=3), out_type='raw'),
        dict(POOL, mode='prefix', num_prefix_tokens=4),
        dict(n_cls_tokens=4, mlp_ratio=2),
    ),
    'aimv2': (
        'aimv2_vision_model',
        'Aimv2VisionModel',
        'hf_aimv2',
        dict(AIMV2, out_type='raw', **TABLE),
        dict(POOL, mode='map', map_cfg=MAP),
        {},
    ),
    'aimv2, native, without a head': (
        'aimv2_vision_model',
        'Aimv2VisionModel',
        'hf_aimv2',
        dict(
            AIMV2,
            out_type='avg_featmap',
            pos_embed=dict(type='sincos2d', endpoint=False, spread=False),
        ),
        None,
        dict(is_native=True, use_head=False),
    ),
}


def encoder_in(folder, name, **changes):
    """Write random weights of one of :data:`ENCODERS`, and return the same model here.

    ``changes`` are entries of ``config.json``.
    """
    model_type, class_name, form, arguments, neck, config_of_name = ENCODERS[name]
    backbone = dict(arguments, type='vit_plugin.VisionTransformer', arch=TINY, img_size=32)
    parts = Parts(dict(dict(out_type='cls_token'), **backbone), neck, TINY['embed_dims'])
    ours = randomize(Classifier(parts, num_classes=0)).eval()
    state = {key.removeprefix('backbone.'): value for key, value in ours.state_dict().items()}
    weights, omitted = FORMATS[form].export(state, heads=2)
    assert not omitted
    folder.mkdir()
    save_file(weights, folder / 'model.safetensors')
    config = dict(
        model_type=model_type,
        architectures=[class_name],
        num_attention_heads=2,
        image_size=32,
        patch_size=8,
        **config_of_name,
    )
    (folder / 'config.json').write_text(json.dumps({**config, **changes}))
    return ours


@pytest.mark.parametrize('name', ENCODERS)
def test_encoders_give_the_features_of_our_model(name, tmp_path):
    ours = encoder_in(tmp_path / 'theirs', name)
    model = load(tmp_path / 'theirs', device='cpu', classify=False).model
    for size in ((32, 32), (48, 24)):
        images = torch.randn(2, 3, *size)
        with torch.no_grad():
            torch.testing.assert_close(model.extract_feat(images)[-1], ours(images))


@pytest.mark.parametrize(
    ('name', 'config', 'words'),
    [
        ('beit', dict(use_mean_pooling=False), 'use_mean_pooling=False, but its weights show the'),
        ('beit', dict(use_relative_position_bias=False), 'but its weights show True'),
        ('beit', dict(image_size=[32, 48]), 'whose relative positions exchange rows and columns'),
        ('beit', dict(image_size=48), 'where its table of relative positions has 52 rows'),
        ('masked', dict(use_mean_pooling=False), 'use_mean_pooling=False, and models here compute'),
        ('pixio', dict(n_cls_tokens=8), 'n_cls_tokens=8, but its weights show 4'),
        ('aimv2', dict(use_head=False), 'use_head=False, but its weights show True'),
        ('aimv2', dict(is_native=True), 'is_native=True, but its weights show False'),
    ],
)
def test_configs_that_contradict_the_weights_raise(name, config, words, tmp_path):
    encoder_in(tmp_path / 'theirs', name, **config)
    with rejects(words):
        load(tmp_path / 'theirs', device='cpu', classify=False)
