"""The model index: it is complete and up to date, and MMPretrain knows it on request."""

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

pytestmark = pytest.mark.filterwarnings('ignore')  # of the framework

REMEDY = 'run python tests/support/model_index.py'
BASE, MINI = 'vit-base-p16_8xb64-20k_in1k', 'hybrid-vit-mini-p2_1xb16_digits'


@pytest.fixture
def written() -> dict[str, dict]:
    """The committed entries by name."""
    files = [Path(path) for path in mmengine.load('model-index.yml')['Import']]
    return {entry['Name']: entry for path in files for entry in mmengine.load(path)['Models']}


@pytest.fixture
def registered(monkeypatch) -> None:
    """Register the recipes with MMPretrain until the test ends."""
    monkeypatch.setattr(ModelHub, '_models_dict', dict(ModelHub._models_dict))
    vit_plugin.register_models()


def test_each_recipe_of_a_classifier_has_an_entry(written):
    folders = {path.name for path in Path('configs').iterdir() if path.is_dir()}
    # These are for other tasks, have no classes, or need a teacher.
    others = {'_base_', 'detection', 'distillation', 'segmentation', 'self_supervised'}
    assert folders - others == set(model_index.COLLECTIONS)
    recipes = {
        path.stem for folder in model_index.COLLECTIONS for path in model_index.recipes(folder)
    }
    assert set(written) == recipes, REMEDY


@pytest.mark.parametrize('name', [BASE, MINI])
def test_entries_are_up_to_date(written, name):
    assert model_index.entry(Path(written[name]['Config'])) == written[name], REMEDY


@pytest.mark.nightly
def test_all_files_are_up_to_date():
    for path, text in model_index.written().items():
        assert Path(path).read_text() == text, REMEDY


def test_flops_of_base(written):
    """B/16 at 224 px, where a multiply-add counts as one.

    The last block computes only the class token.
    """
    width, tokens, blocks = 768, 197, 12
    stem, head = 196 * 3 * 16**2 * width, 1000 * width
    # The operations of one token.
    qkv, attention, proj_and_mlp = 3 * width**2, 2 * tokens * width, 9 * width**2
    block = tokens * (qkv + attention + proj_and_mlp)
    last_block = tokens * qkv + attention + proj_and_mlp
    assert written[BASE]['Metadata']['FLOPs'] == stem + (blocks - 1) * block + last_block + head
    assert written[BASE]['Metadata']['Parameters'] == 86_567_656


def test_accuracies_equal_those_of_the_docstrings(written):
    for entry in written.values():
        text = ' '.join(ast.get_docstring(ast.parse(Path(entry['Config']).read_text())).split())
        metrics = entry['Results'][0]['Metrics']
        assert bool(metrics) == (' % top-1' in text), entry['Name']
        if metrics:
            accuracy = metrics['Top 1 Accuracy']
            assert any(
                f'{entry["Accuracy"]}: {rounded} % top-1' in ' '.join(text.split())
                for rounded in (f'{accuracy:.1f}', f'{accuracy:.2f}')
            )


def test_recipes_are_not_registered_by_the_import():
    assert not [name for name in ModelHub._models_dict if name.startswith('hybrid-vit')]


@pytest.mark.nightly
@pytest.mark.usefixtures('registered')
def test_mmpretrain_lists_and_builds_the_recipes(written):
    vit_plugin.register_models()  # a second call changes nothing
    assert 'hybrid-vit-base-r50-p16_8xb64-20k_in1k-384px' in list_models('*r50*')
    assert set(list_models(task='Image Classification')) > set(written)
    model = get_model(BASE, backbone=dict(drop_rate=0.5))
    assert isinstance(model.backbone, VisionTransformer)
    assert model.backbone.drop_after_pos.p == 0.5
    assert Path(model._config.filename).name == f'{BASE}.py'


@pytest.mark.nightly
@pytest.mark.usefixtures('registered')
def test_mmpretrain_infers_with_the_recipes():
    image = np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8)
    prediction = inference_model(BASE, image)
    assert prediction['pred_scores'].shape == (1000,)
    assert prediction['pred_class'] == ImageClassificationInferencer(BASE)(image)[0]['pred_class']
    (features,) = FeatureExtractor(BASE)(image)[0]
    assert features.shape == (768,)
    (digit,) = ImageClassificationInferencer(MINI)(image[:8, :8, :1])
    assert digit['pred_class'] in map(str, range(10))


@pytest.mark.nightly
@pytest.mark.usefixtures('registered')
def test_pretrained_takes_other_formats(tmp_path):
    """For example, weights with timm's names in a safetensors file."""
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
