"""DETRs saved by transformers become detectors of MMDetection that compute the same."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import json
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from image_folders import write_coco
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from safetensors.torch import load_file, save_file

from benchmarks.detectors_reference import doubled
from vit_plugin.from_folder.recipe import plan_config
from vit_plugin.from_folder.request import Request
from vit_plugin.inference.load import load
from vit_plugin.models.classes import keep_classifier
from vit_plugin.weights.for_mmengine import read_complete

transformers = pytest.importorskip('transformers', minversion='5')
DetectionRecipe = pytest.importorskip('vit_plugin.tasks.detection.detection_recipe').DetectionRecipe
pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks
SMALL = dict(
    backbone='resnet18',
    encoder_layers=1,
    decoder_layers=2,
    encoder_ffn_dim=16,
    decoder_ffn_dim=16,
    num_queries=5,
)
TWO_STAGES = dict(two_stage=True, with_box_refine=True, two_stage_num_proposals=6)
# The beginning of a class of transformers and what is special -> values of the config.
VARIANTS = {
    'Detr': dict(num_labels=91),
    'ConditionalDetr': dict(num_labels=91),
    'DeformableDetr': dict(num_labels=3),
    'DeformableDetr refined': dict(num_labels=91, with_box_refine=True),
    'DeformableDetr two stages': TWO_STAGES,
}
DILATED = dict(backbone='resnet50', dilation=True)


def save_published(folder, variant, **config):
    """Save a model of transformers with random weights to a folder, and return it in float64."""
    name = variant.partition(' ')[0]
    full_config = getattr(transformers, f'{name}Config')(
        **{**SMALL, **VARIANTS.get(variant, {}), **config}
    )
    torch.manual_seed(0)
    model = getattr(transformers, f'{name}ForObjectDetection')(full_config).eval()
    for key, value in model.state_dict().items():
        noise = 0.1 * torch.randn_like(value)
        value += noise.abs() if key.endswith('running_var') else noise
    model.save_pretrained(folder)
    return model.double()


def outputs(model, images, sizes):
    """Logits and boxes of the last layer, for images of these heights and widths."""
    shape = tuple(images.shape[-2:])
    samples = [SimpleNamespace(batch_input_shape=shape, img_shape=size) for size in sizes]
    with torch.no_grad(), doubled():
        head_inputs = model.forward_transformer(model.extract_feat(images), samples)
        logits, boxes = model.bbox_head(**head_inputs)
    return logits[-1], boxes[-1]


@pytest.mark.parametrize(
    ('variant', 'config'),
    [
        *((variant, {}) for variant in VARIANTS),
        pytest.param('Detr', DILATED, marks=pytest.mark.nightly),
        pytest.param(
            'DeformableDetr', DILATED | dict(num_feature_levels=1), marks=pytest.mark.nightly
        ),
    ],
)
@pytest.mark.parametrize('sizes', [[(96, 160)], [(128, 100), (90, 128)]])
def test_outputs_equal_those_of_transformers(tmp_path, variant, config, sizes):
    """For an image alone, and for two that are padded to a batch."""
    theirs = save_published(tmp_path, variant, **config)
    model = load(tmp_path, device='cpu').model.double()
    height, width = np.max(sizes, axis=0).tolist()
    mask = torch.zeros(len(sizes), height, width, dtype=torch.long)
    for i, (image_height, image_width) in enumerate(sizes):
        mask[i, :image_height, :image_width] = 1
    images = torch.randn(len(sizes), 3, height, width).double() * mask[:, None]
    with torch.no_grad(), doubled():
        output = theirs(pixel_values=images, pixel_mask=mask)
    logits, boxes = outputs(model, images, sizes)
    rows = model.bbox_head.class_rows
    if variant == 'Detr':  # unused rows are added to "no object", so only scores are equal
        logits, output.logits = logits.softmax(-1)[..., : len(rows)], output.logits.softmax(-1)
    assert boxes.std(1).max() > 1e-4  # queries differ
    for actual, expected in ((logits, output.logits[..., rows]), (boxes, output.pred_boxes)):
        torch.testing.assert_close(
            actual, expected, rtol=0, atol=1e-9 * expected.abs().max().item()
        )


@pytest.mark.parametrize('variant', VARIANTS)
def test_predictions_equal_those_of_transformers(tmp_path, variant):
    theirs = save_published(tmp_path, variant)
    size = dict(shortest_edge=64, longest_edge=128)
    (tmp_path / 'preprocessor_config.json').write_text(json.dumps(dict(size=size)))
    trained = load(tmp_path, device='cpu')
    trained.model.double()
    pixels = np.random.default_rng(0).integers(0, 256, (96, 120, 3), dtype=np.uint8)
    inputs = trained.model.data_preprocessor(trained._batch([trained.sample(pixels)]), False)
    assert inputs['inputs'].shape[-2:] == (64, 80)  # the shortest edge is 64
    with torch.no_grad(), doubled():
        expected = theirs(pixel_values=inputs['inputs'].double())
    name = variant.partition(' ')[0]
    (expected,) = getattr(transformers, f'{name}ImageProcessor')().post_process_object_detection(
        expected, threshold=0, target_sizes=[pixels.shape[:2]]
    )
    head = trained.model.bbox_head
    # transformers also predicts rows that are not a class.
    known = torch.isin(expected['labels'], head.class_rows)
    best = expected['scores'][known].argsort(descending=True)
    with torch.no_grad(), doubled():
        (predicted,) = trained.model.predict(inputs['inputs'].double(), inputs['data_samples'])
    predicted = predicted.pred_instances
    best, rows = best[: len(predicted)], head.class_rows[predicted.labels][: len(best)]
    assert torch.equal(rows, expected['labels'][known][best])
    limits = torch.tensor([120, 96, 120, 96])  # MMDetection clips boxes to the image
    boxes = expected['boxes'][known][best].clamp(min=0).minimum(limits)
    torch.testing.assert_close(predicted.bboxes[: len(best)], boxes, rtol=0, atol=1e-2)


def test_different_class_layers_are_kept(tmp_path):
    """The authors' files have one for each decoder layer; transformers writes only the first."""
    save_published(tmp_path, 'DeformableDetr refined')
    path = tmp_path / 'model.safetensors'
    weights = load_file(path)
    for part in ('weight', 'bias'):
        weights[f'class_embed.1.{part}'] = weights[f'class_embed.0.{part}'] + 1
    # The weights of the decoder, which has this layer too, take precedence.
    weights['bbox_embed.0.layers.0.bias'] = torch.zeros(256)
    save_file(weights, path)
    head = load(tmp_path, device='cpu').model.bbox_head
    for i in range(2):
        assert torch.equal(head.cls_branches[i].weight, weights[f'class_embed.{i}.weight'])
    key = 'model.decoder.bbox_embed.0.layers.0.bias'
    assert torch.equal(head.reg_branches[0][0].bias, weights[key])


