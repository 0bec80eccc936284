"""Every field of EoMT's configs has the effect that it has in transformers, or is named in an
error.

Slow, and only with transformers 5: ``PYTHONPATH=FOLDER_OF_TRANSFORMERS pytest -m nightly``.
"""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest

from vit_plugin.inference.load import load

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
from field_walk import Walked  # noqa: E402

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings('ignore')]
SMALL_FIELDS = dict(
    hidden_size=64,
    num_attention_heads=2,
    num_hidden_layers=3,
    num_blocks=1,
    num_queries=3,
    image_size=64,
    num_register_tokens=1,
    patch_size=16,
    num_labels=3,
)
# Second values of fields whose doubled number would not fit the other fields.
SECOND = dict(
    image_size=96,
    rope_parameters=dict(rope_type='default', rope_theta=20.0),
)


def theirs(model):
    """A function from images to the outputs of a model of transformers."""

    def outputs(images):
        output = model(pixel_values=images)
        return [output.class_queries_logits, output.masks_queries_logits]

    return outputs


def ours(folder):
    """A function from images to the outputs of the model here, loaded from the same folder."""
    backbone = load(folder, device='cpu').model.backbone.double().eval()
    backbone.queries.set_probs([1.0] * SMALL_FIELDS['num_blocks'])
    return lambda images: backbone(images)[-1]


@pytest.mark.parametrize('name', ['Eomt', 'EomtDinov3'])
def test_fields(tmp_path, name):
    config = getattr(transformers, f'{name}Config')
    model = getattr(transformers, f'{name}ForUniversalSegmentation')
    walk = Walked(config, model, SMALL_FIELDS, SECOND, (64, 64), theirs, ours)
    assert not walk.faults(tmp_path)
