"""A training that starts from a published detector: what is kept, and what starts untrained."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from image_folders import write_coco, write_masks
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from published_models import QUERIES, eomt_folder, roboflow_file

from vit_plugin.from_folder.recipe import recipe_of, text_of
from vit_plugin.from_folder.request import Request
from vit_plugin.models.classes import keep_classifier
from vit_plugin.tasks.detection.detection_recipe import DetectionRecipe
from vit_plugin.tasks.instance.instance_recipe import InstanceRecipe
from vit_plugin.tasks.segmentation.segmentation_recipe import SegmentationRecipe
from vit_plugin.weights.for_mmengine import read_complete

TASK = 'detection', DetectionRecipe
TASKS = dict(instance=InstanceRecipe, segmentation=SegmentationRecipe)
pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks


@pytest.fixture
def task(tmp_path):
    """The task on two classes from a file with these contents."""

    def make(**content) -> DetectionRecipe:
        rows = content.pop('rows', 91)
        path = roboflow_file(tmp_path / 'rf-detr.pth', rows, **content)
        data = write_coco(tmp_path / 'coco', 6, polygons=bool(content.get('masks')))
        folder = str(data if data.is_dir() else tmp_path / 'coco')
        name, kind = ('instance', InstanceRecipe) if content.get('masks') else TASK
        return kind(Request(folder, task=name, weights=str(path)))

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
    with pytest.raises(Exception, match='do not say which model they are for'):
        DetectionRecipe(Request(str(tmp_path), task='detection', weights=str(path)))


def test_masks_are_learned_where_the_file_has_them(task):
    model = recipe_of(task(masks=True)).sections['model']
    assert model['bbox_head']['type'] == 'vit_plugin.RFDETRSegHead'
    assert model['bbox_head']['num_classes'] == 2
    assert model['data_preprocessor']['pad_mask'] is True


@pytest.mark.parametrize(('masks', 'name'), [(True, 'instance'), (False, 'detection')])
def test_weights_of_another_task_are_refused(tmp_path, masks, name):
    path = str(roboflow_file(tmp_path / 'a.pth', masks=masks))
    other, kind = TASK if masks else ('instance', InstanceRecipe)
    with rejects(f'are of a model for --task {name}; give this task'):
        kind(Request(str(tmp_path), task=other, weights=path))


@pytest.mark.parametrize(('task_name', 'kind'), TASKS.items())
def test_queries_are_kept_and_their_classes_start_untrained(tmp_path, task_name, kind):
    """EoMT's classes are layers of its backbone."""
    semantic = task_name == 'segmentation'
    folder = eomt_folder(tmp_path / 'eomt', 'Eomt', do_split_image=semantic)
    data = (
        write_masks(tmp_path / 'data')
        if semantic
        else write_coco(tmp_path / 'data', 6, polygons=True)
    )
    one = kind(Request(str(tmp_path / 'data'), task=task_name, weights=str(folder)))
    assert data
    recipe = recipe_of(one)
    assert 'the layers of its classes start untrained' in recipe.text
    init_default_scope('mmseg' if semantic else 'mmdet')
    model = MODELS.build(Config(dict(model=recipe.sections['model'])).model)
    state = read_complete(one.request.weights)['state_dict']
    kept = keep_classifier(model, state)
    assert kept == [f'backbone.queries.class_head.{part}' for part in ('weight', 'bias')]
    assert not model.load_state_dict(state, strict=False).missing_keys
    assert model.backbone.queries.class_head.out_features == len(one.listing.classes) + 1


def test_a_complete_segmentor_keeps_its_size(tmp_path):
    folder = eomt_folder(tmp_path / 'eomt', 'Eomt', do_split_image=True)
    write_masks(tmp_path / 'data')
    request = Request(str(tmp_path / 'data'), task='segmentation', weights=str(folder), img_size=96)
    with rejects('--img-size: a complete model keeps the size'):
        recipe_of(SegmentationRecipe(request))
