"""Every field of the configs of three DETRs is computed as transformers does, or named.

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
GIVEN = dict(
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
SECOND = dict(
    activation_function='gelu',
    position_embedding_type='learned',
    **{
        'backbone_config.backbone': 'resnet34',
        'backbone_config.out_indices': [1, 3, 4],
        'backbone_config.output_stride': 16,
    },
)
KINDS = {
    'Detr': dict(GIVEN, backbone_config=dict(RESNET, out_indices=[1, 2, 3, 4])),
    'ConditionalDetr': dict(GIVEN, backbone_config=dict(RESNET, out_indices=[1, 2, 3, 4])),
    'DeformableDetr': dict(GIVEN, backbone_config=dict(RESNET, out_indices=[2, 3, 4])),
}


def theirs(model):
    def outputs(images):
        found = model(images)
        classes = GIVEN['num_labels']  # DETR's last row stands for no object
        return [found.logits[..., :classes], found.pred_boxes]

    return outputs


def ours(folder):
    model = load(folder, device='cpu').model.double().eval()
    return lambda images: outputs_of(model, images)


@pytest.mark.parametrize('name', KINDS)
def test_fields(tmp_path, name):
    config = getattr(transformers, f'{name}Config')
    model = getattr(transformers, f'{name}ForObjectDetection')
    walked = Walked(config, model, KINDS[name], SECOND, (64, 96), theirs, ours)
    assert not walked.faults(tmp_path)
