"""Every format: the same outputs as the code that the weights come from, and the same weights after
a round trip.
"""

import re
from collections import OrderedDict

import pytest
import safetensors.torch
import timm
import torch
import torchvision
from authors import NAMES, Golden, assert_alike, assert_same
from mmengine.runner import load_checkpoint
from model_states import assert_same_state
from rejection import rejects
from saved import saved
from tiny_models import TINY, classifier, randomize
from torch import Tensor, nn

from vit_plugin.errors import ConfigError
from vit_plugin.models import TokenPooling, VisionTransformer, load_weights
from vit_plugin.weights import FORMATS, export


def randomized(model: nn.Module) -> nn.Module:
    """The model with random weights, in eval mode."""
    randomize(model).eval()  # MMPretrain's returns nothing
    return model


def golden_classifier(golden: Golden) -> nn.Module:
    """Our classifier for a recorded model of the authors."""
    has_cls = golden.meta['classifier'] == 'token'
    return classifier(
        dict(
            arch=golden.arch,
            img_size=golden.meta['size'],
            with_cls_token=has_cls,
            out_type='cls_token' if has_cls else 'avg_featmap',
        ),
        golden.meta['classes'],
        hidden_dim=golden.meta['rep'],
    )


def golden_weights(golden: Golden, prefix: str = '') -> dict[str, Tensor]:
    """The authors' weights of a recorded model."""
    return {
        prefix + key.removeprefix('params/'): torch.from_numpy(value)
        for key, value in golden.arrays.items()
        if key.startswith('params/')
    }


def modern(key: str) -> str:
    """The key in the numbering of today's flax and big_vision."""
    for old, new in (
        ('LayerNorm_2', 'LayerNorm_1'),
        ('Attention_1', 'Attention_0'),
        ('MlpBlock_3', 'MlpBlock_0'),
    ):
        key = key.replace(old, new)
    return key


def generations(weights: dict[str, Tensor]) -> dict[str, dict[str, Tensor]]:
    """The same weights as each generation of the authors' code names them."""
    modern_weights = {modern(key): value for key, value in weights.items()}
    blocks: dict[str, list[Tensor]] = {}
    for key, value in modern_weights.items():
        if 'encoderblock_' in key:
            _, _, name = key.removeprefix('Transformer/encoderblock_').partition('/')
            blocks.setdefault(f'Transformer/encoderblock/{name}', []).append(value)
    # flax's nn.scan stacks the weights of all blocks.
    scanned = {key: value for key, value in modern_weights.items() if 'encoderblock_' not in key}
    scanned |= {key: torch.stack(values) for key, values in blocks.items()}
    return {
        'of 2020': weights,
        'with optimizer': {f'opt/target/{key}': value for key, value in weights.items()}
        | {'opt/state/step': torch.tensor(3)},
        'with 4-d norms': {
            key: value.reshape(1, 1, 1, -1) if '/gn' in f'/{key}' else value
            for key, value in weights.items()
        },
        'modern': modern_weights,
        'of big_vision before 2022': {
            f'opt/target/{key}'.replace('posembed_input/', ''): value
            for key, value in modern_weights.items()
        },
        'of big_vision': {
            f'params/{key}'.replace('Transformer/posembed_input/', ''): value
            for key, value in modern_weights.items()
        },
        'scanned': {f'params/img/{key}': value for key, value in scanned.items()}
        | {'params/t': torch.tensor(1.0)},
    }


@pytest.mark.parametrize('generation', generations({}))
@pytest.mark.parametrize('name', NAMES)
def test_weights_of_every_generation_give_the_authors_outputs(name, generation):
    golden = Golden(name)
    model = golden_classifier(golden)
    report = load_weights(model, generations(golden_weights(golden))[generation])
    assert report.format == 'jax'
    assert not report.initialized
    with torch.no_grad():
        assert_same(model(golden.images), golden.logits)


