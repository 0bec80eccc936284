"""Names of DINOv3, EVA-02 and Perception Encoder: read as timm and transformers read them, and
written for them.
"""

import re
from functools import partial

import pytest
import torch
from model_states import assert_same_state
from rejection import rejects
from saved import saved
from timm.layers import LayerNorm
from timm.models import eva
from torch import Tensor, nn

from benchmarks.zoo import randomize
from vit_plugin.models import VisionTransformer, load_weights
from vit_plugin.weights import export

SMALL = dict(img_size=32, embed_dim=32, depth=2, num_heads=2, num_classes=0)
# Small models of timm with the arguments of published ones.
DINOV3 = dict(
    SMALL,
    patch_size=8,
    use_rot_pos_emb=True,
    use_abs_pos_emb=False,
    rope_type='dinov3',
    init_values=1e-5,
    rope_rotate_half=True,
    num_reg_tokens=4,
    use_fc_norm=False,
    rope_temperature=100.0,
)
MODELS = {
    'dinov3': DINOV3,
    'dinov3 7b': dict(DINOV3, qkv_bias=False, swiglu_mlp=True, swiglu_align_to=8),
    'eva02 small': dict(
        SMALL, patch_size=8, swiglu_mlp=True, use_rot_pos_emb=True, ref_feat_shape=(4, 4)
    ),
    'eva02 base': dict(
        SMALL,
        patch_size=8,
        swiglu_mlp=True,
        scale_mlp=True,
        scale_attn_inner=True,
        qkv_fused=False,
        use_rot_pos_emb=True,
        ref_feat_shape=(4, 4),
        global_pool='token',
    ),
    'eva giant': dict(SMALL, patch_size=8),
    'pe': dict(
        SMALL,
        patch_size=8,
        use_pre_transformer_norm=True,
        use_rot_pos_emb=True,
        attn_type='rope',
        rope_grid_offset=1.0,
        rope_grid_indexing='xy',
        ref_feat_shape=(4, 4),
        init_values=0.1,
        global_pool='map',
        attn_pool_num_heads=2,
        norm_layer=partial(LayerNorm, eps=1e-5),
    ),
}
# timm's names -> those of the authors, which timm's eva.checkpoint_filter_fn turns back.
AUTHORS = {
    'dinov3': {'reg_token': 'storage_tokens'},
    'dinov3 7b': {
        'reg_token': 'storage_tokens',
        'fc1_g': 'w1',
        'fc1_x': 'w2',
        'mlp.fc2': 'mlp.w3',
    },
    'eva02 base': {
        'fc1_g': 'w1',
        'fc1_x': 'w2',
        'mlp.fc2': 'mlp.w3',
        'mlp.norm': 'mlp.ffn_ln',
        'attn.norm': 'attn.inner_attn_ln',
        'q_proj.bias': 'q_bias',
        'v_proj.bias': 'v_bias',
    },
}


def timm_model(name: str) -> nn.Module:
    """timm's model with random weights, by its key in ``MODELS``."""
    torch.manual_seed(0)
    model = eva.Eva(**MODELS[name]).eval()
    randomize(model)
    return model


def our_model(monkeypatch, theirs: nn.Module) -> VisionTransformer:
    """Our model with the arguments of timm's."""
    monkeypatch.setattr('vit_plugin.zoo.definition.build_on_meta', lambda name: theirs)
    return VisionTransformer('timm://of_this_test', out_type='raw').eval()


