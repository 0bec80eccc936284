"""Every field of configs of encoders and classifiers is computed as in transformers, or refused.

``Walked`` gives each field a second value, and compares the outputs of both implementations. It is
slow, and needs transformers 5: ``PYTHONPATH=FOLDER_OF_TRANSFORMERS pytest -m nightly``.
"""

import pytest

from vit_plugin.inference.load import load

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
from field_walk import Walked  # noqa: E402

pytestmark = [pytest.mark.nightly, pytest.mark.filterwarnings('ignore')]
BLOCKS = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
VIT = dict(BLOCKS, intermediate_size=64, image_size=64, patch_size=16)
DINOV2 = dict(BLOCKS, mlp_ratio=2, image_size=56, patch_size=14)
DINOV3 = dict(BLOCKS, intermediate_size=64, image_size=64, num_register_tokens=2)
TEXT = dict(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
TOWERS = dict(vision_config=VIT, text_config=TEXT)
LABELS = dict(num_labels=3)
MAE = dict(
    VIT,
    mask_ratio=0.0,
    decoder_hidden_size=32,
    decoder_num_hidden_layers=1,
    decoder_num_attention_heads=2,
    decoder_intermediate_size=64,
)
# Second values of fields where the one that Walked would choose is not valid.
SECOND = {
    'image_size': 112,
    'layer_norm_eps': 0.25,
    'pooler_act': 'relu',
    'pooler_output_size': 16,
    'vision_config.image_size': 96,
    'vision_config.num_channels': 1,
    'vision_config.patch_size': 32,
    'text_config.hidden_act': 'relu',
}
MODELS = {
    # Class of models, maybe with a note: its config class without the suffix, its values, and
    # arguments of a forward (None if the forward takes no interpolate_pos_encoding).
    'ViTForImageClassification': ('ViT', dict(VIT, **LABELS), {}),
    'ViTModel': ('ViT', VIT, {}),
    'DeiTForImageClassification': ('DeiT', dict(VIT, **LABELS), {}),
    'DeiTForImageClassificationWithTeacher': ('DeiT', dict(VIT, **LABELS), {}),
    'ViTMAEModel': ('ViTMAE', MAE, {}),
    'ViTMSNForImageClassification': ('ViTMSN', dict(VIT, **LABELS), {}),
    'IJepaForImageClassification': ('IJepa', dict(VIT, **LABELS), {}),
    'Dinov2ForImageClassification': ('Dinov2', dict(DINOV2, **LABELS), None),
    'Dinov2Model': ('Dinov2', dict(DINOV2, use_swiglu_ffn=True), None),
    'Dinov2WithRegistersForImageClassification': (
        'Dinov2WithRegisters',
        dict(DINOV2, **LABELS),
        None,
    ),
    'DINOv3ViTModel': ('DINOv3ViT', DINOV3, None),
    'CLIPVisionModel': ('CLIPVision', VIT, {}),
    'CLIPForImageClassification': ('CLIP', dict(TOWERS, **LABELS), {}),
    'SiglipVisionModel': ('SiglipVision', VIT, {}),
    'Aimv2VisionModel': ('Aimv2Vision', VIT, None),
    'Aimv2VisionModel, native': ('Aimv2Vision', dict(VIT, is_native=True, use_head=False), None),
    'BeitForImageClassification': (
        'Beit',
        dict(VIT, use_relative_position_bias=True, **LABELS),
        None,
    ),
    'Data2VecVisionForImageClassification': (
        'Data2VecVision',
        dict(
            VIT,
            use_shared_relative_position_bias=True,
            use_absolute_position_embeddings=True,
            **LABELS,
        ),
        None,
    ),
    'PixioModel': ('Pixio', DINOV2, None),
    'SiglipForImageClassification': ('Siglip', dict(TOWERS, **LABELS), {}),
}

POOLED = ('CLIP', 'Siglip', 'Aimv2', 'Pixio')  # models whose pooler_output is compared


def their_outputs(name, options):
    """Map a model of transformers to a function from images to logits or features."""

    def outputs(model):
        def forward(images):
            arguments = {} if options is None else dict(options, interpolate_pos_encoding=True)
            if name.startswith('ViTMAE'):  # shuffles the tokens by noise, and drops some
                model.config.mask_ratio = 0.0
                tokens = (images.shape[-2] // 16) * (images.shape[-1] // 16)
                arguments['noise'] = images.new_tensor([[*range(tokens)]])
            output = model(images, **arguments)
            if 'logits' in output:
                return [output.logits]
            if name.startswith(POOLED) and output.pooler_output is not None:
                return [output.pooler_output]
            return [_features(output.last_hidden_state, name)]

        return forward

    return outputs


def _features(tokens, name):
    """The features of an image (N, C), as our model pools its tokens (N, L, C)."""
    averaged = name.startswith(('Siglip', 'Aimv2'))  # the others have a class token
    return tokens.mean(dim=1) if averaged else tokens[:, 0]


def our_outputs(classifies):
    """Map a folder to a function from images to our model's logits or features."""

    def outputs(folder):
        model = load(folder, device='cpu', classify=classifies).model.double().eval()

        def forward(images):
            feats = model.extract_feat(images)
            return [model.head(feats) if classifies else feats[-1]]

        return forward

    return outputs


@pytest.mark.parametrize('name', MODELS)
def test_each_field_is_computed_or_refused(tmp_path, name):
    config_name, values, options = MODELS[name]
    walked = Walked(
        getattr(transformers, f'{config_name}Config'),
        getattr(transformers, name.partition(',')[0]),
        values,
        SECOND,
        # Sizes of whole patches, also of 8 pixels and at the second patch size.
        (112, 168) if values.get('patch_size') == 14 else (64, 96),
        their_outputs(name, options),
        our_outputs('Classification' in name),
    )
    assert not walked.faults(tmp_path)
