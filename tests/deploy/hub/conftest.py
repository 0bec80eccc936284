"""A fixture that writes the checkpoint of a classifier, for the tests of hub folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from mmengine.config import Config
from mmengine.registry import MODELS, DefaultScope
from tiny_models import TINY, randomize

from vit_plugin.arch import parse_arch

NAMES = ('cat', 'dog', 'rabbit')


@pytest.fixture
def saved(tmp_path) -> Callable[..., Path]:
    """A function that writes the checkpoint of a random classifier as a run does.

    It takes changes of the test pipeline, neck, head and backbone, and returns the path. The config
    has paths with ``somebody``, which must not be published.
    """

    def save(
        pipeline: list[dict[str, Any]] | None = None,
        neck: dict[str, Any] | None = None,
        head: dict[str, Any] | None = None,
        **backbone: Any,
    ) -> Path:
        defaults = dict(type='vit_plugin.VisionTransformer', arch=TINY, img_size=32)
        backbone = dict(defaults, **backbone)
        width = parse_arch(backbone['arch']).embed_dims
        model = dict(
            type='ImageClassifier',
            backbone=backbone,
            head=dict(type='vit_plugin.ViTClsHead', num_classes=3, in_channels=width),
        )
        if neck:
            model['neck'] = dict(neck, type='vit_plugin.TokenPooling', in_channels=width)
        if head is not None:  # an empty dict stands for a model without a head
            model['head'] = dict(model['head'], **head) if head else None
        steps = pipeline or [dict(type='Resize', scale=(32, 32))]
        cfg = Config(
            dict(
                model=model,
                default_scope='mmpretrain',
                load_from='/home/somebody/secret/start.pth',
                work_dir='/home/somebody/secret',
                data_preprocessor=dict(
                    num_classes=3, mean=[123.0, 116.0, 103.0], std=[58.0, 57.0, 56.0], to_rgb=True
                ),
                test_dataloader=dict(
                    dataset=dict(
                        type='ImageNet',
                        data_root='/home/somebody/secret/data',
                        pipeline=[
                            dict(type='LoadImageFromFile'),
                            *steps,
                            dict(type='PackInputs'),
                        ],
                    )
                ),
            )
        )
        with DefaultScope.overwrite_default_scope('mmpretrain'):
            built = MODELS.build(dict(model, data_preprocessor=None))
        randomize(built, std=0.1)
        path = tmp_path / 'run/epoch_3.pth'
        path.parent.mkdir(exist_ok=True)
        meta = dict(cfg=cfg.pretty_text, dataset_meta=dict(classes=NAMES))
        torch.save(dict(meta=meta, state_dict=built.state_dict()), path)
        return path

    return save