def as_the_authors(name: str, state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Give timm's weights the names of a model's authors."""
    renamed = {}
    for key, value in state.items():
        for old, new in AUTHORS[name].items():
            key = key.replace(old, new)
        if name.startswith('dinov3'):
            key = re.sub(r'gamma_(\d)', r'ls\1.gamma', key)
        renamed[key] = value
    if name == 'dinov3':  # a bias of the keys, which a mask sets to zero
        for i in range(2):
            q = renamed.pop(f'blocks.{i}.attn.q_bias')
            v = renamed.pop(f'blocks.{i}.attn.v_bias')
            renamed[f'blocks.{i}.attn.qkv.bias'] = torch.cat((q, torch.full_like(q, 7.0), v))
            renamed[f'blocks.{i}.attn.qkv.bias_mask'] = torch.cat((q, q, v)) * 0
    return renamed


@pytest.mark.parametrize('name', MODELS)
def test_weights_with_timms_names_give_timms_features(monkeypatch, name, tmp_path):
    theirs, images = timm_model(name), torch.randn(1, 3, 32, 32)
    model = our_model(monkeypatch, theirs)
    report = load_weights(model, saved(theirs, tmp_path))
    assert not report.numerics
    with torch.no_grad():
        torch.testing.assert_close(
            model(images)[0], theirs.forward_features(images), rtol=1e-5, atol=1e-5
        )


@pytest.mark.parametrize('name', AUTHORS)
def test_weights_with_the_authors_names_are_the_same(monkeypatch, name):
    theirs = timm_model(name)
    state = as_the_authors(name, theirs.state_dict())
    read = eva.checkpoint_filter_fn(dict(state), theirs)
    assert_same_state(theirs, read)  # timm reads these names, too
    first, second = (our_model(monkeypatch, theirs) for _ in range(2))
    load_weights(first, theirs.state_dict())
    load_weights(second, dict(state, mask_token=torch.zeros(1, 32)))
    assert_same_state(first, second)


@pytest.mark.parametrize('name', ['dinov3', 'eva02 small', 'eva02 base', 'eva giant'])
def test_exported_weights_have_timms_names(monkeypatch, name):
    theirs = timm_model(name)
    model = our_model(monkeypatch, theirs)
    load_weights(model, theirs.state_dict())
    exported, omitted, _ = export(model.state_dict(), 'timm', heads=2)
    assert not omitted
    expected = {
        key: value for key, value in theirs.state_dict().items() if not key.startswith('fc_norm')
    }
    assert exported.keys() == expected.keys()
    assert all(torch.equal(exported[key], value) for key, value in expected.items())


def test_biases_of_zeros_are_ignored(monkeypatch):
    """The larger DINOv3 were published with biases of zeros, which timm's models lack."""
    theirs = timm_model('dinov3')
    state = theirs.state_dict()
    for key in state:
        if key.endswith(('q_bias', 'v_bias')):
            state[key].zero_()
    bare = eva.Eva(**dict(DINOV3, qkv_bias=False))
    report = load_weights(our_model(monkeypatch, bare), state)
    assert report.ignored['blocks.1.attn.q_bias'] == 'all zeros, which changes nothing'
    state['blocks.1.attn.q_bias'][0] = 1.0
    with rejects(r"blocks.1.attn.q_bias \(needs encoder=dict\(qkv_bias='qv'\)\)"):
        load_weights(our_model(monkeypatch, bare), state)


def test_exporting_options_that_timm_lacks_raises(tiny):
    with rejects('num_kv_heads'):
        export(
            VisionTransformer(**tiny, encoder=dict(num_kv_heads=1)).state_dict(), 'timm', heads=2
        )


@pytest.mark.parametrize('gated', [False, True])
def test_transformers_dinov3_has_equal_outputs(monkeypatch, gated, tmp_path):
    transformers = pytest.importorskip('transformers', minversion='4.56')
    torch.manual_seed(0)
    theirs = transformers.DINOv3ViTModel(
        transformers.DINOv3ViTConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_register_tokens=4,
            image_size=32,
            patch_size=8,
            use_gated_mlp=gated,
            hidden_act='silu' if gated else 'gelu',
        )
    ).eval()
    randomize(theirs)
    cfg = (
        dict(DINOV3, swiglu_mlp=True, mlp_ratio=2, swiglu_align_to=8)
        if gated
        else dict(DINOV3, mlp_ratio=2)
    )
    model = our_model(monkeypatch, eva.Eva(**cfg, norm_layer=partial(LayerNorm, eps=1e-5)))
    report = load_weights(model, saved(theirs, tmp_path))
    assert report.format == 'hf_dinov3'
    assert set(report.ignored) == {'embeddings.mask_token'}
    for size in ((32, 32), (48, 40), (16, 72)):
        images = torch.randn(1, 3, *size)
        with torch.no_grad():
            torch.testing.assert_close(
                model(images)[0], theirs(images).last_hidden_state, rtol=1e-4, atol=1e-5
            )
    _, omitted, form = export(model.state_dict(), 'hf', heads=2)
    assert (omitted, form.name) == ([], 'hf_dinov3')


SIZES = ((224, 224), (518, 518), (333, 800))


