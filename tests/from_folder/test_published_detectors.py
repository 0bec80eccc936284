"""Training that starts from a published detector keeps all weights but the class layers."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import pytest
import torch
from image_folders import write_coco, write_masks
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from published_models import QUERIES, eomt_folder, roboflow_file

from vit_plugin.from_folder.recipe import config_text, plan_config
from vit_plugin.from_folder.request import Request
from vit_plugin.models.classes import keep_classifier
from vit_plugin.tasks.detection.detection_recipe import DetectionRecipe, find_resize
from vit_plugin.tasks.instance.instance_recipe import InstanceRecipe
from vit_plugin.tasks.segmentation.segmentation_recipe import SegmentationRecipe
from vit_plugin.weights.for_mmengine import read_complete

EOMT_RECIPES = dict(instance=InstanceRecipe, segmentation=SegmentationRecipe)
pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks


@pytest.fixture
def make_recipe(tmp_path):
    """A function that writes an RF-DETR with this content, and returns a recipe that starts from it
    with data of two classes.
    """

    def make(**content) -> DetectionRecipe:
        rows, has_masks = content.pop('rows', 91), bool(content.get('masks'))
        path = roboflow_file(tmp_path / 'rf-detr.pth', rows, **content)
        write_coco(tmp_path / 'coco', 6, polygons=has_masks)
        folder = str(tmp_path / 'coco')
        if has_masks:
            return InstanceRecipe(Request(folder, task='instance', weights=str(path)))
        return DetectionRecipe(Request(folder, task='detection', weights=str(path)))

    return make


def test_new_classes_change_only_the_head(make_recipe):
    detection = make_recipe()
    planned = plan_config(detection)
    assert planned.sections['load_from'] == detection.request.weights
    head = planned.sections['model']['bbox_head']
    assert head['num_classes'] == 2
    assert 'unused_rows' not in head
    assert head['num_queries'] == QUERIES
    assert 'with 2 new classes: the layers of its classes start untrained' in planned.text
    assert (
        dict(type='Resize', scale=(64, 64), keep_ratio=False) in planned.sections['test_pipeline']
    )
    assert 'retinanet' not in config_text(planned, detection.request)


def test_the_same_classes_are_kept(make_recipe):
    names = ['square', 'bar']  # as in the data
    planned = plan_config(make_recipe(rows=3, args=dict(class_names=names, resolution=64)))
    assert planned.sections['model']['bbox_head']['unused_rows'] == [2]
    assert 'with its classes, and all of it is kept' in planned.text


def test_img_size_flag_changes_the_size(make_recipe):
    detection = make_recipe()
    detection.request.img_size = 96
    assert detection.size == (96, 96)


def test_only_the_class_layers_start_untrained(make_recipe):
    detection = make_recipe()
    path = detection.request.weights
    init_default_scope('mmdet')
    model = MODELS.build(Config(dict(model=plan_config(detection).sections['model'])).model)
    state = read_complete(path)['state_dict']
    kept = keep_classifier(model, state)
    assert {name.split('.')[1] for name in kept} == {'fc_cls', 'proposal_cls'}
    assert not model.load_state_dict(state, strict=False).missing_keys
    weights = torch.load(path, weights_only=False)['model']
    assert torch.equal(model.bbox_head.content.weight, weights['query_feat.weight'])
    assert torch.equal(
        model.bbox_head.fc_reg.layers[0].weight, weights['bbox_embed.layers.0.weight']
    )


def test_weights_of_an_unknown_model_raise(tmp_path):
    path = tmp_path / 'a.pth'
    torch.save({'some.weight': torch.ones(2)}, path)
    with pytest.raises(Exception, match='do not name their model'):
        DetectionRecipe(Request(str(tmp_path), task='detection', weights=str(path)))


def test_file_with_masks_trains_instance_segmentation(make_recipe):
    model = plan_config(make_recipe(masks=True)).sections['model']
    assert model['bbox_head']['type'] == 'vit_plugin.RFDETRSegHead'
    assert model['bbox_head']['num_classes'] == 2
    assert model['data_preprocessor']['pad_mask'] is True


@pytest.mark.parametrize(
    ('masks', 'right_task', 'wrong_task', 'recipe_class'),
    [
        (True, 'instance', 'detection', DetectionRecipe),
        (False, 'detection', 'instance', InstanceRecipe),
    ],
)
def test_weights_of_another_task_raise(tmp_path, masks, right_task, wrong_task, recipe_class):
    path = str(roboflow_file(tmp_path / 'a.pth', masks=masks))
    with rejects(f'are of a model for --task {right_task}; give this task'):
        recipe_class(Request(str(tmp_path), task=wrong_task, weights=path))


@pytest.mark.parametrize(('task_name', 'recipe_class'), EOMT_RECIPES.items())
def test_queries_of_eomt_are_kept_without_their_classes(tmp_path, task_name, recipe_class):
    """EoMT's class layers are in its backbone."""
    semantic = task_name == 'segmentation'
    folder = eomt_folder(tmp_path / 'eomt', 'Eomt', do_split_image=semantic)
    if semantic:
        write_masks(tmp_path / 'data')
    else:
        write_coco(tmp_path / 'data', 6, polygons=True)
    flags = dict(task=task_name, weights=str(folder))
    recipe_class(Request(str(tmp_path / 'data'), model='eomt', **flags))  # the name of its model
    request = Request(str(tmp_path / 'data'), **flags)
    task_recipe = recipe_class(request)
    planned = plan_config(task_recipe)
    assert 'the layers of its classes start untrained' in planned.text
    init_default_scope('mmseg' if semantic else 'mmdet')
    model = MODELS.build(Config(dict(model=planned.sections['model'])).model)
    state = read_complete(request.weights)['state_dict']
    kept = keep_classifier(model, state)
    assert kept == [f'backbone.queries.class_head.{part}' for part in ('weight', 'bias')]
    assert not model.load_state_dict(state, strict=False).missing_keys
    assert model.backbone.queries.class_head.out_features == len(task_recipe.listing.classes) + 1


def test_resize_of_a_saved_config_has_the_defaults_of_mmcv():
    def saved(**step) -> Config:
        pipeline = [dict(type='LoadImageFromFile'), dict(type='mmdet.Resize', **step)]
        return Config(dict(test_dataloader=dict(dataset=dict(pipeline=pipeline))))

    assert find_resize(saved(scale=(64, 32))) == dict(scale=(64, 32), keep_ratio=False)
    assert find_resize(saved(scale=64, keep_ratio=True)) == dict(scale=(64, 64), keep_ratio=True)
    for cfg in (saved(scale_factor=0.5), Config(dict(model=dict()))):
        with rejects('^--weights: the test pipeline .* has no Resize with a scale; give --arch'):
            find_resize(cfg)


def test_img_size_of_a_complete_segmentor_raises(tmp_path):
    folder = eomt_folder(tmp_path / 'eomt', 'Eomt', do_split_image=True)
    write_masks(tmp_path / 'data')
    request = Request(str(tmp_path / 'data'), task='segmentation', weights=str(folder), img_size=96)
    with rejects('--img-size: a complete model keeps the size'):
        plan_config(SegmentationRecipe(request))
