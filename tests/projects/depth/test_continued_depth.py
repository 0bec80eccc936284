"""A training on a folder: a new model, or a published one with its head, and its file again."""

import json

import pytest
import torch
from image_folders import write_depth
from mmengine.config import Config
from mmengine.dataset import pseudo_collate
from mmengine.registry import DATASETS, MODELS, init_default_scope
from rejection import rejects
from safetensors.torch import load_file, save_file
from tiny_models import randomize

from vit_plugin.config import read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.from_folder.recipe import recipe_of
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config
from vit_plugin.models import DPTDepthHead, VisionTransformer
from vit_plugin.tasks.depth.depth_recipe import DepthRecipe
from vit_plugin.weights import FORMATS, open_checkpoint
from vit_plugin.weights.for_mmengine import read_complete
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.source_layout import export_to_source_layout

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks
PLAIN = 'timm://test_vit'
WIDTHS = [8, 12, 16, 20]
ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64, patch_size=14)


@pytest.fixture
def task(tmp_path):
    """The task on 48 x 64 pixels from a Depth Anything with this entry of its config.json."""
    write_depth(tmp_path / 'rooms')

    def make(kind='depth_anything', **config) -> DepthRecipe:
        torch.manual_seed(0)
        parts = dict(
            backbone=VisionTransformer(
                ARCH, img_size=56, numerics='timm', encoder=dict(layer_scale_init_value=1.0)
            ),
            decode_head=DPTDepthHead([32] * 4, [14] * 4, level_channels=WIDTHS, channels=16),
        )
        state = {
            f'{name}.{key}'.removeprefix('backbone.'): value
            for name, part in parts.items()
            for key, value in randomize(part, std=0.2).state_dict().items()
        }
        weights, left = FORMATS['hf_depth_anything'].export(state, 2)
        assert not left
        folder = tmp_path / 'theirs'
        folder.mkdir()
        save_file(weights, folder / 'model.safetensors')
        encoder = dict(
            num_attention_heads=2,
            image_size=56,
            out_indices=[1, 2, 3, 4],
            reshape_hidden_states=False,
        )
        more = dict(model_type=kind, backbone_config=encoder, neck_hidden_sizes=WIDTHS, **config)
        (folder / 'config.json').write_text(json.dumps(more))
        request = Request(str(tmp_path / 'rooms'), task='depth', weights=str(folder))
        return DepthRecipe(request)

    return make


@pytest.mark.parametrize(
    ('arch', 'model', 'strides'),
    [
        ('', None, [2, 4, 8, 16]),
        ('', 'linear', None),
        pytest.param(PLAIN, 'dpt', [16] * 4, marks=pytest.mark.nightly),
    ],
)
def test_a_new_model_learns(tmp_path, monkeypatch, arch, model, strides):
    monkeypatch.chdir(tmp_path)
    write_depth(tmp_path / 'rooms')
    request = Request('rooms', task='depth', arch=arch, model=model, epochs=1)
    cfg = read_config(write_config(request))
    check_config(cfg)
    head = cfg.model.decode_head
    assert head.max_depth == 3.2
    assert head.get('strides') == strides
    init_default_scope('mmseg')
    dataset, model = DATASETS.build(cfg.train_dataloader.dataset), MODELS.build(cfg.model)
    batch = model.data_preprocessor(pseudo_collate([dataset[0], dataset[1]]), True)
    losses = model(**batch, mode='loss')
    assert losses['decode.loss_silog'].isfinite()
    with torch.no_grad():
        depth = model.eval()(**batch, mode='predict')[0].pred_depth_map.data
    assert depth.shape == (1, 48, 64)


@pytest.mark.parametrize(
    ('config', 'loss', 'metric', 'said'),
    [
        ({}, 'ScaleShiftInvariantLoss', dict(mode='disparity', max_depth_eval=3.2), 'by a scale'),
        (
            dict(depth_estimation_type='metric', max_depth=3),
            'SiLogLoss',
            dict(mode='depth', max_depth_eval=3),
            'what is farther is unknown',
        ),
    ],
    ids=['relative', 'metric'],
)
def test_the_whole_model_is_continued(task, config, loss, metric, said):
    one = task(**config)
    recipe = recipe_of(one)
    assert 'and all of it is kept' in recipe.text
    assert said in recipe.text
    assert recipe.sections['load_from'] == one.request.weights
    assert metric.items() <= recipe.sections['val_evaluator'].items()
    assert recipe.sections['model']['data_preprocessor']['size'] == (42, 56)
    init_default_scope('mmseg')
    model = MODELS.build(Config(dict(model=recipe.sections['model'])).model)
    assert type(model.decode_head.losses[0]).__name__ == loss
    found = model.load_state_dict(read_complete(one.request.weights)['state_dict'], strict=False)
    assert not found.missing_keys
    assert not found.unexpected_keys


def test_depths_beyond_the_model_are_refused(task):
    with rejects(r'predicts up to 2 m, and half of the pixels are farther'):
        recipe_of(task(depth_estimation_type='metric', max_depth=2))


def test_another_head_is_refused(task):
    one = task()
    one.request.model = 'linear'
    with rejects('--model linear: .* are of another complete model'):
        DepthRecipe(one.request)


def test_other_models_of_depth_are_refused(task):
    with rejects('it is a glpn, which has parts that no model here has'):
        task('glpn')


def test_its_folder_is_written_again_with_the_head(task, tmp_path):
    task()
    original = open_checkpoint(tmp_path / 'theirs')
    state = dict(read_complete(str(tmp_path / 'theirs'))['state_dict'])
    trained = {name: value + 1 for name, value in state.items()}
    export_to_source_layout(
        original, Checkpoint('run.pth', dict(state_dict=trained)), tmp_path / 'again'
    )
    found, before = (
        load_file(tmp_path / name / 'model.safetensors') for name in ('again', 'theirs')
    )
    assert {*found} == {*before}
    for name, value in before.items():
        torch.testing.assert_close(found[name], value + 1)
