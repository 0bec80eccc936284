"""The model index: complete, computed, and known to MMPretrain when asked for."""

import ast
from pathlib import Path

import mmengine
import model_index
import numpy as np
import pytest
import safetensors.torch
from mmpretrain import (
    FeatureExtractor,
    ImageClassificationInferencer,
    get_model,
    inference_model,
    list_models,
)
from mmpretrain.apis.model import ModelHub

import vit_plugin
from vit_plugin.models import VisionTransformer

pytestmark = pytest.mark.filterwarnings('ignore')  # the framework's

HOW = 'run python tests/support/model_index.py'
BASE, MINI = 'vit-base-p16_8xb64-20k_in1k', 'hybrid-vit-mini-p2_1xb16_digits'


@pytest.fixture
def written() -> dict[str, dict]:
    """The committed entries, by their names."""
    files = [Path(path) for path in mmengine.load('model-index.yml')['Import']]
    return {entry['Name']: entry for path in files for entry in mmengine.load(path)['Models']}


@pytest.fixture
def registered(monkeypatch) -> None:
    """MMPretrain knows the recipes, until the test ends."""
    monkeypatch.setattr(ModelHub, '_models_dict', dict(ModelHub._models_dict))
    vit_plugin.register_models()


def test_every_recipe_of_a_classifier_has_an_entry(written):
    folders = {path.name for path in Path('configs').iterdir() if path.is_dir()}
    # The others are of other tasks, of pre-trained models without classes, or need a teacher.
    others = {'_base_', 'detection', 'distillation', 'segmentation', 'self_supervised'}
    assert folders - others == set(model_index.COLLECTIONS)
    recipes = {
        path.stem for folder in model_index.COLLECTIONS for path in model_index.recipes(folder)
    }
    assert set(written) == recipes, HOW


@pytest.mark.parametrize('name', [BASE, MINI])
def test_an_entry_is_what_is_computed(written, name):
    assert model_index.entry(Path(written[name]['Config'])) == written[name], HOW


@pytest.mark.nightly
def test_every_entry_is_what_is_computed():
    for path, text in model_index.written().items():
        assert Path(path).read_text() == text, HOW


def test_operations_by_hand(written):
    """B/16 at 224: a multiplication with addition each.

    The last block computes the class token alone.
    """
    width, tokens, blocks = 768, 197, 12
    stem, head = 196 * 3 * 16**2 * width, 1000 * width
    # The rest of one token is proj and MLP.
    qkv, attention, rest = 3 * width**2, 2 * tokens * width, 9 * width**2
    whole = tokens * (qkv + attention + rest)
    last = tokens * qkv + attention + rest
    assert written[BASE]['Metadata']['FLOPs'] == stem + (blocks - 1) * whole + last + head
    assert written[BASE]['Metadata']['Parameters'] == 86_567_656


def test_accuracies_are_those_of_the_docstrings(written):
    for entry in written.values():
        text = ' '.join(ast.get_docstring(ast.parse(Path(entry['Config']).read_text())).split())
        metrics = entry['Results'][0]['Metrics']
        assert bool(metrics) == (' % top-1' in text), entry['Name']
        if metrics:
            figure = metrics['Top 1 Accuracy']
            assert any(
                f'{entry["Accuracy"]}: {said} % top-1' in ' '.join(text.split())
                for said in (f'{figure:.1f}', f'{figure:.2f}')
            )


def test_mmpretrain_does_not_know_them_before():
    assert not [name for name in ModelHub._models_dict if name.startswith('hybrid-vit')]


@pytest.mark.nightly
@pytest.mark.usefixtures('registered')
def test_mmpretrain_lists_and_builds_them(written):
    vit_plugin.register_models()  # the second time
    assert 'hybrid-vit-base-r50-p16_8xb64-20k_in1k-384px' in list_models('*r50*')
    assert set(list_models(task='Image Classification')) > set(written)
    model = get_model(BASE, backbone=dict(drop_rate=0.5))
    assert isinstance(model.backbone, VisionTransformer)
    assert model.backbone.drop_after_pos.p == 0.5
    assert Path(model._config.filename).name == f'{BASE}.py'


@pytest.mark.nightly
@pytest.mark.usefixtures('registered')
def test_mmpretrain_infers_with_them():
    image = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    found = inference_model(BASE, image)
    assert found['pred_scores'].shape == (1000,)
    assert found['pred_class'] == ImageClassificationInferencer(BASE)(image)[0]['pred_class']
    (features,) = FeatureExtractor(BASE)(image)[0]
    assert features.shape == (768,)
    (digit,) = ImageClassificationInferencer(MINI)(image[:8, :8, :1])
    assert digit['pred_class'] in map(str, range(10))


@pytest.mark.nightly
@pytest.mark.usefixtures('registered')
def test_pretrained_takes_every_format(tmp_path):
    """Here it takes timm's names."""
    source = get_model(BASE)
    state = {
        name.removeprefix('backbone.').replace('head.layers.head', 'head'): value.clone()
        for name, value in source.state_dict().items()
        if '_extra_state' not in name
    }
    safetensors.torch.save_file(state, tmp_path / 'x.safetensors')
    model = get_model(BASE, pretrained=str(tmp_path / 'x.safetensors'))
    assert (model.head.layers.head.weight == source.head.layers.head.weight).all()
    assert (
        model.backbone.blocks[3].mlp.fc1.weight == source.backbone.blocks[3].mlp.fc1.weight
    ).all()
