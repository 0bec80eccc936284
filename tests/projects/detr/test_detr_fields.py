"""Every field of the configs of three DETRs has the effect that it has in transformers, or is named
in an error.

Slow, and only with transformers 5: ``PYTHONPATH=FOLDER_OF_TRANSFORMERS pytest -m nightly``.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest

from benchmarks.detectors import outputs_of
from vit_plugin.inference.load import load

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
from field_walk import Walked  # noqa: E402

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings('ignore')]
RESNET = dict(model_type='timm_backbone', backbone='resnet18', features_only=True)
SMALL_FIELDS = dict(
    d_model=256,
    encoder_layers=1,
    encoder_ffn_dim=16,
    encoder_attention_heads=2,
    decoder_layers=2,
    decoder_ffn_dim=16,
    decoder_attention_heads=2,
    num_queries=5,
    num_labels=3,
)
# Second values of fields, for `field_walk`.
SECOND = dict(
    activation_function='gelu',
    position_embedding_type='learned',
    **{
        'backbone_config.backbone': 'resnet34',
        'backbone_config.out_indices': [1, 3, 4],
        'backbone_config.output_stride': 16,
    },
)
# The beginning of a class of transformers -> values of the config.
SMALL_MODELS = {
    'Detr': dict(SMALL_FIELDS, backbone_config=dict(RESNET, out_indices=[1, 2, 3, 4])),
    'ConditionalDetr': dict(SMALL_FIELDS, backbone_config=dict(RESNET, out_indices=[1, 2, 3, 4])),
    'DeformableDetr': dict(SMALL_FIELDS, backbone_config=dict(RESNET, out_indices=[2, 3, 4])),
}


def theirs(model):
    """A function from images to the logits and boxes of a model of transformers."""

    def outputs(images):
        output = model(images)
        classes = SMALL_FIELDS['num_labels']  # DETR's last row stands for no object
        return [output.logits[..., :classes], output.pred_boxes]

    return outputs


def ours(folder):
    """The same function for the model that is read from a folder."""
    model = load(folder, device='cpu').model.double().eval()
    return lambda images: outputs_of(model, images)


@pytest.mark.parametrize('name', SMALL_MODELS)
def test_fields(tmp_path, name):
    config = getattr(transformers, f'{name}Config')
    model = getattr(transformers, f'{name}ForObjectDetection')
    walk = Walked(config, model, SMALL_MODELS[name], SECOND, (64, 96), theirs, ours)
    assert not walk.faults(tmp_path)