@pytest.mark.parametrize('name', NAMES)
def test_npz_round_trip_is_bit_identical(name, tmp_path):
    golden = Golden(name)
    model = golden_classifier(golden)
    load_weights(model, golden_weights(golden))
    state = {key.removeprefix('backbone.'): value for key, value in model.state_dict().items()}
    exported, omitted = FORMATS['jax'].export(state, golden.meta['heads'])
    assert not omitted
    assert exported.keys() == golden_weights(golden).keys()
    for key, value in golden_weights(golden).items():
        assert torch.equal(exported[key], value), key


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', NAMES)
def test_npz_weights_load_through_torch_and_mmengine(name, tmp_path):
    import numpy as np

    golden = Golden(name)
    state = golden_weights(golden)
    backbone = golden_classifier(golden).backbone
    backbone.out_type = 'raw'
    backbone.load_state_dict(state)
    with torch.no_grad():
        assert_same(backbone(golden.images)[0], golden.tokens)
    np.savez(tmp_path / 'weights.npz', **{key: value.numpy() for key, value in state.items()})
    model = golden_classifier(golden)
    load_checkpoint(model, str(tmp_path / 'weights.npz'), strict=True)
    with torch.no_grad():
        assert_same(model(golden.images), golden.logits)
    fresh = VisionTransformer(
        **dict(
            arch=golden.arch,
            img_size=golden.meta['size'],
            out_type='raw',
            init_cfg=dict(type='Pretrained', checkpoint=str(tmp_path / 'weights.npz')),
            with_cls_token=bool(backbone.num_prefix_tokens),
        )
    )
    fresh.init_weights()
    with torch.no_grad():
        assert_same(fresh.eval()(golden.images)[0], golden.tokens)


LAYER_SCALE = dict(layer_scale_init_value=1e-5)
NO_ROWS = dict(type='learned', prefix_rows=False)  # a table for patches only

# timm's model -> the one documented set of arguments that makes ours the same (docs/weights.md).
TIMM = {
    'vit_tiny_patch16_224': dict(arch='Ti/16'),
    'vit_small_patch32_224': dict(arch='S/32'),
    'vit_base_patch16_224': dict(arch='B/16'),
    'vit_base_patch8_224': dict(arch='B/8'),
    'vit_large_patch16_384': dict(arch='L/16', img_size=384),
    'vit_base_patch16_siglip_224': dict(arch='B/16', with_cls_token=False),
    'vit_base_patch16_clip_224': dict(
        arch='B/16',
        patch_embed=dict(bias=False),
        encoder=dict(pre_norm=True),
        numerics=dict(base='timm', norm_cfg=dict(eps=1e-5)),
    ),
    'deit_small_patch16_224': dict(arch='S/16'),
    'deit_base_distilled_patch16_224': dict(arch='B/16', encoder=dict(dist_token=1)),
    'deit3_small_patch16_224': dict(arch='S/16', pos_embed=NO_ROWS, encoder=LAYER_SCALE),
    'vit_small_patch14_dinov2': dict(arch='S/14', img_size=518, encoder=LAYER_SCALE),
    'vit_small_patch14_reg4_dinov2': dict(
        arch='S/14', img_size=518, encoder=dict(LAYER_SCALE, reg_token=4), pos_embed=NO_ROWS
    ),
    'vit_tiny_r_s16_p8_224': dict(arch='R+Ti/16'),
    'vit_small_r26_s32_224': dict(arch='R26+S/32'),
    'vit_base_r50_s16_224': dict(arch='R50+B/16'),
    'vit_large_r50_s32_224': dict(arch='R50+L/32'),
}
QUICK = ('vit_tiny_patch16_224', 'vit_tiny_r_s16_p8_224')


@pytest.mark.parametrize(
    'name',
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.nightly) for name in TIMM],
)
def test_timm_outputs_and_round_trip(name, tmp_path):
    theirs = randomized(timm.create_model(name, num_classes=0))
    ours = VisionTransformer(**{'numerics': 'timm', 'out_type': 'raw', **TIMM[name]}).eval()
    state = theirs.state_dict()
    report = load_weights(ours, saved(theirs, tmp_path))
    assert set(report.ignored) == {key for key in state if key.startswith('attn_pool.')}
    images = torch.randn(1, 3, *ours.img_size)
    with torch.no_grad():
        assert_same(ours(images)[0], theirs.forward_features(images))
    exported, omitted = FORMATS['timm'].export(ours.state_dict(), ours.blocks[0].attn.num_heads)
    assert not omitted
    for key in state.keys() - report.ignored.keys():
        assert torch.equal(exported[key], state[key]), key


