import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mmengine.config import Config

from vit_plugin.engine import Runner
from vit_plugin.engine.checks import LEAST, check_channels, check_classes, check_config, check_numbers, check_options
from vit_plugin.errors import ConfigError


@pytest.fixture
def coco(tmp_path, monkeypatch) -> Config:
    """The parts of a detection config that are checked, and the files that it asks for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'data/images').mkdir(parents=True)
    (tmp_path / 'data/train.json').touch()
    dataset = dict(type='CocoDataset', data_root='data/', ann_file='train.json', data_prefix=dict(img='images/'))
    return Config(dict(
        work_dir='work', model=dict(type='RetinaNet'), default_scope='mmengine', train_cfg=dict(by_epoch=True),
        optim_wrapper=dict(optimizer=dict(type='SGD')), test_evaluator=dict(type='Metric'),
        train_dataloader=dict(dataset=dict(type='ConcatDataset', datasets=[dataset, dict(dataset)])),
        val_dataloader=dict(dataset=dict(dataset)),
        val_evaluator=[dict(type='CocoMetric', ann_file='data/train.json')]))


def test_data_that_is_there_passes(coco):
    check_config(coco)


@pytest.mark.parametrize(('field', 'value', 'words'), [
    ('train_dataloader.dataset.datasets.1.data_root', 'none',
     "train_dataloader.dataset.datasets.1: there is no folder 'none/images/'"),
    ('val_dataloader.dataset.data_prefix.img', 'photos', "there is no folder 'data/photos'"),
    ('val_dataloader.dataset.ann_file', 'val.json', "val_dataloader.dataset: there is no file 'data/val.json'"),
    ('val_evaluator.0.ann_file', 'val.json', "give --cfg-options val_evaluator.0.ann_file=FILE"),
])
def test_missing_data_is_named_with_the_remedy(coco, field, value, words):
    coco.merge_from_dict({field: value})
    with pytest.raises(ConfigError) as error:
        check_config(coco)
    assert words in str(error.value)


@pytest.mark.parametrize(('part', 'fits', 'asked'), [
    ('neck', True, [128, 256, 32]),
    ('neck', False, [128, 256, 64]),
    ('neck', True, 32),
    ('neck', False, [256, 512, 1024, 2048]),
    ('head', True, 32),
    ('head', False, 64),
])
def test_channels_are_compared_with_the_backbones(tiny_hybrid, part, fits, asked):
    backbone = dict(tiny_hybrid, type='vit_plugin.VisionTransformer', with_cls_token=False, out_type='pyramid')
    backbone['arch']['patch_size'] = 2  # below the tokens there are two maps, of 128 and 256 channels
    model = dict(backbone=backbone, **{part: dict(type='Part' if part == 'neck' else None, in_channels=asked)})
    if fits:
        check_channels(model)
    else:
        with pytest.raises(ConfigError, match=rf'model.{part}.in_channels=.* does not fit the backbone'):
            check_channels(model)


def test_a_segmentors_head_chooses_maps(tiny):
    backbone = dict(tiny, type='vit_plugin.VisionTransformer', out_type='featmap', out_indices=(0, 1))
    check_channels(dict(backbone=backbone, decode_head=dict(in_channels=[32], in_index=[1])))
    with pytest.raises(ConfigError, match=r'set it to \[32\]'):
        check_channels(dict(backbone=backbone, decode_head=dict(in_channels=[32, 32], in_index=[1])))


def test_more_maps_than_the_backbone_gives():
    model = dict(backbone=dict(type='vit_plugin.VisionTransformer', arch='B/16', out_type='featmap'),
                 decode_head=dict(in_channels=768, in_index=3))  # as in MMSegmentation's bases
    with pytest.raises(ConfigError, match='model.decode_head.in_index=3 asks for more maps than the backbone gives'):
        check_channels(model)


class Head(torch.nn.Module):
    def __init__(self, num_classes: int) -> None:
        super().__init__()
        self.num_classes = num_classes


@pytest.mark.parametrize(('heads', 'field'), [
    ({'head': Head(1000)}, 'model.head.num_classes=1000'),
    ({'roi_head': torch.nn.ModuleDict({'bbox_head': torch.nn.ModuleList([Head(3), Head(80)])})},
     'model.roi_head.bbox_head.1.num_classes=80'),
    ({'decode_head': Head(2)}, 'model.decode_head.num_classes=2'),
])
def test_classes_are_compared_with_the_data(heads, field):
    data = SimpleNamespace(metainfo=dict(classes=('a', 'b', 'c')))
    with pytest.raises(ConfigError, match=rf'{field} does not fit the data set, .* with 3 classes: set it to 3'):
        check_classes(torch.nn.ModuleDict(heads), data)
    check_classes(torch.nn.ModuleDict({'head': Head(3), 'rpn_head': Head(1)}), data)
    check_classes(torch.nn.ModuleDict(heads), SimpleNamespace(metainfo={}))


@pytest.mark.filterwarnings('ignore')
def test_a_head_for_other_classes_ends_before_the_first_step(digits_config):
    digits_config.merge_from_dict({'model.head.num_classes': 1000, 'model.head.loss.num_classes': 1000})
    with pytest.raises(ConfigError, match='model.head.num_classes=1000 does not fit the data set, a Digits with 10'):
        Runner.from_cfg(digits_config).train()


@pytest.mark.parametrize(('option', 'words'), [
    ('train_cfg.max_epoch', "train_cfg has no setting 'max_epoch'; did you mean by_epoch or max_epochs"),
    ('optim_wraper.optimizer.lr', "a config has no setting 'optim_wraper'; did you mean optim_wrapper."),
    ('randomness.sed', "randomness has no setting 'sed'; did you mean seed"),
    ('optim_wrapper.paramwise_cfg.norm_decay', "did you mean norm_decay_mult"),
    ('param_scheduler.7.end', 'param_scheduler is a list, whose parts are named by their numbers from 0 to 1'),
    ('train_cfg.max_epochs.x', 'train_cfg.max_epochs=3 has no settings of its own'),
    ('default_hooks.checkpoints.interval', 'did you mean checkpoint'),
])
def test_a_misspelt_option_is_answered_with_the_nearest(digits_config, option, words):
    with pytest.raises(ConfigError) as error:
        check_options(digits_config, {option: 1})
    assert words in str(error.value)


def test_what_something_reads_is_no_misspelling(digits_config):
    check_options(digits_config, dict.fromkeys((
        'model.backbone.drop_path_rate', 'randomness.seed', 'train_dataloader.dataset.indices', 'tta_model.type',
        'optim_wrapper.accumulative_counts', 'activation_checkpointing', 'train_cfg.dynamic_intervals',
        'param_scheduler.0.end', 'default_hooks.early_stopping.type', 'auto_scale_lr.enable', 'model.neck.type')))


@given(st.sampled_from(sorted(LEAST)), st.sampled_from([-2, 'abc', [1], math.nan, math.inf, True, -math.inf]))
def test_numbers_out_of_range_are_named(field, value):
    cfg = Config()
    cfg.merge_from_dict({field: value})
    with pytest.raises(ConfigError, match=f'^{field}='):
        check_numbers(cfg)
def pooled(tiny: dict, neck: dict, **backbone) -> dict:
    return dict(backbone=dict(tiny, type='vit_plugin.VisionTransformer', **backbone),
                neck=dict(type='vit_plugin.TokenPooling', **neck))


@pytest.mark.parametrize(('with_cls_token', 'number'), [(True, 1), (False, 0)])
def test_pooling_is_told_the_prefix_tokens(tiny, with_cls_token, number):
    model = pooled(tiny, {}, out_type='raw', with_cls_token=with_cls_token)
    check_channels(model)
    assert model['neck']['num_prefix_tokens'] == number


@pytest.mark.parametrize(('neck', 'words'), [
    (dict(num_prefix_tokens=1), 'num_prefix_tokens=1 does not fit the backbone, which gives 0'),
    (dict(mode='cls'), "mode='cls' takes the class token, and the backbone has none"),
])
def test_pooling_is_compared_with_the_prefix_tokens(tiny, neck, words):
    with pytest.raises(ConfigError, match=words):
        check_channels(pooled(tiny, neck, out_type='raw', with_cls_token=False))


def test_pooling_of_a_map_needs_no_number(tiny):
    model = pooled(tiny, {}, out_type='featmap')
    check_channels(model)
    assert 'num_prefix_tokens' not in model['neck']
