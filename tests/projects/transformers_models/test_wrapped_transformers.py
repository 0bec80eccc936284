"""Training on a folder of transformers that needs a TransformersBackbone."""

from pathlib import Path

import pytest
import torch
from PIL import Image
from rejection import rejects

from vit_plugin.from_folder.pretraining import Pretraining
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.starting_point import StartingPoint
from vit_plugin.models import load_weights
from vit_plugin.registry import MODELS

transformers = pytest.importorskip('transformers', '5', 'needs transformers 5')
recipes = pytest.importorskip('vit_plugin.tasks.classification.classification_recipe')
SIZES = dict(depths=[1, 1, 1, 1], hidden_sizes=[8, 12, 16, 20], image_size=64)


@pytest.fixture
def folder(tmp_path):
    """A published classifier of two classes that a VisionTransformer cannot compute."""
    torch.manual_seed(0)
    names = dict(id2label={0: 'a', 1: 'b'}, label2id=dict(a=0, b=1))
    config = transformers.ConvNextV2Config(**SIZES, **names)
    transformers.ConvNextV2ForImageClassification(config).save_pretrained(tmp_path / 'published')
    return str(tmp_path / 'published')


@pytest.fixture
def data(tmp_path):
    """Images of the same two classes."""
    for part in ('train', 'val'):
        for number, name in enumerate('ab'):
            path = Path(tmp_path, 'data', part, name)
            path.mkdir(parents=True)
            for i in range(2):
                pixel = (40 * number + i, 90, 10)
                Image.new('RGB', (70, 64), pixel).save(path / f'{i}.png')
    return str(tmp_path / 'data')


def test_folder_becomes_the_backbone_of_a_classifier(folder, data, tmp_path):
    recipe = recipes.ClassificationRecipe(
        Request(data, weights=folder, work_dir=str(tmp_path / 'run'))
    )
    model = recipe.model()
    assert not recipe.loads_model
    assert recipe.size == (64, 64)
    assert model['backbone']['type'] == 'vit_plugin.TransformersBackbone'
    assert 'id2label' not in model['backbone']['config']
    assert model['backbone']['out_type'] == 'pooled'
    assert 'neck' not in model
    assert model['head']['init_cfg']['checkpoint'] == str(Path(folder, 'model.safetensors'))
    assert model['head']['in_channels'] == 20
    backbone = MODELS.build({key: model['backbone'][key] for key in ('type', 'config', 'out_type')})
    load_weights(backbone, model['backbone']['init_cfg']['checkpoint'])
    theirs = transformers.ConvNextV2Model.from_pretrained(folder).state_dict()
    weights = backbone.model.convnextv2.state_dict()
    name = 'encoder.stages.3.layers.0.dwconv.weight'
    assert torch.equal(weights[name], theirs[name])


def test_checkpoint_of_a_run_is_a_starting_point(folder, tmp_path):
    start = StartingPoint('', folder, (0, 64))
    backbone = dict(start.backbone(0), init_cfg=dict(type='Pretrained', checkpoint=folder))
    path = tmp_path / 'run.pth'
    cfg = f'model = dict(type="ImageClassifier", backbone={backbone!r})'
    torch.save(dict(meta=dict(cfg=cfg), state_dict={}), path)
    assert StartingPoint('', str(path), (0, 64)).backbone(0) == start.backbone(0)
    assert start.build_meta_backbone(0, out_type='pyramid').channels == (8, 12, 16, 20)


def test_pretraining_raises(folder, data):
    with rejects(
        'vit-plugin pretrain needs a VisionTransformer, but .* computed by TransformersBackbone'
    ):
        Pretraining(Request(data, task='pretraining', weights=folder, method='mae'))


def test_folder_as_arch_starts_without_weights(folder, data, tmp_path):
    recipe = recipes.ClassificationRecipe(
        Request(data, arch=folder, work_dir=str(tmp_path / 'run'))
    )
    model = recipe.model()
    assert recipe.start.from_scratch
    assert model['backbone']['type'] == 'vit_plugin.TransformersBackbone'
    assert 'init_cfg' not in model['backbone'] | model['head']


def test_encoder_that_is_computed_here_raises_as_arch(tmp_path):
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=1, num_attention_heads=2)
    config.save_pretrained(tmp_path)
    with rejects('is not an encoder, or is one that this package computes itself; give it as'):
        StartingPoint(str(tmp_path), None, (0, 64))
