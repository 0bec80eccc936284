"""What the page in the browser shows, without a browser."""

import sys

import cv2
import numpy as np
import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS

from vit_plugin.apps import browser
from vit_plugin.apps.trained_model import TrainedModel
from vit_plugin.errors import ConfigError, MissingExtraError
from vit_plugin.visualization.pictures import PreparedImage

pytest.importorskip('mmpretrain')
NAMES = ['crane', 'cat', 'crane']


@pytest.fixture
def image() -> PreparedImage:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 48, 3), dtype=np.uint8)
    return PreparedImage(pixels, torch.randn(1, 3, 32, 48))


def trained(tiny: dict, classes: list[str] = NAMES, **more: object) -> TrainedModel:
    model = MODELS.build(
        dict(
            type='mmpretrain.ImageClassifier',
            backbone=dict(type='vit_plugin.VisionTransformer', **tiny, **more),
            head=dict(type='vit_plugin.ViTClsHead', num_classes=3, in_channels=32),
        )
    )
    return TrainedModel(model, Config(dict(default_scope='mmpretrain')), dict(classes=classes))


def test_every_picture_is_pixels_of_its_own(tiny, image):
    found = browser.draw_all(trained(tiny), image)
    assert list(found) == list(browser.PANELS)
    assert len({picture.tobytes() for picture in found.values()}) == 4
    assert all(picture.ndim == 3 and picture.std() > 0 for picture in found.values())


def test_the_block_is_that_of_attention_and_rollout(tiny, image):
    model = trained(tiny)
    first, last = (browser.draw_all(model, image, block) for block in (0, 1))
    assert [name for name in first if not np.array_equal(first[name], last[name])] == [
        'attention',
        'rollout',
    ]


def test_a_picture_that_cannot_be_is_a_sentence(tiny, image):
    model = trained(tiny, with_cls_token=False, out_type='avg_featmap')
    assert not any(isinstance(picture, str) for picture in browser.draw_all(model, image).values())
    model.model = model.model.backbone  # without a head
    found = browser.draw_all(model, image)
    assert found['cam'].startswith('cam needs a classifier')
    assert not isinstance(found['attention'], str)


def test_a_long_picture_is_refused(tiny, tmp_path):
    cv2.imwrite(str(tmp_path / 'long.png'), np.zeros((8, 800, 3), dtype=np.uint8))
    with pytest.raises(ConfigError, match='more than 10 times the other; crop it'):
        browser.prepare(trained(tiny), str(tmp_path / 'long.png'), size=8)


def test_a_missing_gradio_is_named_with_its_extra(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, 'gradio', None)
    with pytest.raises(
        MissingExtraError, match=r"vit-plugin demo needs gradio.*pip install 'vit_plugin\[demo\]'"
    ):
        browser.page(trained(tiny), 'title')


def test_examples_are_images_of_the_test(tiny, tmp_path):
    for i in range(5):
        cv2.imwrite(str(tmp_path / f'{i}.png'), np.zeros((8, 8, 3), dtype=np.uint8))
    (tmp_path / 'val.txt').write_text(''.join(f'{i}.png 0\n' for i in range(5)))
    model = trained(tiny)
    assert browser.examples(model) == []
    model.cfg.test_dataloader = dict(
        dataset=dict(
            type='CustomDataset', data_prefix=str(tmp_path), ann_file=str(tmp_path / 'val.txt')
        )
    )
    assert browser.examples(model) == [str(tmp_path / f'{i}.png') for i in (0, 2, 4)]
    model.cfg.test_dataloader.dataset.ann_file = 'of another machine.txt'
    assert browser.examples(model) == []
