"""A training that starts from a published detector: what is kept, and what starts untrained."""

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from image_folders import write_coco
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from published_models import QUERIES, roboflow_file

from vit_plugin.from_folder.detection import Detection
from vit_plugin.from_folder.recipe import recipe_of, text_of
from vit_plugin.from_folder.request import Request
from vit_plugin.models.classes import keep_classifier
from vit_plugin.weights.for_mmengine import read_complete

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks


@pytest.fixture
def task(tmp_path):
    """The task on two classes from a file with these contents."""

    def make(**content) -> Detection:
        rows = content.pop('rows', 91)
        path = roboflow_file(tmp_path / 'rf-detr.pth', rows, **content)
        data = write_coco(tmp_path / 'coco', 6)
        folder = str(data if data.is_dir() else tmp_path / 'coco')
        return Detection(Request(folder, task='detection', weights=str(path)))

    return make


def test_new_classes_change_the_head_alone(task):
    one = task()
    recipe = recipe_of(one)
    assert recipe.sections['load_from'] == one.request.weights
    head = recipe.sections['model']['bbox_head']
    assert head['num_classes'] == 2
    assert 'unused_rows' not in head
    assert head['num_queries'] == QUERIES
    assert 'with 2 new classes: the layers of its classes start untrained' in recipe.text
    assert dict(type='Resize', scale=(64, 64), keep_ratio=False) in recipe.sections['test_pipeline']
    assert 'retinanet' not in text_of(recipe, one.request)


def test_the_same_classes_are_kept(task):
    one = task(rows=3, args=dict(class_names=['square', 'bar'], resolution=64))
    recipe = recipe_of(one)
    assert recipe.sections['model']['bbox_head']['unused_rows'] == [2]
    assert 'with its classes, and all of it is kept' in recipe.text


def test_the_image_size_may_be_another(task):
    one = task()
    one.request.img_size = 96
    assert one.size == (96, 96)


def test_only_the_layers_of_classes_start_untrained(task):
    one = task()
    init_default_scope('mmdet')
    model = MODELS.build(Config(dict(model=recipe_of(one).sections['model'])).model)
    state = read_complete(one.request.weights)['state_dict']
    kept = keep_classifier(model, state)
    assert {name.split('.')[1] for name in kept} == {'fc_cls', 'proposal_cls'}
    assert not model.load_state_dict(state, strict=False).missing_keys
    weights = torch.load(one.request.weights, weights_only=False)['model']
    assert torch.equal(model.bbox_head.content.weight, weights['query_feat.weight'])
    assert torch.equal(
        model.bbox_head.fc_reg.layers[0].weight, weights['bbox_embed.layers.0.weight']
    )


def test_weights_that_say_nothing_ask_for_an_arch(tmp_path):
    path = tmp_path / 'a.pth'
    torch.save({'some.weight': torch.ones(2)}, path)
    with pytest.raises(Exception, match='do not say of which model they are'):
        Detection(Request(str(tmp_path), task='detection', weights=str(path)))