def test_timm_siglip_with_map_pooling_has_equal_outputs(tmp_path):
    theirs = randomized(
        timm.models.VisionTransformer(
            32,
            8,
            embed_dim=32,
            depth=2,
            num_heads=2,
            mlp_ratio=2,
            num_classes=0,
            class_token=False,
            global_pool='map',
        )
    )
    ours = classifier(
        dict(arch=TINY, img_size=32, with_cls_token=False, out_type='raw', numerics='timm'),
        classes=0,
        neck=dict(
            type='vit_plugin.TokenPooling',
            mode='map',
            in_channels=32,
            map_cfg=dict(num_heads=2, numerics='timm', feedforward_channels=64),
        ),
    )
    report = load_weights(ours, saved(theirs, tmp_path))
    assert not report.ignored
    assert_alike(lambda images: (ours(images)[0], theirs(images)))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('prefix', ['', 'vision_model.'])
def test_transformers_siglip_has_equal_outputs(prefix):
    """With the prefix, next to its text tower. The pooling's q, k and v are one array there."""
    theirs = hugging_face('SiglipVisionModel')
    ours = siglip('authors')
    state = {
        f'{prefix}{key.removeprefix("vision_model.")}': value
        for key, value in theirs.state_dict().items()
    }
    text = {'text_model.head.weight': torch.ones(2), 'logit_scale': torch.ones(1)} if prefix else {}
    report = load_weights(ours, state | text)
    assert (report.format, report.notes, set(report.ignored)) == ('hf_siglip', [], set(text))
    assert not report.numerics
    assert_alike(lambda images: (ours(images)[0], theirs(images).pooler_output))


def siglip(numerics: str) -> nn.Module:
    """A tiny SigLIP: a backbone without a class token, and map pooling."""
    return randomized(
        nn.Sequential(
            OrderedDict(
                backbone=tiny(with_cls_token=False, numerics=numerics),
                neck=TokenPooling(
                    'map',
                    num_prefix_tokens=0,
                    in_channels=32,
                    map_cfg=dict(num_heads=2, numerics=numerics, feedforward_channels=64),
                ),
            )
        )
    )


def test_map_pooling_loads_from_top_level_names_of_big_vision():
    """While ViT-G was developed, the four parts of the pooling were not yet in a module."""
    source, target = siglip('authors'), siglip('authors')
    state = {key.removeprefix('backbone.'): value for key, value in source.state_dict().items()}
    old = {
        f'opt/target/{modern(key)}'.replace('MAPHead_0/', ''): value
        for key, value in FORMATS['jax'].export(state, heads=2)[0].items()
    }
    assert 'opt/target/probe' in old
    assert 'opt/target/MlpBlock_0/Dense_0/kernel' in old
    assert not load_weights(target, old).ignored
    assert_same_state(source, target)


# timm's models that compute something else than ours under mostly equal names: arguments of a
# small one, arguments of the most similar model of ours, and a key that ours must reject.
BEIT3 = dict(scale_attn_norm=True, scale_mlp_norm=True)
DIFFERENT_MODELS = {
    'beit3_base_patch16_224': (BEIT3, {}, 'blocks.0.attn.norm.weight'),
    'vit_dlittle_patch16_reg1_gap_256': (
        dict(
            attn_layer='diff', class_token=False, global_pool='avg', fc_norm=False, final_norm=True
        ),
        dict(with_cls_token=False, out_type='avg_featmap'),
        'blocks.0.attn.lambda_q1',
    ),
}


@pytest.mark.parametrize('load', [load_weights, VisionTransformer.load_state_dict])
@pytest.mark.parametrize('name', DIFFERENT_MODELS)
def test_different_models_of_timm_are_refused(name, load):
    their_arguments, our_arguments, key = DIFFERENT_MODELS[name]
    theirs = timm.models.VisionTransformer(
        32, 8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2, num_classes=0, **their_arguments
    )
    assert key in theirs.state_dict()
    ours = tiny(**our_arguments)
    # load_state_dict leaves keys outside the encoder to torch, which raises RuntimeError.
    with pytest.raises((ConfigError, RuntimeError), match=re.escape(key)):
        load(ours, theirs.state_dict())


@pytest.mark.nightly
def test_hybrid_on_a_resnet_of_timm_needs_the_same_stem():
    """Equal with timm's CNN as our stem, and rejected without it."""
    theirs = randomized(timm.create_model('vit_small_resnet26d_224', num_classes=0))
    sizes = dict(embed_dims=768, num_layers=8, num_heads=8, feedforward_channels=2304)
    cnn = dict(type='TimmEmbed', patch_size=1, model_name='resnet26d', out_indices=range(5))
    ours, plain = (
        VisionTransformer(
            dict(sizes, patch_size=32), numerics='timm', out_type='raw', **stem
        ).eval()
        for stem in (dict(patch_embed=cnn), {})
    )
    assert not load_weights(ours, theirs.state_dict()).ignored
    images = torch.randn(1, 3, 224, 224)
    with torch.no_grad():
        assert_same(ours(images)[0], theirs.forward_features(images))
    with rejects('patch_embed'):
        load_weights(plain, theirs.state_dict())


