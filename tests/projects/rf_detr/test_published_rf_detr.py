"""The settings of RF-DETR's files are read from their content, and give the same model here."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import json

import pytest
import torch
from published_models import (
    BLOCKS,
    GROUPS,
    PATCH,
    QUERIES,
    SIDE,
    roboflow_file,
    roboflow_weights,
    transformers_folder,
)

from vit_plugin.inference.load import load
from vit_plugin.projects.rf_detr.published_rf_detr import EMBEDDINGS, read_rf_detr
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.published import Published
from vit_plugin.weights.published_run import as_run
from vit_plugin.weights.source_layout import changed_tensors, export_to_source_layout

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks


def settings_of(weights: dict, config: dict | None = None, **content) -> dict:
    """The config that is read from a file, and its classes under ``classes``."""
    checkpoint = Checkpoint('a.pth', dict(model=weights, **content), dict(config=config or {}))
    settings, classes = read_rf_detr(Published(checkpoint))
    return dict(settings, classes=classes)


def test_settings_are_read_from_shapes():
    settings = settings_of(roboflow_weights())
    model = settings['model']
    # The layer has 91 rows, with those of COCO's unused category ids.
    assert len(settings['classes']) == model['bbox_head']['num_classes'] == 80
    assert model['backbone']['out_indices'] == [2, 5, 8, 11]
    assert model['backbone']['encoder']['window'] == dict(number=2, global_blocks=[3, 6, 9])
    assert model['neck']['norm_cfg'] == dict(type='LN2d', eps=1e-6)
    head = model['bbox_head']
    assert (head['num_queries'], head['num_groups']) == (QUERIES, GROUPS)
    assert head['decoder'] == dict(
        num_layers=1, num_heads=1, num_cross_heads=2, num_points=2, feedforward_channels=32
    )
    assert settings['test_dataloader']['dataset']['pipeline'][1]['scale'] == (SIDE * PATCH,) * 2


@pytest.mark.parametrize(
    ('patch', 'side', 'windows', 'stages', 'size'),
    [
        (14, 37, 4, [2, 5, 8, 11], 560),  # Base
        (16, 24, 2, [3, 6, 9, 12], 384),  # Nano
        (16, 44, 2, [3, 6, 9, 12], 704),  # Large
        (12, 26, 1, [3, 6, 9, 12], 312),  # Seg Nano
        (20, 35, 1, [3, 6, 9, 12], 700),  # XL
        (20, 44, 2, [3, 6, 9, 12], 880),  # 2XL
    ],
)
def test_published_sizes_are_recognized(patch, side, windows, stages, size):
    weights = roboflow_weights()
    weights[f'{EMBEDDINGS}patch_embeddings.projection.weight'] = torch.zeros(64, 3, patch, patch)
    weights[f'{EMBEDDINGS}position_embeddings'] = torch.zeros(1, side**2 + 1, 64)
    settings = settings_of(weights)
    backbone = settings['model']['backbone']
    assert backbone['out_indices'] == [stage - 1 for stage in stages]
    assert backbone['encoder']['window'] == dict(
        number=windows, global_blocks=[stage for stage in stages if stage < BLOCKS]
    )
    assert backbone['img_size'] == patch * side
    assert settings['test_dataloader']['dataset']['pipeline'][1]['scale'] == (size, size)


def test_settings_of_a_training_take_precedence():
    weights = roboflow_weights(rows=3)
    content = dict(
        args=dict(class_names=['cat', 'dog']),
        model_config=dict(out_feature_indexes=[1, 2], num_windows=4, resolution=128, num_select=4),
    )
    settings = settings_of(weights, **content)
    model = settings['model']
    assert settings['classes'] == ['cat', 'dog']
    assert model['bbox_head']['unused_rows'] == [2]
    assert model['backbone']['out_indices'] == [0, 1]
    assert model['backbone']['encoder']['window'] == dict(number=4, global_blocks=[1, 2])
    assert model['test_cfg'] == dict(max_per_img=4)
    assert settings['test_dataloader']['dataset']['pipeline'][1]['scale'] == (128, 128)


@pytest.mark.parametrize('stages', [[2, 1], [1, 1], [3, 13]])
def test_stages_that_the_backbone_does_not_have_in_this_order_raise(stages):
    with rejects('out_feature_indexes=.* up to 12 blocks in ascending order are expected'):
        settings_of(roboflow_weights(), model_config=dict(out_feature_indexes=stages))


@pytest.mark.parametrize(('fields', 'scale'), [(dict(), 4), (dict(mask_downsample_ratio=8), 2)])
def test_the_size_of_masks_is_read_from_the_config(fields, scale):
    vit = dict(hidden_size=64, num_attention_heads=1, image_size=64, patch_size=16)
    config = dict(model_type='rf_detr', backbone_config=vit, **fields)
    head = settings_of(roboflow_weights(masks=True), config)['model']['bbox_head']
    assert head['mask_scale'] == scale


def test_loaded_model_uses_every_weight(tmp_path):
    trained = load(roboflow_file(tmp_path / 'rf-detr.pth'), device='cpu')
    weights, state = roboflow_weights(), trained.model.state_dict()
    # The mask token is for pre-training only.
    used = {name for name in weights if not name.endswith('mask_token')}
    count = sum(weights[name].numel() for name in used)
    # `_extra_state` has the grid of the position table, which is no weight.
    assert sum(value.numel() for name, value in state.items() if 'state' not in name) == count
    assert torch.equal(state['bbox_head.fc_cls.weight'], weights['class_embed.weight'])
    image = torch.randint(0, 256, (48, 64, 3), dtype=torch.uint8).numpy()
    prediction = trained(image)
    assert len(trained.classes) == 80
    assert len(prediction.boxes) == QUERIES


def test_unused_rows_are_never_predicted(tmp_path):
    weights = roboflow_weights()
    weights['class_embed.bias'][0] = 100.0  # row 0 stands for no category of COCO
    path = roboflow_file(tmp_path / 'rf-detr.pth', model=weights)
    model = load(path, device='cpu').model
    logits, *_ = model.bbox_head(model.extract_feat(torch.randn(1, 3, 64, 64)))
    assert logits.shape[-1] == 80
    assert logits.max() < 50


@pytest.mark.parametrize('kind', ['RfDetr', 'LwDetr'])
def test_outputs_of_a_folder_equal_those_of_transformers(tmp_path, kind):
    from authors import FOLDER, recorded

    arrays = recorded(FOLDER / f'lw_detr/{kind}.npz')
    trained = load(transformers_folder(tmp_path / kind, kind), device='cpu')
    model = trained.model.double()
    with torch.no_grad():
        feats = model.extract_feat(torch.from_numpy(arrays['images']).double())
        logits, boxes, *_ = model.bbox_head(feats)
    for actual, name in ((logits[-1], 'logits'), (boxes[-1], 'boxes')):
        expected = torch.from_numpy(arrays[f'whole/{name}'])
        torch.testing.assert_close(actual, expected, rtol=0, atol=1e-9)
    assert trained.classes == ['cat', 'dog', 'owl']
    assert model.data_preprocessor.mean.flatten().tolist() == [127.5] * 3


@pytest.mark.parametrize('kind', ['RfDetr', 'LwDetr'])
def test_a_folder_without_names_has_a_class_for_each_row(tmp_path, kind):
    """transformers leaves out its default names of two classes."""
    folder = transformers_folder(tmp_path / kind, kind)
    config = json.loads((folder / 'config.json').read_text())
    del config['id2label']
    (folder / 'config.json').write_text(json.dumps(config))
    assert load(folder, device='cpu').classes == ['class 0', 'class 1', 'class 2']


@pytest.mark.parametrize(
    ('key', 'shape', 'message'),
    [
        ('keypoint_embed.a.weight', (1, 4, 64), 'it predicts keypoints'),
        ('keypoint_head.a.weight', (1, 4, 64), 'it predicts keypoints'),
        (f'{EMBEDDINGS}register_tokens', (1, 4, 64), 'has registers'),
        (f'{EMBEDDINGS}patch_embeddings.projection.weight', (64, 4, 16, 16), 'have 4 channels'),
    ],
)
def test_unsupported_models_raise(tmp_path, key, shape, message):
    weights = dict(roboflow_weights(), **{key: torch.ones(shape)})
    path = roboflow_file(tmp_path / 'a.pth', model=weights)
    with rejects(message):
        load(path, device='cpu')


def test_arrays_with_other_axes_raise(tmp_path):
    weights = roboflow_weights() | {'class_embed.weight': torch.ones(3)}
    with rejects('do not go together'):
        load(roboflow_file(tmp_path / 'a.pth', model=weights), device='cpu')


def test_missing_weights_raise(tmp_path):
    weights = roboflow_weights()
    del weights['refpoint_embed.weight']
    with rejects('it lacks refpoint_embed.weight'):
        load(roboflow_file(tmp_path / 'a.pth', model=weights), device='cpu')


def test_trained_weights_change_only_their_tensors_in_the_file(tmp_path):
    """A second copy of the weights is changed too; settings of the training are kept."""
    path = roboflow_file(tmp_path / 'rf-detr.pth', epoch=3)
    content = torch.load(path, weights_only=False)
    copy = {f'model.{name}': value for name, value in content['model'].items()}
    torch.save(dict(content, state_dict=copy), path)
    original = open_checkpoint(path)
    state = dict(as_run(original).weights)
    trained = Checkpoint('run.pth', dict(state_dict=state))
    assert not changed_tensors(original, trained)
    name = 'backbone.blocks.11.mlp.fc1.weight'
    state[name] = state[name] + 1
    their_name = 'backbone.0.encoder.encoder.encoder.layer.11.mlp.fc1.weight'
    export_to_source_layout(original, trained, tmp_path / 'again.pth')
    before = torch.load(path, weights_only=False)
    after = torch.load(tmp_path / 'again.pth', weights_only=False)
    assert (after['epoch'], vars(after['args'])) == (3, vars(before['args']))
    for part, start in (('model', ''), ('state_dict', 'model.')):
        changed = {
            key for key, value in before[part].items() if not torch.equal(value, after[part][key])
        }
        assert changed == {start + their_name}
        assert torch.equal(after[part][start + their_name], state[name])
