"""Every field of the configs of DPT and Depth Anything has the effect that it has in transformers,
or is named in an error.

Slow, and only with transformers 5: ``PYTHONPATH=FOLDER_OF_TRANSFORMERS pytest -m nightly``.
"""

import pytest
import torch

from vit_plugin.inference.load import load

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
from field_walk import Walked  # noqa: E402

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings('ignore')]
BLOCKS = dict(num_hidden_layers=4, num_attention_heads=2)
NECK = dict(neck_hidden_sizes=[8, 12, 16, 20], fusion_hidden_size=16)
DPT = dict(
    NECK,
    **BLOCKS,
    hidden_size=32,
    intermediate_size=64,
    image_size=64,
    backbone_out_indices=[0, 1, 2, 3],
)
BIT = dict(
    model_type='bit',
    depths=[1, 1, 1],
    hidden_sizes=[256, 512, 1024],
    layer_type='bottleneck',
    global_padding='same',
    embedding_dynamic_padding=True,
    out_features=['stage1', 'stage2', 'stage3'],
)
# Second values of fields, for `field_walk`.
SECOND = dict(
    backbone_out_indices=[0, 1, 1, 3],
    fusion_hidden_size=8,
    image_size=96,
    neck_hidden_sizes=[8, 12, 16, 24],
    neck_ignore_stages=[0],
    readout_type='add',
    reassemble_factors=[4, 2, 1, 1],
    depth_estimation_type='metric',
)
DINOV2 = dict(
    model_type='dinov2',
    hidden_size=32,
    mlp_ratio=2,
    image_size=42,
    out_indices=[1, 2, 3, 4],
    reshape_hidden_states=False,
    **BLOCKS,
)


def theirs(model):
    """A function from images to the depth that a model of transformers predicts."""
    return lambda images: [model(images).predicted_depth]


def ours(folder):
    """The same function for the model that is read from a folder."""
    model = load(folder, device='cpu').model.double().eval()

    def depth(images):
        return [model.decode_head(model.backbone(images)).flatten(0, 1)]

    return depth


def dpt(size=(48, 80), **fields):
    """The changes of a DPT's fields, for images of this height and width."""
    config, model = transformers.DPTConfig, transformers.DPTForDepthEstimation
    second = dict(SECOND, backbone_featmap_shape=[1, 1024, 4, 4], backbone_config=BIT)
    return Walked(config, model, dict(DPT, **fields), second, size, theirs, ours)


def depth_anything():
    """The changes of a Depth Anything's fields."""
    fields = dict(NECK, backbone_config=DINOV2, reassemble_hidden_size=32)
    backbone_fields = {'out_indices': [1, 2, 3, 3], 'out_features': ['stage1'], 'image_size': 56}
    second = dict(
        SECOND, **{f'backbone_config.{name}': value for name, value in backbone_fields.items()}
    )
    return Walked(
        transformers.DepthAnythingConfig,
        transformers.DepthAnythingForDepthEstimation,
        fields,
        second,
        (56, 84),
        theirs,
        ours,
    )


WALKS = {
    'DPT': dpt,
    'DPT-Hybrid': lambda: dpt(
        (64, 96),
        is_hybrid=True,
        backbone_config=BIT,
        backbone_featmap_shape=[1, 1024, 4, 4],
        neck_hidden_sizes=[256, 512, 16, 20],
    ),
    'Depth Anything': depth_anything,
}


@pytest.mark.parametrize('name', WALKS)
def test_fields(tmp_path, name):
    torch.manual_seed(0)
    assert not WALKS[name]().faults(tmp_path)