def test_timm_siglip_crops_incomplete_patches():
    """As in `vit_so400m_patch14_siglip_384`: 384 px are 27 patches of 14 px, and the last 6 px are
    cut off.
    """
    theirs = randomized(
        timm.models.VisionTransformer(
            30,
            8,
            embed_dim=32,
            depth=2,
            num_heads=2,
            mlp_ratio=2,
            num_classes=0,
            class_token=False,
            global_pool='',
        )
    )
    cfg = dict(img_size=30, with_cls_token=False)
    ours = tiny(**cfg, patch_embed=dict(padding='valid'))
    assert not load_weights(ours, theirs.state_dict()).adapted
    images = torch.randn(1, 3, 30, 30)
    with torch.no_grad():
        assert_same(ours(images)[0], theirs.forward_features(images))
    # With the default padding the grid is larger, and the report lists the resized table.
    assert 'pos_embed' in load_weights(tiny(**cfg), theirs.state_dict()).adapted


def test_timm_classifier_loads_by_load_state_dict():
    theirs = randomized(
        timm.models.VisionTransformer(
            32, 8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=2, num_classes=5
        )
    )
    images = torch.randn(2, 3, 32, 32)
    ours = classifier(dict(arch=TINY, img_size=32, numerics='timm'), 5)
    with torch.no_grad():
        ours.load_state_dict(theirs.state_dict())
        assert_same(ours(images), theirs(images))


def tiny(**kwargs) -> VisionTransformer:
    """A small backbone of ours that returns all tokens, in eval mode."""
    return VisionTransformer(
        **{'arch': TINY, 'img_size': 32, 'out_type': 'raw', 'numerics': 'timm', **kwargs}
    ).eval()


