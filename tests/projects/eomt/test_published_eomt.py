"""EoMTs saved by transformers become the same model here."""

from extras import needs_task
from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import json

import numpy as np
import pytest
import torch
from authors import FOLDER, recorded
from published_models import eomt_folder

from vit_plugin.inference.load import load
from vit_plugin.projects.eomt.published_eomt import _class_names

pytestmark = [
    needs_task('detection'),
    pytest.mark.filterwarnings('ignore'),  # warnings of the frameworks
]
IMAGE = np.random.default_rng(0).integers(0, 256, (40, 64, 3), dtype=np.uint8)


def test_outputs_equal_those_of_transformers(tmp_path):
    trained = load(eomt_folder(tmp_path / 'a', 'EomtDinov3'), device='cpu')
    arrays = recorded(FOLDER / 'eomt/EomtDinov3ForUniversalSegmentation.npz')
    backbone = trained.model.backbone.double()
    backbone.queries.set_probs((1.0, 1.0))
    with torch.no_grad():
        outputs = backbone(torch.from_numpy(arrays['images']).double())[-1]
    for actual, part in zip(outputs, ('classes', 'masks'), strict=True):
        expected = torch.from_numpy(arrays[f'{part}0'])
        torch.testing.assert_close(
            actual, expected, rtol=0, atol=1e-9 * expected.abs().max().item()
        )


@pytest.mark.parametrize(
    ('name', 'options'),
    [
        ('EomtDinov3', dict(rope_parameters=dict(rope_type='default', rope_theta=20.0))),
        ('EomtDinov3', dict(rope_theta=20.0)),
        ('EomtDinov3', dict(use_gated_mlp=True, intermediate_size=64)),
        ('Eomt', dict(use_swiglu_ffn=True)),
    ],
)
def test_settings_without_shapes_are_read_from_the_config(tmp_path, name, options):
    transformers = pytest.importorskip('transformers', minversion='5')
    config = getattr(transformers, f'{name}Config')(
        hidden_size=64,
        num_attention_heads=2,
        num_hidden_layers=2,
        num_blocks=1,
        num_queries=3,
        image_size=64,
        num_register_tokens=1,
        patch_size=16,
        **options,
    )
    theirs = getattr(transformers, f'{name}ForUniversalSegmentation')(config).eval()
    theirs.save_pretrained(tmp_path)
    backbone = load(tmp_path, device='cpu').model.backbone
    backbone.queries.set_probs((0.0,))
    theirs.attn_mask_probs.fill_(0.0)
    images = torch.randn(1, 3, 64, 64)
    with torch.no_grad():
        expected, ours = theirs(pixel_values=images), backbone(images)[-1]
    torch.testing.assert_close(ours[0], expected.class_queries_logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ours[1], expected.masks_queries_logits, rtol=1e-4, atol=1e-4)


def test_another_activation_raises(tmp_path):
    folder = eomt_folder(tmp_path / 'a', 'Eomt')
    config = json.loads((folder / 'config.json').read_text())
    (folder / 'config.json').write_text(json.dumps(dict(config, hidden_act='relu')))
    with rejects("hidden_act='relu', and models here compute 'gelu'"):
        load(folder, device='cpu')


@pytest.mark.parametrize('name', ['Eomt', 'EomtDinov3'])
def test_instance_masks_are_predicted(tmp_path, name):
    prediction = load(eomt_folder(tmp_path / 'a', name), device='cpu')(IMAGE)
    assert prediction.masks is not None
    assert {*prediction.names} <= {f'thing {i}' for i in range(5)}


@needs_task('segmentation')
def test_split_images_give_a_class_map(tmp_path):
    folder = eomt_folder(tmp_path / 'a', 'Eomt', do_split_image=True)
    prediction = load(folder, device='cpu')(IMAGE)
    assert prediction.map.shape == IMAGE.shape[:2]


@needs_task('segmentation')
def test_rows_without_names_become_numbered_classes(tmp_path):
    folder = eomt_folder(tmp_path / 'a', 'Eomt', classes=0, do_split_image=True)
    assert load(folder, device='cpu').classes == [f'class {i}' for i in range(5)]


def test_unknown_kind_of_masks_raises(tmp_path, monkeypatch):
    monkeypatch.setattr('vit_plugin.projects.eomt.published_eomt.NUM_COCO_THINGS', 4)
    with rejects('which of its 5 classes are things'):
        load(eomt_folder(tmp_path / 'a', 'Eomt'), device='cpu')


@pytest.mark.parametrize(
    ('rows', 'names', 'first', 'last'),
    [
        (150, 'LABEL_', 'wall', 'flag'),
        (150, 'area ', 'area 0', 'area 149'),
        (133, 'LABEL_', 'person', 'rug-merged'),
        (80, None, 'person', 'toothbrush'),
        (5, 'LABEL_', 'LABEL_0', 'LABEL_4'),
    ],
)
def test_default_names_become_those_of_a_known_data_set(rows, names, first, last):
    classes = _class_names({i: f'{names}{i}' for i in range(rows)} if names else {}, rows)
    assert (classes[0], classes[-1], len(classes)) == (first, last, rows)