@pytest.fixture
def dinov3(monkeypatch) -> tuple[nn.Module, VisionTransformer]:
    """timm's model and ours with the same weights, in float64.

    timm needs images of whole patches of 16 pixels, and ours crops others.
    """
    torch.manual_seed(0)
    cfg = dict(
        DINOV3, img_size=224, patch_size=16, mlp_ratio=2, norm_layer=partial(LayerNorm, eps=1e-5)
    )
    theirs = eva.Eva(**cfg, dynamic_img_size=True).eval()
    randomize(theirs)
    monkeypatch.setattr('vit_plugin.zoo.definition.build_on_meta', lambda name: theirs)
    model = VisionTransformer(
        'timm://of_this_test', out_type='raw', patch_embed=dict(padding='valid')
    ).eval()
    load_weights(model, theirs.state_dict())
    rope = theirs.rope
    theirs.double()
    rope.float()  # as in every float32 model
    return theirs, model.double()


def cropped(images: Tensor) -> Tensor:
    """The part of images that whole patches of 16 pixels cover."""
    return images[..., : images.shape[-2] // 16 * 16, : images.shape[-1] // 16 * 16]


@pytest.mark.parametrize('size', SIZES)
def test_dinov3_gives_timms_features(dinov3, size):
    (theirs, model), images = dinov3, torch.randn(1, 3, *size, dtype=torch.float64)
    with torch.no_grad():
        torch.testing.assert_close(
            model(images)[0], theirs.forward_features(cropped(images)), rtol=0, atol=0
        )


@pytest.mark.parametrize('size', SIZES)
def test_dinov3_gives_transformers_features(dinov3, size):
    """They differ only by transformers' angles: it multiplies coordinates by reciprocals in
    float32, where the authors divide by periods. With our table, both give the same features.
    """
    transformers = pytest.importorskip('transformers', minversion='5')
    (_, model), images = dinov3, torch.randn(1, 3, *size, dtype=torch.float64)
    theirs = transformers.DINOv3ViTModel(
        transformers.DINOv3ViTConfig(
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=2,
            num_register_tokens=4,
            image_size=224,
            patch_size=16,
        )
    ).eval()
    randomize(theirs)
    load_weights(model, theirs.state_dict())
    theirs.double().rope_embeddings.float()
    with torch.no_grad():
        features = model(images)[0]
        torch.testing.assert_close(theirs(images).last_hidden_state, features, rtol=0, atol=1e-8)
        rotation = model.rope((size[0] // 16, size[1] // 16), images)[0][
            model.num_prefix_tokens :
        ].chunk(2, dim=-1)
        table = theirs.rope_embeddings(images.float())
        theirs.rope_embeddings.forward = lambda pixel_values: tuple(
            part.double().repeat(1, 2) for part in rotation
        )
        torch.testing.assert_close(theirs(images).last_hidden_state, features, rtol=0, atol=1e-13)
    for expected, part in zip(table, rotation, strict=True):
        torch.testing.assert_close(part.repeat(1, 2), expected, rtol=0, atol=5e-7)


def test_perception_encoder_loads_from_the_authors_names(monkeypatch):
    theirs = timm_model('pe')
    names = {
        'patch_embed.proj': 'conv1',
        'blocks.': 'transformer.resblocks.',
        'norm_pre': 'ln_pre',
        'attn.qkv.': 'attn.in_proj_',
        'attn.proj': 'attn.out_proj',
        'mlp.fc1': 'mlp.c_fc',
        'mlp.fc2': 'mlp.c_proj',
        'gamma_1': 'ls_1.gamma',
        'gamma_2': 'ls_2.gamma',
        '.norm1': '.ln_1',
        '.norm2': '.ln_2',
    }
    state = {}
    for key, value in theirs.state_dict().items():
        if key.startswith('attn_pool'):
            continue
        for old, new in names.items():
            key = key.replace(old, new)
        key = re.sub('^norm', 'ln_post', key)
        state[f'visual.{key}'] = value
    state['visual.class_embedding'] = state.pop('visual.cls_token')[0, 0]
    state['visual.positional_embedding'] = state.pop('visual.pos_embed')[0]
    read = eva.checkpoint_filter_fn(dict(state), theirs)
    assert torch.equal(
        read['blocks.1.attn.qkv.bias'], theirs.state_dict()['blocks.1.attn.qkv.bias']
    )
    first, second = (our_model(monkeypatch, theirs) for _ in range(2))
    load_weights(first, theirs.state_dict())
    report = load_weights(second, dict(state, logit_scale=torch.ones(())))
    assert report.format == 'clip'
    assert_same_state(first, second)
