"""Training on tiles: what there is to learn, and the units of what is measured."""

from rejection import rejects

import vit_plugin.detection  # noqa: F401  isort: skip  before mmdet

import json
from types import SimpleNamespace

import cv2
import numpy as np
import pytest
import torch
from image_folders import scenes, write_coco
from mmengine.registry import DATASETS, init_default_scope

from vit_plugin.config import read_config
from vit_plugin.config.runnable import check_config
from vit_plugin.from_folder.request import Request
from vit_plugin.from_folder.write import recipe_class, write_config
from vit_plugin.inference import sliced_loops
from vit_plugin.tasks.detection import seen_images
from vit_plugin.tasks.detection.box_prediction import BoxPrediction

pytestmark = pytest.mark.filterwarnings('ignore')  # of the frameworks


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'shapes', polygons=True)


@pytest.mark.parametrize('task', ['detection', 'instance'])
def test_an_epoch_has_the_tiles_that_its_schedule_counts(shapes, task, capsys):
    request = Request('shapes', task=task, tiles=32, img_size=64, epochs=1)
    cfg = read_config(write_config(request))
    check_config(cfg)
    said = capsys.readouterr().out
    init_default_scope('mmdet')
    import mmdet.datasets  # noqa: F401

    built = DATASETS.build(cfg.train_dataloader.dataset)
    passes = recipe_class(task)(request).passes('train')
    assert len(built) == passes
    assert f'An epoch has {passes} views' in said
    assert '70% is in a tile is ignored there' in said
    infos = [built.get_data_info(i) for i in range(len(built))]
    assert {info['tile'][2] - info['tile'][0] for info in infos} == {32, 64}
    sample = built[0]
    assert sample['inputs'].shape == (3, 64, 64)
    if task == 'instance':  # a rectangle fills the part of its box, which was resized twofold
        found = sample['data_samples'].gt_instances
        boxes = found.bboxes.tensor / 2
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        assert np.allclose(found.masks.masks.sum((1, 2)) / 4, areas)


def test_pixels_of_a_tile_are_those_of_its_boxes(shapes):
    cfg = read_config(write_config(Request('shapes', task='detection', tiles=32, epochs=1)))
    init_default_scope('mmdet')
    import mmdet.datasets  # noqa: F401

    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    squares = 0
    for i in range(len(dataset)):
        if tuple(dataset.get_data_info(i)['tile'][:2]) == (0, 0):
            continue
        sample = dataset[i]
        found = sample['data_samples'].gt_instances
        for box, label in zip(found.bboxes.tensor.int().tolist(), found.labels, strict=True):
            left, top, right, bottom = box
            part = sample['inputs'][:, top:bottom, left:right].float().mean()
            assert (part > 240) if label == 0 else (part < 20)  # a square is bright, a bar dark
            squares += 1
    assert squares > 5


def test_what_was_found_in_slices_is_in_pixels_of_the_image(tmp_path, monkeypatch):
    (image, boxes), *_ = scenes(1)
    cv2.imwrite(str(tmp_path / 'a.png'), image)

    def bright(images):
        found = []
        for pixels in images:
            rows, columns = (pixels[..., 0] > 200).nonzero()
            box = (
                [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] if len(rows) else []
            )
            boxes = np.array(box, np.float32).reshape(-1, 4)
            labels = np.zeros(len(boxes), int)
            sizes = (boxes[:, 2] - boxes[:, 0]) / 20  # the complete one is the most certain
            names, masks = ['square'] * len(boxes), (pixels[..., 0] > 200)[None][: len(boxes)]
            found.append(BoxPrediction(None, labels, names, sizes, boxes, masks))
        return found

    fake = SimpleNamespace(predict=bright, classes=['square'], read=cv2.imread)
    monkeypatch.setattr(sliced_loops, 'TrainedModel', lambda *args: fake)
    loop = sliced_loops.SlicedValLoop.__new__(sliced_loops.SlicedValLoop)
    loop.side, loop.pixels = 32, None
    loop._runner = loop.evaluator = SimpleNamespace(cfg=None, dataset_meta={})
    loop.dataloader = SimpleNamespace(batch_size=2)
    from mmdet.structures import DetDataSample

    facts = dict(img_path=str(tmp_path / 'a.png'), img_id=1, ori_shape=(48, 64))
    sample = DetDataSample(metainfo=facts)
    (found,) = loop.predict_slices(None, dict(data_samples=[sample]))
    assert found.pred_instances.bboxes.tolist() == [list(map(float, boxes[0][1]))]
    assert isinstance(found.pred_instances.scores, torch.Tensor)
    from mmdet.evaluation import CocoMetric

    left, top, right, bottom = boxes[0][1]
    true = dict(id=1, image_id=1, category_id=1, iscrowd=0, area=256, bbox=[left, top, 16, 16])
    true['segmentation'] = [[left, top, right, top, right, bottom, left, bottom]]
    listed = tmp_path / 'val.json'
    images, categories = [dict(id=1, width=64, height=48)], [dict(id=1, name='square')]
    content = dict(images=images, annotations=[true], categories=categories)
    listed.write_text(json.dumps(content))
    metric = CocoMetric(ann_file=str(listed), metric=['bbox', 'segm'])
    metric.dataset_meta = dict(classes=('square',))
    metric.process({}, [found.to_dict()])
    scores = metric.evaluate(1)
    assert scores['coco/bbox_mAP'] == scores['coco/segm_mAP'] == 1.0


def test_objects_that_are_in_no_view_are_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'shapes', count=3)
    listed = next(tmp_path.glob('shapes/annotations/*.json'))
    content = json.loads(listed.read_text())
    for image in (tmp_path / 'shapes').rglob('*.jpg'):
        cv2.imwrite(str(image), np.zeros((40, 1500, 3), np.uint8))
    for image in content['images']:
        image.update(width=1500, height=40)
    for number, found in enumerate(content['annotations']):
        found['bbox'] = [47, 5, 50, 30] if number % 2 else [10, 5, 30, 30]  # tiles from 0 and 64
    listed.write_text(json.dumps(content))
    write_config(Request('shapes', task='detection', tiles=80))
    assert ' 2 objects of 4 are learned in no view' in capsys.readouterr().out


def test_what_has_no_tiles_is_one_sentence(shapes):
    with rejects('--tiles 64: the longest side .* has 64 pixels; give'):
        write_config(Request('shapes', task='detection', tiles=64))
    with rejects('--tiles 4: neither a tile nor a whole image within 4 pixels shows an object; '):
        write_config(Request('shapes', task='detection', tiles=4))
    with rejects('--tiles needs --task detection or instance'):
        write_config(Request('shapes', tiles=32))


def test_masks_that_no_memory_holds_are_refused_unless_they_are_cut(shapes, monkeypatch):
    monkeypatch.setattr(seen_images, 'MASK_BYTES', 1)
    with rejects('shapes.* objects, whose masks of .* pixels take .* GiB; give --tiles, such as'):
        write_config(Request('shapes', task='instance', img_size=64, epochs=1))
    write_config(Request('shapes', task='detection', img_size=64, epochs=1))
    write_config(Request('shapes', task='instance', tiles=32, img_size=64, epochs=1))
