"""Files of transformers: read as `save_pretrained` writes them, and written as `from_pretrained`
reads them.
"""

from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from authors import recorded
from saved import saved
from torch import nn

from vit_plugin.weights import FORMATS, export, recognize
from vit_plugin.weights.opening import open_checkpoint

SIZES = dict(
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=64,
    image_size=32,
    patch_size=8,
)
TOWERS = dict(
    vision_config=SIZES,
    text_config=dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, vocab_size=99),
)
EOMT = dict(num_blocks=1, num_queries=2, num_labels=3, patch_size=16, image_size=64)
BACKBONE = dict(
    image_size=64,
    patch_size=8,
    hidden_size=8,
    num_attention_heads=2,
    mlp_ratio=2,
    out_indices=[2, 4],
)
BACKBONES = {
    'LwDetr': dict(
        pretrain_image_size=64, window_block_indices=[0, 2], num_windows=4, num_hidden_layers=4
    ),
    'RfDetr': dict(num_windows=2, num_hidden_layers=4),
}
DETR = dict(
    d_model=8,
    decoder_ffn_dim=16,
    decoder_n_points=2,
    decoder_layers=2,
    decoder_self_attention_heads=2,
    decoder_cross_attention_heads=2,
    num_queries=5,
    group_detr=2,
    num_labels=3,
)
SWIGLU = dict(mlp_ratio=4, use_swiglu_ffn=True)
GATED = dict(use_gated_mlp=True, hidden_act='silu')
# Classes of transformers, arguments of their configs, and our format.
MODELS = [
    ('ViTModel', SIZES, 'hf'),
    ('ViTForImageClassification', SIZES, 'hf'),
    ('DeiTModel', SIZES, 'hf_deit'),
    ('DeiTForImageClassification', SIZES, 'hf_deit'),
    ('DeiTForImageClassificationWithTeacher', SIZES, 'hf_deit'),
    ('Dinov2Model', SIZES, 'hf_dinov2'),
    ('Dinov2Backbone', SIZES, 'hf_dinov2'),
    ('Dinov2Model', SIZES | SWIGLU, 'hf_dinov2'),
    ('Dinov2WithRegistersModel', SIZES, 'hf_dinov2'),
    ('DINOv3ViTModel', SIZES, 'hf_dinov3'),  # its default is 0 registers
    ('DINOv3ViTModel', SIZES | GATED | dict(num_register_tokens=4), 'hf_dinov3'),
    ('SiglipVisionModel', SIZES, 'hf_siglip'),
    ('SiglipModel', TOWERS, 'hf_siglip'),
    ('Aimv2VisionModel', SIZES | dict(use_head=False), 'hf_aimv2'),
    ('CLIPVisionModel', SIZES, 'hf_clip'),
    ('CLIPModel', TOWERS, 'hf_clip'),
    ('EomtForUniversalSegmentation', SIZES | EOMT, 'hf_eomt'),
    ('EomtForUniversalSegmentation', SIZES | EOMT | SWIGLU, 'hf_eomt'),
    ('EomtDinov3ForUniversalSegmentation', SIZES | EOMT, 'hf_eomt_dinov3'),
    ('EomtDinov3ForUniversalSegmentation', SIZES | EOMT | GATED, 'hf_eomt_dinov3'),
    ('LwDetrForObjectDetection', DETR | dict(projector_scale_factors=[2.0, 0.5]), 'hf_lw_detr'),
    ('RfDetrForObjectDetection', DETR, 'hf_rf_detr'),
]
ONE_WAY = ('CLIPModel', 'SiglipModel')  # read only: we have no text towers
# Tensors without a counterpart here: of pre-training, of a loss, and of registers of length 0.
ABSENT = ('mask_token', 'empty_weight', 'register_tokens')


def random_model(name: str, sizes: dict[str, Any]) -> nn.Module:
    """A model of transformers with random weights.

    Args:
        name: its class.
        sizes: arguments of its config.
    """
    transformers = pytest.importorskip('transformers', minversion='5.23')
    model_class = getattr(transformers, name)
    detector = name.removesuffix('ForObjectDetection')
    if detector in BACKBONES:
        suffix = 'ViTConfig' if detector == 'LwDetr' else 'Dinov2Config'
        config_class = getattr(transformers, f'{detector}{suffix}')
        sizes = dict(sizes, backbone_config=config_class(**BACKBONE, **BACKBONES[detector]))
    torch.manual_seed(0)
    model = model_class(model_class.config_class(**sizes))
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('name', 'sizes', 'form'), [row for row in MODELS if row[2] in FORMATS])
def test_round_trip(name: str, sizes: dict[str, Any], form: str, tmp_path: Path) -> None:
    """Files are recognized like models in memory, and exported files load as the same model."""
    model = random_model(name, sizes)
    weights = open_checkpoint(saved(model, tmp_path)).weights
    ours = recognize(weights)
    in_memory = recognize(model.state_dict())
    assert ours.format.name == form
    assert in_memory.keys() == ours.keys()
    assert all(torch.equal(in_memory[key], value) for key, value in ours.items())
    if name in ONE_WAY:
        return
    written, omitted, _ = export(ours, form, heads=2)
    assert not omitted
    safetensors.torch.save_file(written, tmp_path / 'model.safetensors', metadata=dict(format='pt'))
    reloaded, loading = type(model).from_pretrained(tmp_path, output_loading_info=True)
    reported_keys = {key for keys in loading.values() for key in keys}
    assert all(key.endswith(ABSENT) for key in reported_keys), reported_keys
    state = reloaded.state_dict()
    for key, value in model.state_dict().items():
        if not key.endswith((*ABSENT, 'position_embeddings')):
            assert torch.equal(state[key], value), key


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('name', ['LwDetrForObjectDetection', 'RfDetrForObjectDetection'])
def test_recorded_files_have_the_names_of_transformers(name: str, tmp_path: Path) -> None:
    """``tests/golden/lw_detr`` stands for transformers in tests that run without it."""
    detector = name.removesuffix('ForObjectDetection')
    golden = recorded(Path(__file__).parents[2] / f'golden/lw_detr/{detector}.npz')
    sizes_of_name = {model_name: sizes for model_name, sizes, _ in MODELS}
    names = {key.removeprefix('params/') for key in golden if key.startswith('params/')}
    assert names == {
        *open_checkpoint(saved(random_model(name, sizes_of_name[name]), tmp_path)).weights
    }
