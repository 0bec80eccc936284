"""The models of tasks by their names: configs are written, and models learn and predict."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import copy
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
import torch
from foreign_data import cvat_coco
from image_folders import write_depth, write_masks, write_panoptic
from mmengine.dataset import pseudo_collate
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import DATASETS, METRICS, MODELS, init_default_scope
from published_models import roboflow_file
from tiny_models import TINY_SIZES, model_facts

from anyfolder.readers.panoptic import numbers_in
from vit_plugin.config import read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.config.task_model import ModelFacts, has_entries
from vit_plugin.from_folder.choices import TASKS, models_of
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import write_config
from vit_plugin.models import VisionTransformer
from vit_plugin.tasks.detection.detection_recipe import DetectionRecipe
from vit_plugin.tasks.panoptic.panoptic_recipe import PanopticRecipe
from vit_plugin.tasks.segmentation.map_models import UPERNET
from vit_plugin.tasks.segmentation.segmentation_recipe import SegmentationRecipe

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks
TINY = dict(TINY_SIZES, num_layers=4)
PAIRS = [(task, name) for task in TASKS for name in models_of(task)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with shapes as polygons and as masks, and depth maps."""
    monkeypatch.chdir(tmp_path)
    cvat_coco(tmp_path / 'polygons')
    write_masks(tmp_path / 'masks')
    write_panoptic(tmp_path / 'panoptic')
    write_depth(tmp_path / 'depth')
    return tmp_path


def data_of(task: str) -> str:
    return dict(segmentation='masks', panoptic='panoptic', depth='depth').get(task, 'polygons')


def facts(**changes) -> ModelFacts:
    """Facts of a model around a ViT of four blocks."""
    arguments = dict(arch=dict(TINY, patch_size=16), img_size=(96, 128), with_cls_token=False)
    return model_facts(arguments, **{'classes': 2, 'size': (96, 128), **changes})


@pytest.mark.nightly
@pytest.mark.parametrize('arch', ['', 'Ti/16'])
@pytest.mark.parametrize(('task', 'name'), PAIRS)
def test_every_model_learns_and_predicts(folder, task, name, arch):
    request = Request(data_of(task), task=task, model=name, arch=arch, img_size=128, epochs=1)
    if task == 'panoptic':
        pytest.importorskip('panopticapi')
    if (name, arch) == ('transunet', 'Ti/16'):
        with rejects('--model transunet joins maps of a CNN'):
            write_config(request)
        return
    cfg = read_config(write_config(request))
    check_config(cfg)
    init_default_scope(cfg.default_scope)
    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    model = revert_sync_batchnorm(MODELS.build(cfg.model))
    model.init_weights()
    optimizer, losses = torch.optim.AdamW(model.parameters(), 3e-4), []
    samples = [dataset[0], dataset[1]]
    for _ in range(6):
        torch.manual_seed(0)  # masks are compared at the same random points
        batch = model.data_preprocessor(pseudo_collate(copy.deepcopy(samples)), True)
        loss, _ = model.parse_losses(model(**batch, mode='loss'))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        losses.append(loss.item())
    assert min(losses[3:]) < losses[0]
    with torch.no_grad():
        assert len(model.eval().test_step(pseudo_collate(samples[:1]))) == 1


def test_complete_panoptic_model_is_continued(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, 'panopticapi', ModuleType('panopticapi'))
    cfg = read_config(write_config(Request('panoptic', task='panoptic', epochs=1)))
    train_cfg = copy.deepcopy(cfg.model.train_cfg)
    head = cfg.model.panoptic_head
    head.num_things_classes, head.num_queries = 5, 7
    head.loss_cls.class_weight = [1.0] * 6 + [0.2]
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=('a', 'b', 'c', 'd', 'e', 'f')))
    torch.save(dict(meta=meta, state_dict={'backbone.cls_token': torch.zeros(1)}), 'run.pth')
    request = Request('panoptic', task='panoptic', weights='run.pth', epochs=1)
    continued = read_config(write_config(request))
    assert continued.load_from == str(folder / 'run.pth')
    head = continued.model.panoptic_head
    assert (head.num_things_classes, head.num_stuff_classes, head.num_queries) == (2, 1, 7)
    assert head.loss_cls.class_weight == [1.0] * 3 + [0.2]
    assert continued.model.test_cfg.panoptic_on
    assert continued.model.train_cfg.assigner == train_cfg.assigner
    assert continued.model.train_cfg.num_points == 64 * 48 // 16
    del cfg.model['train_cfg']
    meta['cfg'] = cfg.pretty_text
    torch.save(dict(meta=meta, state_dict={'backbone.cls_token': torch.zeros(1)}), 'other.pth')
    request = Request('panoptic', task='panoptic', weights='other.pth', work_dir='other', epochs=1)
    continued = read_config(write_config(request))
    assert continued.model.train_cfg.assigner == train_cfg.assigner


