"""Training on tiles of images: the views of an epoch, their objects, and validation by slices."""

from extras import needs_task
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

pytestmark = pytest.mark.filterwarnings('ignore')  # warnings of the frameworks


@pytest.fixture
def shapes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'shapes', polygons=True)


@pytest.mark.parametrize(
    'task', ['detection', pytest.param('instance', marks=needs_task('instance'))]
)
def test_an_epoch_has_the_views_that_its_schedule_counts(shapes, task, capsys):
    request = Request('shapes', task=task, tiles=32, img_size=64, epochs=1)
    cfg = read_config(write_config(request))
    check_config(cfg)
    shown = capsys.readouterr().out
    init_default_scope('mmdet')
    import mmdet.datasets  # noqa: F401

    built = DATASETS.build(cfg.train_dataloader.dataset)
    passes = recipe_class(task)(request).images_per_pass('train')
    assert len(built) == passes
    assert f'An epoch has {passes} views' in shown
    assert '70% is in a tile is ignored there' in shown
    infos = [built.get_data_info(i) for i in range(len(built))]
    assert {info['tile'][2] - info['tile'][0] for info in infos} == {32, 64}
    sample = built[0]
    assert sample['inputs'].shape == (3, 64, 64)
    if task == 'instance':  # rectangular objects fill their boxes, also after a resize by 2
        objects = sample['data_samples'].gt_instances
        boxes = objects.bboxes.tensor / 2
        areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
        assert np.allclose(objects.masks.masks.sum((1, 2)) / 4, areas)


def test_boxes_fit_the_pixels_of_their_tile(shapes):
    cfg = read_config(write_config(Request('shapes', task='detection', tiles=32, epochs=1)))
    init_default_scope('mmdet')
    import mmdet.datasets  # noqa: F401

    dataset = DATASETS.build(cfg.train_dataloader.dataset)
    compared = 0
    for i in range(len(dataset)):
        if tuple(dataset.get_data_info(i)['tile'][:2]) == (0, 0):
            continue
        sample = dataset[i]
        objects = sample['data_samples'].gt_instances
        for box, label in zip(objects.bboxes.tensor.int().tolist(), objects.labels, strict=True):
            left, top, right, bottom = box
            mean = sample['inputs'][:, top:bottom, left:right].float().mean()
            assert (mean > 240) if label == 0 else (mean < 20)  # a square is bright, a bar dark
            compared += 1
    assert compared > 5


def test_predictions_on_slices_are_in_pixels_of_the_image(tmp_path, monkeypatch):
    (image, boxes), *_ = scenes(1)
    cv2.imwrite(str(tmp_path / 'a.png'), image)

    def predict_bright_box(images):
        predictions = []
        for pixels in images:
            rows, columns = (pixels[..., 0] > 200).nonzero()
            box = (
                [columns.min(), rows.min(), columns.max() + 1, rows.max() + 1] if len(rows) else []
            )
            boxes = np.array(box, np.float32).reshape(-1, 4)
            labels = np.zeros(len(boxes), int)
            scores = (boxes[:, 2] - boxes[:, 0]) / 20  # highest for the complete square
            names, masks = ['square'] * len(boxes), (pixels[..., 0] > 200)[None][: len(boxes)]
            predictions.append(BoxPrediction(None, labels, names, scores, boxes, masks))
        return predictions

    fake = SimpleNamespace(predict=predict_bright_box, classes=['square'], read=cv2.imread)
    monkeypatch.setattr(sliced_loops, 'TrainedModel', lambda *args: fake)
    loop = sliced_loops.SlicedValLoop.__new__(sliced_loops.SlicedValLoop)
    loop.side, loop.pixels = 32, None
    loop._runner = loop.evaluator = SimpleNamespace(cfg=None, dataset_meta={})
    loop.dataloader = SimpleNamespace(batch_size=2)
    from mmdet.structures import DetDataSample

    meta = dict(img_path=str(tmp_path / 'a.png'), img_id=1, ori_shape=(48, 64))
    sample = DetDataSample(metainfo=meta)
    (prediction,) = loop.predict_slices(None, dict(data_samples=[sample]))
    assert prediction.pred_instances.bboxes.tolist() == [list(map(float, boxes[0][1]))]
    assert isinstance(prediction.pred_instances.scores, torch.Tensor)
    from mmdet.evaluation import CocoMetric

    left, top, right, bottom = boxes[0][1]
    annotation = dict(
        id=1, image_id=1, category_id=1, iscrowd=0, area=256, bbox=[left, top, 16, 16]
    )
    annotation['segmentation'] = [[left, top, right, top, right, bottom, left, bottom]]
    annotation_file = tmp_path / 'val.json'
    images, categories = [dict(id=1, width=64, height=48)], [dict(id=1, name='square')]
    content = dict(images=images, annotations=[annotation], categories=categories)
    annotation_file.write_text(json.dumps(content))
    metric = CocoMetric(ann_file=str(annotation_file), metric=['bbox', 'segm'])
    metric.dataset_meta = dict(classes=('square',))
    metric.process({}, [prediction.to_dict()])
    scores = metric.evaluate(1)
    assert scores['coco/bbox_mAP'] == scores['coco/segm_mAP'] == 1.0


def test_objects_in_no_view_are_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_coco(tmp_path / 'shapes', count=3)
    annotations = next(tmp_path.glob('shapes/annotations/*.json'))
    content = json.loads(annotations.read_text())
    for image in (tmp_path / 'shapes').rglob('*.jpg'):
        cv2.imwrite(str(image), np.zeros((40, 1500, 3), np.uint8))
    for image in content['images']:
        image.update(width=1500, height=40)
    # Tiles begin at 0 and 64, so the wide boxes are complete in neither.
    for number, annotation in enumerate(content['annotations']):
        annotation['bbox'] = [47, 5, 50, 30] if number % 2 else [10, 5, 30, 30]
    annotations.write_text(json.dumps(content))
    write_config(Request('shapes', task='detection', tiles=80))
    assert ' 2 objects of 4 are learned in no view' in capsys.readouterr().out


@needs_task('classification', 'instance')
def test_wrong_tiles_raise(shapes):
    with rejects('--tiles 64: the longest side .* has 64 pixels; give'):
        write_config(Request('shapes', task='detection', tiles=64))
    with rejects('--tiles 4: neither a tile nor a whole image within 4 pixels shows an object; '):
        write_config(Request('shapes', task='detection', tiles=4))
    with rejects('--tiles needs --task detection or instance'):
        write_config(Request('shapes', tiles=32))


@needs_task('instance')
def test_masks_beyond_memory_raise_without_tiles(shapes, monkeypatch):
    monkeypatch.setattr(seen_images, 'MASK_BYTES', 1)
    with rejects('shapes.* objects, whose masks of .* pixels take .* GiB; give --tiles, such as'):
        write_config(Request('shapes', task='instance', img_size=64, epochs=1))
    write_config(Request('shapes', task='detection', img_size=64, epochs=1))
    write_config(Request('shapes', task='instance', tiles=32, img_size=64, epochs=1))