def hugging_face(name: str, **kwargs) -> nn.Module:
    """A tiny random model of a class of transformers."""
    transformers = pytest.importorskip('transformers')
    model = getattr(transformers, name)
    return randomized(
        model(
            model.config_class(
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=64,
                image_size=32,
                patch_size=8,
                **kwargs,
            )
        )
    )


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('name', 'their_arguments', 'our_arguments'),
    [
        ('ViTModel', {}, dict(numerics=dict(base='timm', norm_cfg=dict(eps=1e-12)))),
        (
            'DeiTModel',
            {},
            dict(numerics=dict(base='timm', norm_cfg=dict(eps=1e-12)), encoder=dict(dist_token=1)),
        ),
        ('Dinov2Model', dict(mlp_ratio=2), dict(encoder=LAYER_SCALE)),
        (
            'Dinov2Model',
            dict(mlp_ratio=4, use_swiglu_ffn=True),
            dict(
                arch=dict(TINY, feedforward_channels=88),
                encoder=dict(LAYER_SCALE, gated_mlp=True),
                numerics=dict(base='timm', act_cfg=dict(type='SiLU')),
            ),
        ),
        (
            'Dinov2WithRegistersModel',
            dict(mlp_ratio=2),
            dict(encoder=dict(LAYER_SCALE, reg_token=4), pos_embed=NO_ROWS),
        ),
        (
            'Dinov2WithRegistersModel',
            dict(mlp_ratio=2),
            dict(encoder=dict(LAYER_SCALE, reg_token=4)),
        ),
    ],
)
def test_transformers_outputs_and_format(name, their_arguments, our_arguments, tmp_path):
    theirs, ours = hugging_face(name, **their_arguments), tiny(**our_arguments)
    report = load_weights(ours, saved(theirs, tmp_path))
    form = FORMATS[dict(ViTModel='hf', DeiTModel='hf_deit').get(name, 'hf_dinov2')]
    gated = theirs.config.to_dict().get('use_swiglu_ffn')
    assert report.format == form.name
    assert not report.notes
    assert [field for field in report.numerics if not (gated and 'act_cfg' in field)] == []
    assert_alike(lambda images: (ours(images)[0], theirs(images).last_hidden_state))
    _, omitted, written = export(ours.state_dict(), 'hf', heads=2)
    assert (omitted, written.name) == ([], form.name)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('name', 'mode', 'encoder', 'call'),
    [
        ('ViTModel', 'bicubic_mmpretrain', {}, dict(interpolate_pos_encoding=True)),
        (
            'DeiTModel',
            'bicubic_mmpretrain',
            dict(dist_token=1),
            dict(interpolate_pos_encoding=True),
        ),
        ('Dinov2Model', 'bicubic_mmpretrain', LAYER_SCALE, {}),
        ('Dinov2WithRegistersModel', 'bicubic', dict(LAYER_SCALE, reg_token=4), {}),
    ],
)
def test_transformers_outputs_at_another_size(name, mode, encoder, call):
    theirs = hugging_face(
        name, layer_norm_eps=1e-12, **(dict(mlp_ratio=2) if 'Dino' in name else {})
    )
    ours = tiny(
        encoder=encoder,
        numerics=dict(base='timm', norm_cfg=dict(eps=1e-12)),
        pos_embed=dict(type='learned', interpolate_mode=mode),
    )
    load_weights(ours, theirs.state_dict())
    images = torch.randn(1, 3, 48, 40)
    with torch.no_grad():
        assert_same(ours(images)[0], theirs(images, **call).last_hidden_state)


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('name', 'our_arguments', 'head'),
    [
        ('ViTForImageClassification', dict(out_type='cls_token'), 'ViTClsHead'),
        (
            'DeiTForImageClassificationWithTeacher',
            dict(out_type='raw', encoder=dict(dist_token=1)),
            'DistilledViTClsHead',
        ),
    ],
)
def test_transformers_loads_exported_classifiers(name, our_arguments, head, tmp_path):
    """Exported classifiers in transformers itself. Imports: ``formats/test_hugging_face.py``."""
    numerics = dict(base='timm', norm_cfg=dict(eps=1e-12))
    source = randomized(
        classifier(
            dict(arch=TINY, img_size=32, numerics=numerics, **our_arguments),
            5,
            type=f'vit_plugin.{head}',
        )
    )
    weights, omitted, _ = export(
        {key.removeprefix('backbone.'): value for key, value in source.state_dict().items()},
        'hf',
        heads=2,
    )
    assert not omitted
    blank = hugging_face(name, num_labels=5)
    blank.config.save_pretrained(tmp_path)
    safetensors.torch.save_file(weights, tmp_path / 'model.safetensors', metadata=dict(format='pt'))
    model, loading = type(blank).from_pretrained(tmp_path, output_loading_info=True)
    assert not any(loading.values()), loading
    assert_alike(lambda images: (source(images), model.eval()(images).logits))


def test_hybrid_survives_a_round_trip_with_transformers_names():
    """Compares names only. The outputs of transformers 4.46, the last version with this model, were
    equal within 1e-6 (docs/benchmarks.md).
    """
    arch = dict(TINY, patch_size=1, resnet=dict(stage_depths=(1, 2), width=32))
    source, target = tiny(arch=arch), tiny(arch=arch)
    exported, omitted = FORMATS['hf'].export(source.state_dict(), heads=2)
    assert not omitted
    assert (
        'vit.embeddings.patch_embeddings.backbone.bit.encoder.stages.1.layers.0.downsample.conv.weight'
        in exported
    )
    load_weights(target, exported)
    assert_same_state(source, target)


@pytest.mark.filterwarnings('ignore')
def test_transformers_clip_has_equal_outputs(tmp_path):
    theirs = hugging_face('CLIPVisionModel')
    ours = tiny(
        patch_embed=dict(bias=False),
        encoder=dict(pre_norm=True),
        numerics=dict(act_cfg=dict(type='QuickGELU'), norm_cfg=dict(eps=1e-5)),
    )
    assert load_weights(ours, saved(theirs, tmp_path)).format == 'hf_clip'
    images = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        norm = getattr(theirs, 'vision_model', theirs).post_layernorm
        assert_same(ours(images)[0], norm(theirs(images).last_hidden_state))


