"""Invalid requests raise before anything is written."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from extras import needs_mmdet
from foreign_data import labelimg_yolo
from image_folders import (
    save_bands,
    write_bands,
    write_coco,
    write_digits,
    write_masks,
    write_panoptic,
    write_voc,
)
from rejection import rejects

from vit_plugin.from_folder.choices import CONTINUATIONS
from vit_plugin.from_folder.request import PRETRAINING, Request
from vit_plugin.from_folder.write import write_config

VIT, CNN = 'timm://test_vit', 'timm://test_convnext.r160_in1k'
UNSAFE_NAMES = '{{ fileDirname }}', '{{$HOME:}}', 'not \udcff utf-8'
PATCH = '^--img-size 1: a patch of the model has {0} x {0} pixels; give {0}'
# The arguments of each request, for the folder digits unless they name another, and its error.
WRONG: list[tuple[dict[str, Any], str]] = [
    (dict(data='none'), "^--data: there is no folder 'none'"),
    (dict(data='boxes'), "^--data: 'boxes' has boxes as Pascal VOC; give --task detection"),
    (dict(data='shapes'), "^--data: 'shapes' has boxes as COCO; give --task detection"),
    (dict(data='scenes'), "'scenes' has images and masks; give --task segmentation"),
    *((dict(data=name, work_dir='run'), 'not be read back the same') for name in UNSAFE_NAMES),
    (
        dict(work_dir='digits/run'),
        "^--work-dir: 'digits/run' lies in .*; give another --work-dir, ",
    ),
    (dict(task='speech'), "--task 'speech' is not one of classification, detection, instance, seg"),
    (dict(arch='B/17'), "Unknown arch 'B/17'"),
    (dict(arch=VIT, weights=''), "There is no checkpoint file ''"),
    (dict(arch=VIT, weights='none.pth'), "There is no checkpoint file 'none.pth'"),
    (dict(weights='weights.pth'), "weights.pth' do not name their model; give it by --arch"),
    (dict(model='dino'), 'classification has one model around its backbone; give that'),
    # These raise before the folder is read: there is no folder none.
    (dict(data='none', img_size=1), PATCH.format(8)),
    (dict(data='none', img_size=1, arch=VIT, task=PRETRAINING), PATCH.format(16)),
    *(
        (dict(data='none', task=task, balance=True), '--balance needs --task classification, detec')
        for task in ('segmentation', PRETRAINING)
    ),
    # Bands.
    (dict(data='uneven'), r"\.tif' has 6 bands, and '.*x\.npy' has 4 bands; a mo"),
    (dict(data='mixed'), r"png' is an image, and '.*x\.tif' has 4 bands"),
    (dict(data='bands', arch=VIT, task=PRETRAINING), 'have 6 bands, of which there is no pretrain'),
    # Pre-training and distillation.
    (dict(task=PRETRAINING, method='mocov4'), "--method 'mocov4' is not one of mocov3, dino"),
    (dict(task=PRETRAINING, method='distill'), '--method distill: a teacher is needed to distill'),
    (dict(task=PRETRAINING, method='mae', teacher=CNN), '--method mae: a teacher is needed to dis'),
    *(
        (dict(task=PRETRAINING, method=name), f'--method {name} continues a model; give it by --we')
        for name in CONTINUATIONS
    ),
    (dict(task=PRETRAINING, data='empty'), "'empty' has 0 images to learn from"),
    (dict(task=PRETRAINING, teacher='none'), "There is no checkpoint file 'none'"),
]
WRONG_FOR_MMDET: list[tuple[dict[str, Any], str]] = [
    (dict(data='none', img_size=1, arch=VIT, task='detection'), PATCH.format(16)),
    (dict(data='yolo', task='instance'), r'objects have a box but no polygon \(20, the first is '),
    (dict(teacher=CNN, task='detection'), '--teacher needs --task classification or pretraining; '),
    (dict(task='detection', model='retinane'), 'did you mean retinanet?'),
    (dict(task='instance', model='retinanet'), 'retinanet is for --task detection; give that task'),
    (dict(task='instance', augment='mosaic'), '--augment needs --task detection; leave it out, or'),
    (dict(task='detection', augment='moasic'), "'moasic' is not one of mosaic, dense-o2o; did you"),
    (
        dict(data='panoptic', task='panoptic'),
        r"images named \.jpg or \.png, and '.*0\.jpeg' is not",
    ),
]


@pytest.fixture(autouse=True, scope='module')
def folders(tmp_path_factory) -> Iterator[None]:
    """The data of all requests, in the working directory."""
    folder = tmp_path_factory.mktemp('data')
    write_digits(folder / 'digits')
    for name in ('mixed', *UNSAFE_NAMES):
        shutil.copytree(folder / 'digits', folder / name)
    write_voc(folder / 'boxes')
    write_coco(folder / 'shapes')
    write_masks(folder / 'scenes')
    labelimg_yolo(folder / 'yolo')
    save_bands(folder / 'mixed/digit 0/x.tif', np.zeros((20, 24, 4), np.uint8))
    for name in ('bands', 'uneven'):
        write_bands(folder / name)
    save_bands(folder / 'uneven/wet/x.npy', np.zeros((20, 24, 4)))
    (folder / 'empty').mkdir()
    torch.save(dict(weight=torch.zeros(2)), folder / 'weights.pth')
    write_panoptic(folder / 'panoptic')
    image = folder / 'panoptic/val/0.jpg'
    image.rename(image.with_suffix('.jpeg'))
    annotations = folder / 'panoptic/annotations/panoptic_val.json'
    annotations.write_text(annotations.read_text().replace('0.jpg', '0.jpeg'))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        # Requests of the task panoptic only check that this package is installed.
        patch.setitem(sys.modules, 'panopticapi', ModuleType('panopticapi'))
        yield


@pytest.mark.filterwarnings('ignore')  # warnings of the frameworks
@pytest.mark.parametrize(
    ('arguments', 'words'),
    [*WRONG, *(pytest.param(*row, marks=needs_mmdet) for row in WRONG_FOR_MMDET)],
)
def test_invalid_requests_raise(arguments, words):
    with rejects(words):
        write_config(Request(**{'data': 'digits', **arguments}))
    assert not [*Path().rglob('config.py')]
