"""Folders that a TransformersBackbone wraps give transformers' own predictions, or raise."""

import json
import re
from pathlib import Path

import pytest
import torch
from extras import needs_task
from mmengine.dataset import pseudo_collate
from PIL import Image
from rejection import rejects

from vit_plugin.inference.load import load
from vit_plugin.projects.transformers_models.pooled_kinds import POOLED_KINDS
from vit_plugin.weights.image_kinds import IMAGE_KINDS
from vit_plugin.weights.processor_kinds import PROCESSORS
from vit_plugin.weights.unread_kinds import REASONS

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
pytestmark = [needs_task('classification'), pytest.mark.filterwarnings('ignore')]
DEPTHS, WIDTHS = dict(depths=[1, 1, 1, 1]), [8, 16, 24, 32]
WINDOWS = dict(embed_dim=24, num_heads=[2] * 4, image_size=64, window_size=2, **DEPTHS)
LEVIT = dict(
    hidden_sizes=[16, 24, 32],
    num_attention_heads=[1, 2, 2],
    depths=[1, 1, 1],
    key_dim=[8] * 3,
    image_size=64,
)
ONE_HEAD = dict(hidden_sizes=WIDTHS, num_attention_heads=[1] * 4, **DEPTHS)
SMALL_FIELDS = {
    'swin': WINDOWS,
    'swinv2': WINDOWS,
    'convnextv2': dict(hidden_sizes=WIDTHS, **DEPTHS),
    'hiera': dict(embed_dim=16, num_heads=[1] * 4, image_size=[64, 64], **DEPTHS),
    'pvt_v2': ONE_HEAD,
    'resnet': dict(embedding_size=8, hidden_sizes=WIDTHS, **DEPTHS),
    'levit': LEVIT,
    'segformer': dict(ONE_HEAD, decoder_hidden_size=16),
    'swiftformer': dict(embed_dims=WIDTHS, **DEPTHS),
    'poolformer': dict(hidden_sizes=WIDTHS, **DEPTHS),
    'dinov3_convnext': dict(hidden_sizes=WIDTHS, **DEPTHS),
}


def save_model(path, kind, classifies=True):
    """Save a model of transformers with random weights, and return it."""
    torch.manual_seed(0)
    title = POOLED_KINDS[kind].title
    names = dict(id2label={i: f'thing {i}' for i in range(5)}) if classifies else {}
    config = getattr(transformers, f'{title}Config')(**SMALL_FIELDS[kind], **names)
    class_name = f'{title}{"ForImageClassification" if classifies else "Model"}'
    model = getattr(transformers, class_name)(config).eval()
    for name, value in model.named_parameters():
        mean = 1.0 if 'norm' in name and name.endswith('weight') else 0.0
        torch.nn.init.normal_(value, mean, 0.1)
    model.save_pretrained(path)
    return model


@pytest.mark.parametrize('kind', SMALL_FIELDS)
def test_outputs_equal_those_of_transformers(kind, tmp_path):
    classifies = POOLED_KINDS[kind].classifies
    theirs = save_model(tmp_path, kind, classifies)
    ours = load(tmp_path, device='cpu', classify=None)
    assert ours.classes == ([f'thing {i}' for i in range(5)] if classifies else [])
    images = torch.rand(2, 3, 64, 64)
    with torch.no_grad():
        features, output = ours.model.extract_feat(images), theirs(images)
        if classifies:
            assert torch.allclose(ours.model.head(features), output.logits, atol=1e-6)
        else:
            assert torch.equal(features[-1], output.pooler_output.flatten(1))


def test_predicted_class_and_score_equal_those_of_transformers(tmp_path):
    theirs = save_model(tmp_path, 'swin')
    size = dict(height=64, width=64)
    processor = transformers.ViTImageProcessorPil(size=size)
    processor.save_pretrained(tmp_path)
    Image.new('RGB', (90, 70), (200, 30, 60)).save(tmp_path / 'photo.png')
    pixels = processor(Image.open(tmp_path / 'photo.png'), return_tensors='pt')['pixel_values']
    with torch.no_grad():
        scores = theirs(torch.as_tensor(pixels)).logits.softmax(dim=1)[0]
    ours = load(tmp_path, device='cpu')
    prediction = ours(str(tmp_path / 'photo.png'))
    assert prediction.names[0] == f'thing {int(scores.argmax())}'
    assert prediction.scores[0] == pytest.approx(float(scores.max()), abs=1e-6)
    sample = pseudo_collate([ours.sample(str(tmp_path / 'photo.png'))])
    assert torch.allclose(ours.model.data_preprocessor(sample, False)['inputs'], pixels, atol=1e-6)


def test_encoder_without_classes_raises(tmp_path):
    save_model(tmp_path, 'swin', classifies=False)
    with rejects('gives features of an image and no classes'):
        load(tmp_path, device='cpu')


@pytest.mark.parametrize(
    ('changed', 'words'),
    [
        (dict(problem_type='multi_label_classification'), 'problem_type='),
        (dict(id2label={'0': 'one'}), 'names 1 classes in id2label, and its classifier has 5'),
        (dict(magic=1), 'magic=1, which no model here computes'),
        (dict(auto_map={}), 'code of its own'),
        (dict(quantization_config=dict(bits=4)), 'quantization_config'),
        (dict(architectures=['SwinForSemanticSegmentation']), 'it predicts masks'),
        (dict(architectures=['SwinForImageClassificationWithTeacher']), 'two classifiers'),
        (dict(image_size=60, window_size=7), 'does not take images of 60 x 60|does not fit'),
    ],
)
def test_unsupported_configs_raise(changed, words, tmp_path):
    save_model(tmp_path, 'swin')
    content = json.loads((tmp_path / 'config.json').read_text())
    (tmp_path / 'config.json').write_text(json.dumps({**content, **changed}))
    with rejects(words):
        load(tmp_path, device='cpu')


def test_each_kind_has_a_processor_and_a_config():
    assert {kind.processor for kind in POOLED_KINDS.values()} <= PROCESSORS.keys()
    assert all(hasattr(transformers, f'{kind.title}Config') for kind in POOLED_KINDS.values())


def squashed(text):
    """Lowercase text without spaces and punctuation."""
    return re.sub(r'[^a-z0-9]', '', text.lower())


def test_docs_on_weights_name_each_model_type():
    page = squashed((Path(__file__).parents[3] / 'docs/weights.md').read_text())
    suffixes = ('_vision_model', '_vit', '_backbone', '_hiera_det_model')
    for kind in (*REASONS, *IMAGE_KINDS, *POOLED_KINDS):
        name = kind.removeprefix('vit_')
        for suffix in suffixes:
            name = name.removesuffix(suffix)
        assert squashed(name).removesuffix('vision') in page, kind
