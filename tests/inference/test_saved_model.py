"""The config in a checkpoint is checked before its model is built."""

import mmpretrain.models  # noqa: F401  registers the necks
import pytest
import torch
from mmengine.config import Config
from rejection import rejects

from vit_plugin.inference.saved_model import open_model


@pytest.mark.parametrize(('width', 'fits'), [(32, True), (64, False)])
def test_channels_of_necks_of_the_framework_are_checked(tiny, tmp_path, width, fits):
    model = dict(
        type='ImageClassifier',
        backbone=dict(tiny, type='vit_plugin.VisionTransformer', out_type='featmap'),
        neck=dict(type='GlobalAveragePooling'),
        head=dict(type='LinearClsHead', num_classes=2, in_channels=width),
    )
    cfg = Config(dict(default_scope='mmpretrain', model=model))
    path = str(tmp_path / 'weights.pth')
    torch.save(dict(meta=dict(cfg=cfg.pretty_text), state_dict={'x': torch.ones(1)}), path)
    if fits:
        assert open_model(path).cfg.model == cfg.model
    else:
        with rejects('model.head.in_channels=64 does not fit the neck'):
            open_model(path)


def test_a_moved_run_reads_its_own_lists(tiny, tmp_path):
    """There may be another run at the folder's former path."""
    model = dict(
        type='ImageClassifier', backbone=dict(tiny, type='vit_plugin.VisionTransformer'), head=None
    )
    loader = dict(dataset=dict(type='CustomDataset', ann_file=str(tmp_path / 'a/val.txt')))
    settings = dict(
        default_scope='mmpretrain',
        model=model,
        work_dir=str(tmp_path / 'a'),
        test_dataloader=loader,
    )
    for name in 'ab':
        (tmp_path / name).mkdir()
        (tmp_path / name / 'val.txt').touch()
    path = tmp_path / 'b/epoch_1.pth'
    torch.save(
        dict(meta=dict(cfg=Config(settings).pretty_text), state_dict={'x': torch.ones(1)}), path
    )
    cfg = open_model(str(tmp_path / 'b'), use='test').cfg
    assert cfg.test_dataloader.dataset.ann_file == str(tmp_path / 'b/val.txt')
