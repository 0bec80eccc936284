"""Training on a folder of depth maps, from a new model or from a complete published one."""

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
from vit_plugin.from_folder.recipe import plan_config
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config
from vit_plugin.models import DPTDepthHead, VisionTransformer
from vit_plugin.tasks.depth.depth_recipe import DepthRecipe
from vit_plugin.weights import FORMATS, open_checkpoint
from vit_plugin.weights.for_mmengine import read_complete
from vit_plugin.weights.opening import Checkpoint
from vit_plugin.weights.source_layout import export_to_source_layout

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks
PLAIN = 'timm://test_vit'
WIDTHS = [8, 12, 16, 20]
ARCH = dict(embed_dims=32, num_layers=4, num_heads=2, feedforward_channels=64, patch_size=14)


@pytest.fixture
def make_recipe(tmp_path):
    """A function that writes a Depth Anything to the folder ``theirs``, and returns the recipe that
    continues it on images of 48 x 64 pixels. Its arguments are entries of config.json.
    """
    write_depth(tmp_path / 'rooms')

    def make(model_type='depth_anything', **config) -> DepthRecipe:
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
        weights, unexported = FORMATS['hf_depth_anything'].export(state, 2)
        assert not unexported
        folder = tmp_path / 'theirs'
        folder.mkdir()
        save_file(weights, folder / 'model.safetensors')
        encoder = dict(
            num_attention_heads=2,
            image_size=56,
            out_indices=[1, 2, 3, 4],
            reshape_hidden_states=False,
        )
        entries = dict(
            model_type=model_type, backbone_config=encoder, neck_hidden_sizes=WIDTHS, **config
        )
        (folder / 'config.json').write_text(json.dumps(entries))
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
def test_new_model_has_finite_loss_and_predicts(tmp_path, monkeypatch, arch, model, strides):
    monkeypatch.chdir(tmp_path)
    write_depth(tmp_path / 'rooms')
    request = Request('rooms', task='depth', arch=arch, model=model, epochs=1)
    cfg = read_config(write_config(request))
    check_config(cfg)
    head = cfg.model.decode_head
    assert head.max_depth == 3.2  # `write_depth` writes up to 3.15 m
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
    ('config', 'loss', 'metric', 'text'),
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
def test_complete_model_is_continued(make_recipe, config, loss, metric, text):
    depth_recipe = make_recipe(**config)
    weights = depth_recipe.request.weights
    recipe = plan_config(depth_recipe)
    assert 'and all of it is kept' in recipe.text
    assert text in recipe.text
    assert recipe.sections['load_from'] == weights
    assert metric.items() <= recipe.sections['val_evaluator'].items()
    # The images of 48 x 64 pixels become whole patches of 14.
    assert recipe.sections['model']['data_preprocessor']['size'] == (42, 56)
    init_default_scope('mmseg')
    model = MODELS.build(Config(dict(model=recipe.sections['model'])).model)
    assert type(model.decode_head.losses[0]).__name__ == loss
    keys = model.load_state_dict(read_complete(weights)['state_dict'], strict=False)
    assert not keys.missing_keys
    assert not keys.unexpected_keys


def test_depths_beyond_the_model_raise(make_recipe):
    with rejects(r'predicts up to 2 m, and half of the pixels are farther'):
        plan_config(make_recipe(depth_estimation_type='metric', max_depth=2))


def test_another_head_raises(make_recipe):
    request = make_recipe().request
    request.model = 'linear'
    with rejects('--model linear: .* are of another complete model'):
        DepthRecipe(request)


def test_other_depth_models_raise(make_recipe):
    with rejects('it is a glpn, which has parts that no model here has'):
        make_recipe('glpn')


def test_trained_weights_are_written_in_the_original_layout(make_recipe, tmp_path):
    make_recipe()
    original = open_checkpoint(tmp_path / 'theirs')
    state = dict(read_complete(str(tmp_path / 'theirs'))['state_dict'])
    trained = {name: value + 1 for name, value in state.items()}
    export_to_source_layout(
        original, Checkpoint('run.pth', dict(state_dict=trained)), tmp_path / 'again'
    )
    written, before = (
        load_file(tmp_path / name / 'model.safetensors') for name in ('again', 'theirs')
    )
    assert {*written} == {*before}
    for name, value in before.items():
        torch.testing.assert_close(written[name], value + 1)
