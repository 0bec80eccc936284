"""Train and test detectors and segmentors by command lines, on folders of VOC and ADE20K."""

import json
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np
import pytest
from extras import needs_mmdet

CELLS = Path('configs/detection/retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd.py')
SCENES = Path('configs/segmentation/vit-base-p16_linear_8xb2-40k_ade20k-512x512.py')
SMALL = [
    'train_dataloader.batch_size=2',
    *(
        f'{name}_dataloader.{setting}'
        for name in ('train', 'val', 'test')
        for setting in ('num_workers=0', 'persistent_workers=False')
    ),
]
# Arguments of the backbone in the configs below.
ARCH = 'embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64'

BOX = """<annotation><size><width>64</width><height>48</height><depth>3</depth></size>
<object><name>WBC</name><difficult>0</difficult>
<bndbox><xmin>9</xmin><ymin>9</ymin><xmax>41</xmax><ymax>33</ymax></bndbox></object></annotation>"""


def write_image(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), np.random.default_rng(0).integers(0, 256, (48, 64, 3), dtype=np.uint8))


@pytest.mark.nightly
@needs_mmdet
def test_a_detector_is_trained_and_tested(run_command, tmp_path):
    for name in ('1', '2'):
        write_image(tmp_path / f'JPEGImages/{name}.jpg')
        (tmp_path / 'Annotations').mkdir(exist_ok=True)
        (tmp_path / f'Annotations/{name}.xml').write_text(BOX)
    (tmp_path / 'ImageSets/Main').mkdir(parents=True)
    for split in ('train', 'val'):
        (tmp_path / f'ImageSets/Main/{split}.txt').write_text('1\n2\n')
    config = tmp_path / 'config.py'
    config.write_text(f"""_base_ = '{CELLS.resolve()}'
model = dict(backbone=dict(arch=dict({ARCH}, resnet=dict(stage_depths=(1, 1), width=32))),
             neck=dict(in_channels=[128, 256, 32]))""")
    # With a score threshold, an untrained detector finds nothing, and AP cannot be computed.
    options = [
        *SMALL,
        'train_cfg.max_epochs=2',
        'train_cfg.val_interval=2',
        'model.test_cfg.score_thr=0',
        *(f'{name}_dataloader.dataset.data_root={tmp_path}' for name in ('train', 'val', 'test')),
    ]
    work = tmp_path / 'work'
    done = run_command(f'train {config} --work-dir {work} --cfg-options', *options)
    assert done.returncode == 0, done.stderr
    assert 'coco/bbox_mAP' in json.loads((work / 'metrics.json').read_text())['last']
    assert {'epoch_2.pth', 'learning_curve.png'} <= {path.name for path in work.iterdir()}

    metrics = tmp_path / 'metrics.json'
    done = run_command(
        f'test {config} {work}/epoch_2.pth --work-dir {work} --tta --out {metrics} '
        f'--out-item metrics --show-dir {tmp_path}/shown --cfg-options',
        *options,
    )
    assert done.returncode == 0, done.stderr
    assert 'coco/bbox_mAP_50' in json.loads(metrics.read_text())
    assert {path.name for path in tmp_path.glob('**/shown/*')} == {'1.jpg', '2.jpg'}


@pytest.mark.nightly
@pytest.mark.skipif(not find_spec('mmseg'), reason='mmseg is not installed')
def test_a_segmentor_is_trained_and_tested(run_command, tmp_path):
    for folder in ('images/training', 'images/validation'):
        write_image(tmp_path / folder / '1.jpg')
        labels = tmp_path / folder.replace('images', 'annotations') / '1.png'
        labels.parent.mkdir(parents=True)
        cv2.imwrite(str(labels), np.full((48, 64), 3, dtype=np.uint8))
    config = tmp_path / 'config.py'
    config.write_text(f"""_base_ = '{SCENES.resolve()}'
model = dict(backbone=dict(arch=dict({ARCH}, patch_size=16, _delete_=True), img_size=64,
                           init_cfg=None, frozen_stages=2),
             decode_head=dict(in_channels=32, channels=32), data_preprocessor=dict(size=(64, 64)),
             test_cfg=dict(_delete_=True, mode='whole'))
train_dataloader = dict(dataset=dict(pipeline=[
    dict(type='LoadImageFromFile'), dict(type='LoadAnnotations', reduce_zero_label=True),
    dict(type='PackSegInputs')]))""")
    options = [
        *SMALL,
        'train_cfg.max_iters=2',
        'train_cfg.val_interval=2',
        *(f'{name}_dataloader.dataset.data_root={tmp_path}' for name in ('train', 'val', 'test')),
    ]
    work = tmp_path / 'work'
    done = run_command(f'train {config} --work-dir {work} --cfg-options', *options)
    assert done.returncode == 0, done.stderr
    assert 'mIoU' in json.loads((work / 'metrics.json').read_text())['last']
    (checkpoint,) = work.glob('best_mIoU_*.pth')
    done = run_command(
        f'test {config} {checkpoint} --work-dir {work} --show-dir {tmp_path}/shown --cfg-options',
        *options,
    )
    assert done.returncode == 0, done.stderr
    assert [path.suffix for path in (tmp_path / 'shown').rglob('test_1*')] == ['.png']
