"""Configs are checked before a run."""

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mmengine.config import Config
from mmengine.dataset import BaseDataset
from mmengine.evaluator import BaseMetric
from rejection import rejects

from vit_plugin.config import LOADER_SECTIONS
from vit_plugin.config.runnable import check_config


class AnnotatedMetric(BaseMetric):
    """A metric with an annotation file."""

    def __init__(self, ann_file: str) -> None:
        self.ann_file = ann_file

    def process(self, data_batch, data_samples):
        pass

    def compute_metrics(self, results):
        return {}


# Numbers that all frameworks use in the same way. The values in the test below are invalid for all.
NUMBERS = (
    'train_cfg.max_epochs',
    'train_cfg.val_interval',
    *(f'{loader}.batch_size' for loader in LOADER_SECTIONS),
    *(f'{loader}.num_workers' for loader in LOADER_SECTIONS),
    'optim_wrapper.optimizer.lr',
    'optim_wrapper.optimizer.weight_decay',
    'optim_wrapper.accumulative_counts',
    'default_hooks.logger.interval',
    'default_hooks.checkpoint.max_keep_ckpts',
    'default_hooks.checkpoint.interval',
    'randomness.seed',
    'auto_scale_lr.base_batch_size',
    'env_cfg.dist_cfg.timeout',
)


@pytest.fixture
def coco(tmp_path, monkeypatch) -> Config:
    """The parts of a detection config that are checked, and the files that it names."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'data/images').mkdir(parents=True)
    (tmp_path / 'data/train.json').touch()
    dataset = dict(
        type=BaseDataset,
        data_root='data/',
        ann_file='train.json',
        data_prefix=dict(img='images/'),
    )
    return Config(
        dict(
            work_dir='work',
            model=dict(type='RetinaNet'),
            default_scope='mmengine',
            train_cfg=dict(by_epoch=True),
            optim_wrapper=dict(optimizer=dict(type='SGD')),
            test_evaluator=dict(type='DumpResults', out_file_path='results.pkl'),
            train_dataloader=dict(
                dataset=dict(type='ConcatDataset', datasets=[dataset, dict(dataset)])
            ),
            val_dataloader=dict(dataset=dict(dataset)),
            val_cfg=dict(),
            val_evaluator=[dict(type=AnnotatedMetric, ann_file='data/train.json')],
        )
    )


def test_existing_data_pass(coco):
    check_config(coco)


def test_checkpoints_in_the_home_directory_are_found(coco, tmp_path, monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'x.pth').touch()
    coco.load_from = '~/x.pth'
    check_config(coco)
    assert coco.load_from == str(tmp_path / 'x.pth')


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(NUMBERS),
    st.sampled_from([-2, 'abc', [1], math.nan, math.inf, True, -math.inf]),
)
def test_numbers_out_of_range_raise(coco, field, value):
    cfg = coco.copy()
    cfg.test_dataloader = cfg.val_dataloader
    cfg.merge_from_dict({field: value})
    section, _, name = field.rpartition('.')
    with rejects(f'^{section}: {name}=.* must be '):
        check_config(cfg)


def test_arguments_of_metrics_are_checked(digits_config):
    digits_config.val_evaluator.topk = 'word'
    with rejects("val_evaluator: topk='word' must be a valid integer or be a list"):
        check_config(digits_config)


def test_a_learning_rate_that_the_schedule_replaces_raises(coco):
    coco.param_scheduler = [dict(type='LinearLR'), dict(type='OneCycleLR', eta_max=1e-2)]
    check_config(coco)
    coco.optim_wrapper.optimizer.lr = 1e-2
    check_config(coco)
    coco.optim_wrapper.optimizer.lr = 1e-3
    check_config(coco, ['val_dataloader'])  # not used in a validation
    with rejects('optimizer.lr=0.001 has no effect.*set param_scheduler.eta_max'):
        check_config(coco)


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        (
            {'train_dataloader.dataset.datasets.1.data_root': 'none'},
            "train_dataloader.dataset.datasets.1: there is no folder 'none/images/'",
        ),
        (
            {'val_dataloader.dataset.data_prefix.img': 'photos'},
            "there is no folder 'data/photos'",
        ),
        (
            {'val_dataloader.dataset.ann_file': 'val.json'},
            "val_dataloader.dataset: there is no file 'data/val.json'",
        ),
        (
            {'val_evaluator.0.ann_file': 'val.json'},
            'give --cfg-options val_evaluator.0.ann_file=FILE',
        ),
        (
            {'train_dataloader.num_workers': 100_000},
            'train_dataloader: num_workers=100000 must be less than or equal to',
        ),
        (dict(default_scope='none.such'), "default_scope='none.such' is not an installed package"),
        (
            dict(default_scope=3),
            'default_scope=3 is not an installed package; there are mmpretrain',
        ),
        (dict(schedule_length=0), 'schedule_length=0 must be greater than or equal to 1'),
        (dict(load_from=3), 'load_from=3 must be a valid string'),
        (dict(resume_changed='no'), "resume_changed='no' must be a valid boolean"),
        (dict(begin_from='none.pth'), "There is no checkpoint file 'none.pth'"),
        (dict(val_dataloader=None), 'val_cfg and val_evaluator need val_dataloader; set it'),
        (dict(val_cfg=None), 'val_dataloader and val_evaluator need val_cfg; set it'),
        (dict(compile=3), 'compile=3 must be a dict with settings, True or False'),
        (dict(val_evaluator='Accuracy'), "val_evaluator='Accuracy' must be a dict with settings"),
        (
            dict(env_cfg=dict(mp_cfg=dict(mp_start_method='x'))),
            "mp_start_method='x' must be 'fork",
        ),
        (
            {'model.head.num_classes': 3, 'test_evaluator.topk': (1, 5)},
            r'test_evaluator: topk=.1, 5. asks for more than the num_classes=3 of model.head',
        ),
    ],
)
def test_invalid_settings_raise_with_the_remedy(coco, changes, words):
    coco.merge_from_dict(changes)
    with rejects(words):
        check_config(coco)


@pytest.mark.parametrize(
    'changes',
    [
        dict(custom_hooks=[dict(type='EarlyStoppingHook', monitor='accuracy/top1')]),
        {'default_hooks.stop': dict(type='mmengine.EarlyStoppingHook', monitor='accuracy/top1')},
        dict(param_scheduler=[dict(type='ReduceOnPlateauLR', monitor='accuracy/top1')]),
    ],
)
def test_settings_that_need_a_validation_raise_without_one(coco, changes):
    coco.merge_from_dict(changes)
    check_config(coco)
    coco.merge_from_dict(dict(val_dataloader=None, val_cfg=None, val_evaluator=None))
    with rejects('follows the metrics of a validation, and this run has none'):
        check_config(coco)


def test_sections_may_be_disabled(coco):
    coco.merge_from_dict(
        dict(compile=True, lora=False, val_dataloader=None, val_cfg=None, val_evaluator=None)
    )
    check_config(coco)