def test_clip_of_openai_ignores_its_text_tower():
    ours = tiny(patch_embed=dict(bias=False), encoder=dict(pre_norm=True))
    exported, omitted = FORMATS['clip'].export(ours.state_dict(), heads=2)
    assert not omitted
    assert exported['visual.class_embedding'].shape == (32,)
    text = {
        'positional_embedding': torch.ones(9, 32),
        'logit_scale': torch.ones(()),
        'ln_final.weight': torch.ones(32),
        'transformer.resblocks.0.ln_1.weight': torch.full((32,), 7.0),
        'visual.proj': torch.ones(32, 16),
    }
    loaded = tiny(patch_embed=dict(bias=False), encoder=dict(pre_norm=True))
    report = load_weights(loaded, {**text, **exported})
    assert set(report.ignored) == set(text)
    assert_same_state(ours, loaded)


def test_torchvision_classifier_has_equal_outputs(tmp_path):
    theirs = randomized(torchvision.models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=5))
    ours = classifier(dict(arch=TINY, img_size=32, numerics='timm'), 5)
    report = load_weights(ours, saved(theirs, tmp_path))
    assert (report.format, report.initialized, report.ignored) == ('torchvision', {}, {})
    assert_alike(lambda images: (ours(images), theirs(images)))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    ('layer_cfg', 'our_arguments'),
    [
        ({}, {}),
        (
            dict(ffn_type='swiglu_fused'),
            dict(
                arch=dict(TINY, feedforward_channels=48),
                encoder=dict(LAYER_SCALE, gated_mlp=True),
                numerics=dict(base='timm', act_cfg=dict(type='SiLU')),
            ),
        ),
    ],
)
def test_mmpretrain_outputs_and_round_trip(layer_cfg, our_arguments, tmp_path):
    from mmpretrain.models import VisionTransformer as TheirVisionTransformer

    theirs = randomized(
        TheirVisionTransformer(
            dict(TINY), 32, 8, out_type='raw', layer_scale_init_value=1.0, layer_cfgs=layer_cfg
        )
    )
    ours = tiny(**dict(dict(encoder=LAYER_SCALE), **our_arguments))
    state = theirs.state_dict()
    report = load_weights(ours, saved(theirs, tmp_path))
    assert (report.format, report.ignored) == ('mmpretrain', {})
    assert_alike(lambda images: (ours(images)[0], theirs(images)[0]))
    exported, omitted, _ = export(ours.state_dict(), 'mmpretrain', heads=2)
    assert not omitted
    assert exported.keys() == {f'backbone.{key}' for key in state}
    for key, value in state.items():
        assert torch.equal(exported[f'backbone.{key}'], value), key
    assert not load_weights(ours, exported).ignored  # with the prefix of a classifier


@pytest.mark.parametrize(
    'form', ['jax', 'hf', 'hf_deit', 'hf_siglip', 'torchvision', 'clip', 'hf_clip']
)
def test_formats_without_names_for_gated_mlps_omit_them(form):
    model = tiny(arch=dict(TINY, feedforward_channels=48), encoder=dict(gated_mlp=True))
    _, omitted = FORMATS[form].export(model.state_dict(), heads=2)
    assert 'blocks.1.mlp.fc1.weight' in omitted


@pytest.mark.parametrize(
    ('encoder', 'name'),
    [
        ({}, 'hf'),
        (dict(dist_token=1), 'hf_deit'),
        (LAYER_SCALE, 'hf_dinov2'),
        (dict(LAYER_SCALE, qkv_bias='qv'), 'hf_beit'),
    ],
)
def test_of_a_family_the_format_of_the_model_is_written(encoder, name):
    assert export(tiny(encoder=encoder).state_dict(), 'hf', heads=2)[2].name == name


def test_unknown_formats_to_write_raise():
    with rejects("There is no format 'keras' of weights; choose one of vit_plugin, jax"):
        export({}, 'keras', heads=2)


def test_exported_weights_load_back_in_every_format():
    """For the parts that all these formats have names for."""
    source = classifier(dict(arch=TINY, img_size=32), 5)
    randomized(source)
    state = {key.removeprefix('backbone.'): value for key, value in source.state_dict().items()}
    for name in ('jax', 'timm', 'hf', 'torchvision', 'mmpretrain'):
        exported, omitted = FORMATS[name].export(state, heads=2)
        assert not omitted, name
        assert {
            'jax': 'head/kernel',
            'timm': 'head.weight',
            'hf': 'classifier.weight',
            'mmpretrain': 'head.layers.head.weight',
            'torchvision': 'heads.head.weight',
        }[name] in exported
        loaded = classifier(dict(arch=TINY, img_size=32), 5)
        report = load_weights(loaded, exported)
        assert report.format == name
        assert_same_state(source, loaded)
