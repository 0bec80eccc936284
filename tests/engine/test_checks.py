import pytest
from mmengine.config import Config

from vit_plugin.engine.checks import check_channels, check_config
from vit_plugin.errors import ConfigError


@pytest.fixture
def coco(tmp_path, monkeypatch) -> Config:
    """The parts of a detection config that are checked, and the files that it asks for."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'data/images').mkdir(parents=True)
    (tmp_path / 'data/train.json').touch()
    dataset = dict(type='CocoDataset', data_root='data/', ann_file='train.json', data_prefix=dict(img='images/'))
    return Config(dict(
        work_dir='work', model=dict(type='RetinaNet'), default_scope='mmengine',
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
