"""Every field of LW-DETR's configs has the effect that it has in transformers, or is named in an
error.

Slow, and only with transformers 5: ``PYTHONPATH=FOLDER_OF_TRANSFORMERS pytest -m nightly``.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest

from benchmarks.detectors import outputs_of
from vit_plugin.inference.load import load

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
from field_walk import Walked  # noqa: E402

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings('ignore')]
VIT = dict(
    model_type='lw_detr_vit',
    hidden_size=32,
    mlp_ratio=2,
    num_attention_heads=2,
    num_hidden_layers=4,
    num_windows=4,
    out_indices=[2, 4],
    patch_size=8,
    pretrain_image_size=64,
    window_block_indices=[0, 2],
    image_size=64,
)
SMALL_FIELDS = dict(
    backbone_config=VIT,
    projector_scale_factors=[2.0, 0.5],
    d_model=32,
    decoder_cross_attention_heads=2,
    decoder_self_attention_heads=2,
    decoder_ffn_dim=16,
    decoder_layers=2,
    decoder_n_points=2,
    group_detr=2,
    num_queries=5,
    num_labels=3,
)
# Second values of fields whose doubled number would not fit the other fields.
SECOND_OF_BACKBONE = dict(
    out_indices=[1, 4],
    out_features=['stage1', 'stage4'],
    window_block_indices=[1],
    num_windows=16,
    pretrain_image_size=32,
    image_size=128,
)
SECOND = dict(
    activation_function='gelu',
    decoder_activation_function='gelu',
    batch_norm_eps=0.25,
    projector_scale_factors=[1.0, 0.5],
    **{f'backbone_config.{name}': value for name, value in SECOND_OF_BACKBONE.items()},
)


def theirs(model):
    """A function from images to the outputs of a model of transformers."""

    def outputs(images):
        output = model(images)
        return [output.logits, output.pred_boxes]

    return outputs


def ours(folder):
    """A function from images to the outputs of the model here, loaded from the same folder."""
    model = load(folder, device='cpu').model.double().eval()
    return lambda images: outputs_of(model, images)


def test_fields(tmp_path):
    walk = Walked(
        transformers.LwDetrConfig,
        transformers.LwDetrForObjectDetection,
        SMALL_FIELDS,
        SECOND,
        (64, 96),
        theirs,
        ours,
    )
    assert not walk.faults(tmp_path)