@pytest.mark.parametrize(
    ('variant', 'config', 'message'),
    [
        ('Detr', dict(auxiliary_loss=True), 'auxiliary_loss=True'),
        ('Detr', dict(position_embedding_type='learned'), "position_embedding_type='learned'"),
        ('DeformableDetr', dict(activation_function='gelu'), "activation_function='gelu'"),
        ('ConditionalDetr', dict(d_model=64), 'd_model=64'),
        (
            'Detr',
            dict(backbone='resnet18d'),
            "backbone_config.backbone='resnet18d', where its weights are those of a resnet18",
        ),
        ('Detr', dict(backbone='resnet26'), r'not a known ResNet, with \(2, 2, 2, 2\) blocks'),
        (
            'Detr',
            dict(backbone=None, use_timm_backbone=False),
            "backbone_config.model_type='resnet'",
        ),
    ],
)
def test_settings_that_mmdetection_lacks_raise(tmp_path, variant, config, message):
    save_published(tmp_path, variant, **config)
    with rejects(message):
        load(tmp_path, device='cpu')


def test_segmentation_models_raise(tmp_path):
    config = transformers.DetrConfig(**SMALL)
    transformers.DetrForSegmentation(config).save_pretrained(tmp_path)
    with rejects(r"architectures=\['DetrForSegmentation'\], and no model here reads it"):
        load(tmp_path, device='cpu')


@pytest.mark.parametrize('variant', VARIANTS)
def test_training_keeps_all_but_the_class_layers(tmp_path, variant):
    save_published(tmp_path / 'model', variant)
    write_coco(tmp_path / 'data', 6)
    request = Request(
        str(tmp_path / 'data'), task='detection', weights=str(tmp_path / 'model'), img_size=64
    )
    recipe = plan_config(DetectionRecipe(request))
    assert 'with 2 new classes: the layers of its classes start untrained' in recipe.text
    init_default_scope('mmdet')
    model = MODELS.build(Config(dict(model=recipe.sections['model'])).model)
    state = read_complete(request.weights)['state_dict']
    kept = keep_classifier(model, state)
    assert {name.split('.')[1] for name in kept} <= {'fc_cls', 'cls_branches'}
    assert not model.load_state_dict(state, strict=False).missing_keys
    assert model.bbox_head.num_classes == 2
    assert not any(p.requires_grad for p in model.backbone.layer1.parameters())
