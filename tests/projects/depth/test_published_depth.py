"""Folders of transformers become the same model of depth here, and their names come back."""

import json
from functools import partial

import pytest
import torch
from rejection import rejects
from safetensors.torch import load_file
from tiny_models import randomize

from vit_plugin.inference.load import load
from vit_plugin.weights import FORMATS

transformers = pytest.importorskip('transformers', minversion='5')
pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks
BLOCKS = dict(hidden_size=32, num_hidden_layers=4, num_attention_heads=2)
NECK = dict(neck_hidden_sizes=[8, 12, 16, 20], fusion_hidden_size=16)
DYADIC = 64  # a table of such numbers is resampled without rounding, in float32 as in float64


def dpt(**changes):
    config = dict(NECK, intermediate_size=64, backbone_out_indices=[0, 1, 2, 3])
    return transformers.DPTForDepthEstimation(
        transformers.DPTConfig(**BLOCKS, **{**config, **changes})
    )


def hybrid(image_size=384):
    side = image_size // 16
    return dpt(
        image_size=image_size,
        is_hybrid=True,
        backbone_config=dict(
            depths=[1, 1, 1],
            hidden_sizes=[256, 512, 1024],  # the groups of the norms are 32 there
            layer_type='bottleneck',
            global_padding='same',
            embedding_dynamic_padding=True,
            out_features=['stage1', 'stage2', 'stage3'],
        ),
        backbone_featmap_shape=[1, 1024, side, side],
        neck_hidden_sizes=[256, 512, 16, 20],
    )


def depth_anything(image_size, indices=(1, 2, 3, 4), **changes):
    return transformers.DepthAnythingForDepthEstimation(
        transformers.DepthAnythingConfig(
            backbone_config=transformers.Dinov2Config(
                **dict(BLOCKS, num_hidden_layers=indices[-1]),
                mlp_ratio=2,
                image_size=image_size // 14 * 14,
                patch_size=14,
                out_indices=[*indices],
                reshape_hidden_states=False,
            ),
            reassemble_hidden_size=32,
            **NECK,
            **changes,
        )
    )


MODELS = {
    'DPT, project': dpt,
    'DPT, add': partial(dpt, readout_type='add'),
    'DPT, ignore': partial(dpt, readout_type='ignore'),
    'DPT with BatchNorm': partial(dpt, use_batch_norm_in_fusion_residual=True),
    'DPT-Hybrid': hybrid,
    'Depth Anything': depth_anything,
    'Depth Anything V2, metric': partial(
        depth_anything, indices=(1, 2, 3, 5), depth_estimation_type='metric', max_depth=20
    ),
}


def folder_of(model, folder, **processor):
    model.save_pretrained(folder)
    (folder / 'preprocessor_config.json').write_text(json.dumps(processor))
    return folder


def theirs_of(model, images):
    """What transformers computes. Its DPT takes squares alone, though its parts take the rest."""
    if 'dpt' not in dict(model.named_children()) or images.shape[2] == images.shape[3]:
        return model(images).predicted_depth[:, None]
    model.dpt.embeddings.image_size = images.shape[2:]  # that of the hybrid
    found = model.dpt(images, output_hidden_states=True)
    states = [found.hidden_states[1 + i] for i in model.config.backbone_out_indices]
    if found.intermediate_activations:
        states = [*found.intermediate_activations, *states[2:]]
    height, width = (side // 16 for side in images.shape[2:])
    return model.head(model.neck(states, height, width))[:, None]


def random(name, side=64):
    torch.manual_seed(0)
    model = randomize(MODELS[name](image_size=side), std=0.2).eval()
    for key, table in model.named_parameters():
        if 'position_embeddings' in key:
            table.data = (DYADIC * table.data).round() / DYADIC
    return model


@pytest.mark.parametrize(
    'side', [64, pytest.param(384, marks=pytest.mark.nightly)], ids='{} pixels'.format
)
@pytest.mark.parametrize('name', MODELS)
def test_computes_what_transformers_does(name, side, tmp_path):
    theirs = random(name, side)
    ours = load(folder_of(theirs, tmp_path / 'a'), device='cpu').model.double()
    patch = ours.backbone.strides[-1]
    theirs.double()
    for size in ((side, side), (side, side // 2)):
        images = torch.randn(1, 3, *size, dtype=torch.float64)
        height, width = (length // patch * patch for length in size)  # they leave out the rest
        with torch.no_grad():
            wanted = theirs_of(theirs, images)
            found = ours.decode_head(ours.extract_feat(images[:, :, :height, :width]))
        assert wanted.std() > 1e-3 * wanted.mean().abs() > 0
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10 * wanted.abs().max().item())


@pytest.mark.parametrize('name', ['DPT, project', 'DPT-Hybrid', 'Depth Anything'])
def test_names_out_and_in(name, tmp_path):
    folder = folder_of(random(name), tmp_path / 'a')
    trained = load(folder, device='cpu')
    state = {
        key.removeprefix('backbone.'): value for key, value in trained.model.state_dict().items()
    }
    form = 'hf_depth_anything' if name == 'Depth Anything' else 'hf_dpt'
    exported, left = FORMATS[form].export(state, 2)
    assert not left
    wanted = load_file(folder / 'model.safetensors')
    # Tensors that the decoder does not read, and that pre-training masks with, have no place here.
    unread = ('dpt.layernorm.', 'backbone.embeddings.mask_token')
    assert {*wanted} - {*exported} == {key for key in wanted if key.startswith(unread)}
    for key, value in exported.items():
        assert torch.equal(value, wanted[key]), key


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (dict(add_projection=True), 'add_projection=True, which no model here computes'),
        (dict(reassemble_factors=[4, 2, 1, 1]), r'reassemble_factors=\[4, 2, 1, 1\]'),
        (dict(backbone_config=dict(model_type='beit')), "backbone_config={'model_type': 'beit'}"),
        (dict(use_bias_in_fusion_residual=False), 'use_bias_in_fusion_residual=False'),
        (dict(head_in_index=2), 'head_in_index=2'),
        (
            dict(architectures=['DPTForSemanticSegmentation']),
            r"architectures=\['DPTForSemanticSegmentation'\], which is not read",
        ),
    ],
)
def test_other_models_are_refused(changes, message, tmp_path):
    folder = folder_of(random('DPT, add'), tmp_path / 'a')
    config = json.loads((folder / 'config.json').read_text())
    (folder / 'config.json').write_text(json.dumps({**config, **changes}))
    with rejects(message):
        load(folder, device='cpu')