def test_complete_segmentor_of_a_run_keeps_its_size(folder):
    """Its backbone has a height and a width, and its test no window."""
    request = Request('masks', task='segmentation', model='eomt', img_size=128, epochs=1)
    cfg = read_config(write_config(request))
    height, width = cfg.model.backbone.img_size
    meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=tuple(cfg.classes)))
    torch.save(dict(meta=meta, state_dict={'backbone.cls_token': torch.zeros(1)}), 'run.pth')
    recipe = SegmentationRecipe(Request('masks', task='segmentation', weights='run.pth'))
    assert recipe.size == (width, height)
    del cfg.model.backbone['img_size']
    meta['cfg'] = cfg.pretty_text
    torch.save(dict(meta=meta, state_dict={'backbone.cls_token': torch.zeros(1)}), 'other.pth')
    recipe = SegmentationRecipe(Request('masks', task='segmentation', weights='other.pth'))
    assert recipe.size == (224, 224)


@pytest.mark.parametrize('name', [*models_of('panoptic')])
def test_panoptic_configs_have_things_and_stuff(folder, name, monkeypatch):
    monkeypatch.setitem(sys.modules, 'panopticapi', ModuleType('panopticapi'))
    cfg = read_config(write_config(Request('panoptic', task='panoptic', model=name, epochs=1)))
    counts = dict(num_things_classes=2, num_stuff_classes=1)
    for part in ('panoptic_head', 'panoptic_fusion_head'):
        assert {key: cfg.model[part][key] for key in counts} == counts
    assert cfg.model.test_cfg.panoptic_on
    assert not cfg.model.test_cfg.instance_on
    assert cfg.default_hooks.checkpoint.save_best == 'coco_panoptic/PQ'
    init_default_scope('mmdet')
    import mmdet.datasets  # noqa: F401

    for split, count in (('train', 4), ('val', 2)):
        dataset = DATASETS.build(dict(cfg[f'{split}_dataloader'].dataset, pipeline=[]))
        assert len(dataset) == count
        info = dataset.get_data_info(0)
        assert [segment['category'] for segment in info['segments_info']] == [2, 0, 1]
        assert [instance['bbox_label'] for instance in info['instances']] == [0, 1]
        numbers = {segment['id'] for segment in info['segments_info']}
        assert {*np.unique(numbers_in(Path(info['seg_map_path'])))} - {0} == numbers
    assert cfg.val_evaluator.seg_prefix == cfg.val_dataloader.dataset.data_prefix.seg
    MODELS.build(cfg.model)


def test_panoptic_quality_of_each_class_is_logged(folder, monkeypatch):
    pytest.importorskip('panopticapi')
    from mmdet.evaluation.metrics import coco_panoptic_metric

    cfg, texts = read_config(write_config(Request('panoptic', task='panoptic', epochs=1))), []
    monkeypatch.setattr(coco_panoptic_metric, 'print_log', lambda text, **_: texts.append(text))
    init_default_scope('mmdet')
    dataset = DATASETS.build(dict(cfg.val_dataloader.dataset, pipeline=[]))
    metric, info = METRICS.build(cfg.val_evaluator), dataset.get_data_info(0)
    metric.dataset_meta = dataset.metainfo
    segments = torch.full((1, 48, 64), 2)  # floor everywhere, also at the bar
    left, top, right, bottom = info['instances'][0]['bbox']
    segments[:, top:bottom, left:right] = 1000  # the first square
    predicted = dict(info, ori_shape=(48, 64), pred_panoptic_seg=dict(sem_seg=segments))
    metric.process({}, [predicted])
    metric.evaluate(1)
    quality = {name: float(pq) for name, pq in re.findall(r'(\w+) +\| ([\d.]+)', texts[-1])}
    assert (quality['square'], quality['bar']) == (100, 0)
    assert 80 < quality['floor'] < 100


