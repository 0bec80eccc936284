"""Depth models saved by transformers compute the same here, and are exported to the same names."""

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
pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks
BLOCKS = dict(hidden_size=32, num_hidden_layers=4, num_attention_heads=2)
NECK = dict(neck_hidden_sizes=[8, 12, 16, 20], fusion_hidden_size=16)
# Tables whose values are multiples of 1 / 64 are resampled without rounding, also in float32.
DENOMINATOR = 64


def dpt(**changes):
    """A small DPT on a plain ViT."""
    config = dict(NECK, intermediate_size=64, backbone_out_indices=[0, 1, 2, 3])
    return transformers.DPTForDepthEstimation(
        transformers.DPTConfig(**BLOCKS, **{**config, **changes})
    )


def hybrid(image_size=384):
    """A DPT on a ViT hybrid, which has a BiT as its CNN."""
    side = image_size // 16
    return dpt(
        image_size=image_size,
        is_hybrid=True,
        backbone_config=dict(
            depths=[1, 1, 1],
            hidden_sizes=[256, 512, 1024],  # divisible by the 32 groups of the norms
            layer_type='bottleneck',
            global_padding='same',
            embedding_dynamic_padding=True,
            out_features=['stage1', 'stage2', 'stage3'],
        ),
        backbone_featmap_shape=[1, 1024, side, side],
        neck_hidden_sizes=[256, 512, 16, 20],
    )


def depth_anything(image_size, indices=(1, 2, 3, 4), **changes):
    """A small Depth Anything, whose encoder returns the outputs of blocks ``indices``, from 1."""
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
    """Save a model and the settings of its processor to a folder."""
    model.save_pretrained(folder)
    (folder / 'preprocessor_config.json').write_text(json.dumps(processor))
    return folder


def theirs_of(model, images):
    """The depth (B, 1, H, W) that transformers predicts.

    Its DPT takes square images only; for others, its parts are called one by one.
    """
    if 'dpt' not in dict(model.named_children()) or images.shape[2] == images.shape[3]:
        return model(images).predicted_depth[:, None]
    model.dpt.embeddings.image_size = images.shape[2:]  # the hybrid checks it
    output = model.dpt(images, output_hidden_states=True)
    states = [output.hidden_states[1 + i] for i in model.config.backbone_out_indices]
    if output.intermediate_activations:
        states = [*output.intermediate_activations, *states[2:]]
    height, width = (side // 16 for side in images.shape[2:])
    return model.head(model.neck(states, height, width))[:, None]


def random_model(name, side=64):
    """A model with random weights whose table of positions is resampled exactly."""
    torch.manual_seed(0)
    model = randomize(MODELS[name](image_size=side), std=0.2).eval()
    for key, table in model.named_parameters():
        if 'position_embeddings' in key:
            table.data = (DENOMINATOR * table.data).round() / DENOMINATOR
    return model


@pytest.mark.parametrize(
    'side', [64, pytest.param(384, marks=pytest.mark.nightly)], ids='{} pixels'.format
)
@pytest.mark.parametrize('name', MODELS)
def test_depth_equals_that_of_transformers(name, side, tmp_path):
    theirs = random_model(name, side)
    ours = load(folder_of(theirs, tmp_path / 'a'), device='cpu').model.double()
    patch = ours.backbone.strides[-1]
    theirs.double()
    for size in ((side, side), (side, side // 2)):
        images = torch.randn(1, 3, *size, dtype=torch.float64)
        # transformers cuts images to whole patches.
        height, width = (length // patch * patch for length in size)
        with torch.no_grad():
            expected = theirs_of(theirs, images)
            depth = ours.decode_head(ours.extract_feat(images[:, :, :height, :width]))
        assert expected.std() > 1e-3 * expected.mean().abs() > 0
        torch.testing.assert_close(
            depth, expected, rtol=0, atol=1e-10 * expected.abs().max().item()
        )


@pytest.mark.parametrize('name', ['DPT, project', 'DPT-Hybrid', 'Depth Anything'])
def test_weights_are_exported_to_the_original_names(name, tmp_path):
    folder = folder_of(random_model(name), tmp_path / 'a')
    trained = load(folder, device='cpu')
    state = {
        key.removeprefix('backbone.'): value for key, value in trained.model.state_dict().items()
    }
    format_name = 'hf_depth_anything' if name == 'Depth Anything' else 'hf_dpt'
    exported, unexported = FORMATS[format_name].export(state, 2)
    assert not unexported
    expected = load_file(folder / 'model.safetensors')
    # A norm that the decoder does not use, and the mask token of pre-training.
    unused = ('dpt.layernorm.', 'backbone.embeddings.mask_token')
    assert {*expected} - {*exported} == {key for key in expected if key.startswith(unused)}
    for key, value in exported.items():
        assert torch.equal(value, expected[key]), key


@pytest.mark.parametrize(
    ('name', 'multiple', 'divisor'),
    [('DPT, add', 32, 32), ('DPT, add', 24, 48), ('Depth Anything', 1, 14)],
)
def test_sides_become_multiples_of_the_patch_and_of_the_processor(
    name, multiple, divisor, tmp_path
):
    processor = dict(keep_aspect_ratio=True, ensure_multiple_of=multiple)
    trained = load(folder_of(random_model(name), tmp_path / 'a', **processor), device='cpu')
    resize = trained.cfg.test_dataloader.dataset.pipeline[2]
    assert (resize.type, resize.size_divisor) == ('ResizeToMultiple', divisor)


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
            r"architectures=\['DPTForSemanticSegmentation'\], and it predicts masks",
        ),
    ],
)
def test_unsupported_configs_raise(changes, message, tmp_path):
    folder = folder_of(random_model('DPT, add'), tmp_path / 'a')
    config = json.loads((folder / 'config.json').read_text())
    (folder / 'config.json').write_text(json.dumps({**config, **changes}))
    with rejects(message):
        load(folder, device='cpu')