def test_default_models_come_first():
    assert next(iter(models_of('detection'))) == 'retinanet'
    assert not models_of('classification')


def test_number_of_queries_follows_objects_and_maps():
    few_objects = facts(objects=5)
    assert few_objects.queries('dino', 100) == 100
    assert facts(objects=80).queries('dino', 100) == 160
    assert few_objects.queries('dino', 100, [16]) == 24  # half of 6 x 8
    assert few_objects.queries('dino', 100, [16], 1) == 48
    with rejects('80 objects, and the maps propose 24 at most; give a larger'):
        facts(objects=80).queries('dino', 100, [16])


def test_pyramid_follows_from_the_backbone():
    plain = facts(windows=True)
    _, neck, strides = plain.pyramid(96, 3)
    assert (neck['type'], strides) == ('vit_plugin.SimpleFPN', [8, 16, 32])
    stem = dict(type='PooledResNetEmbed', channels=(8, 8, 16, 16), patch_size=2)
    numerics = dict(stem_norm_cfg=dict(num_groups=8))

    def build(**options) -> VisionTransformer:
        with torch.device('meta'):
            return VisionTransformer(TINY, 64, patch_embed=stem, numerics=numerics, **options)

    backbone, neck, strides = facts(build=build).pyramid(96, 3)
    assert (backbone['out_type'], neck['type'], strides) == ('pyramid', 'FPN', [8, 16, 32])


def test_upernet_takes_a_backbone_of_one_block():
    arguments = dict(arch=dict(TINY, num_layers=1, patch_size=16), img_size=(96, 128))
    model = UPERNET.build(model_facts(arguments, size=(96, 128)))
    assert model['neck']['scales'] == [4, 2, 1, 0.5]
    assert model['decode_head']['in_index'] == [0, 1, 2, 3]


def test_large_images_get_windowed_attention():
    assert 'encoder' not in facts(windows=True).backbone('featmap')
    large = facts(windows=True, size=(1024, 768)).backbone('featmap')
    assert large['encoder']['window']['global_blocks'] == (0, 1, 2, 3)


def test_has_entries_compares_only_the_given_entries():
    model = dict(head=dict(type='A', layers=2), other=1)
    assert has_entries(model, dict(head=dict(layers=2)))
    assert not has_entries(model, dict(head=dict(layers=3)))
    assert not has_entries(dict(head=None), dict(head=dict(layers=2)))


def test_weights_of_another_detector_raise(folder):
    path = str(roboflow_file(folder / 'other.pth', 91))
    with rejects('--model dino: .*of another complete model; leave'):
        DetectionRecipe(Request('polygons', task='detection', model='dino', weights=path))


def test_imports_of_a_model_are_in_the_config(folder):
    recipe = SegmentationRecipe(Request('masks', task='segmentation', model='mask2former'))
    assert recipe.additional_sections['custom_imports']['imports'] == [
        'vit_plugin.detection',
        'mmdet.models',
    ]
    assert 'custom_hooks' not in recipe.additional_sections


def test_numerics_that_a_run_does_not_state_are_the_default(folder):
    """RF-DETR has those of DINOv2 for an arch, and would change what the weights compute."""
    backbone = dict(type='vit_plugin.VisionTransformer', arch='Ti/16')
    text = f'model = dict(type="ImageClassifier", backbone={backbone})'
    torch.save(dict(meta=dict(cfg=text), state_dict={}), 'run.pth')
    flags = dict(task='detection', model='rf-detr')
    of_run = DetectionRecipe(Request('polygons', weights='run.pth', **flags))
    assert of_run.backbone_arguments()['numerics'] is None
    of_arch = DetectionRecipe(Request('polygons', arch='Ti/16', **flags))
    assert 'numerics' not in of_arch.backbone_arguments()


def test_panoptic_images_for_which_mmdetection_finds_one_png_raise():
    images = [SimpleNamespace(path=Path('images', name)) for name in ('a.jpg', 'a.png')]
    for records in (images[:1], images[:1] * 2):
        PanopticRecipe.check(None, SimpleNamespace(parts=dict(train=records, val=[])))
    with rejects("two images of train differ only in their suffix, .*'a.png' as the PNG of both"):
        PanopticRecipe.check(None, SimpleNamespace(parts=dict(train=images, val=[])))
