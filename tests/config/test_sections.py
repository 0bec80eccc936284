"""Sections of a config are compared with the signatures of what they are passed to."""

import pytest
from mmengine.runner import EpochBasedTrainLoop
from rejection import rejects

from vit_plugin.config.sections import check_sections


@pytest.mark.parametrize(
    ('option', 'value', 'words'),
    [
        (
            'train_cfg.max_epoch',
            1,
            '(given max_epoch=1); did you mean max_epochs?',
        ),
        ('randomness.sed', 1, 'randomness takes no sed (given sed=1); did you mean seed?'),
        ('sharding.grup', 1, 'sharding takes no grup (given grup=1); did you mean group?'),
        ('lora.rank', 1, 'lora takes no rank (given rank=1); it takes r, alpha, dropout, targets.'),
        ('env_cfg.mp_cfg.mp_start', 1, 'did you mean mp_start_method?'),
        ('env_cfg.cudnn', 1, 'it takes cudnn_benchmark, mp_cfg, dist_cfg, resource_limit.'),
        ('env_cfg.cudnn_benchmark', 'no', "cudnn_benchmark='no' must be a valid boolean"),
        ('auto_scale_lr.enabled', 1, 'did you mean enable?'),
        ('compile.blocks', 'no', "blocks='no' must be a valid boolean"),
        ('default_hooks.preemption.intervl', 1, 'did you mean interval?'),
        ('default_hooks.checkpoint.keep_evry', 1, 'did you mean keep_every?'),
        ('default_hooks.loger.interval', 1, 'has no type, and no hook of a run has this name'),
        (
            'default_hooks.timer.type',
            'Timer',
            'name the module that registers it in custom_im',
        ),
        ('train_dataloader.batchsize', 1, 'takes no batchsize (given batchsize=1)'),
        ('train_dataloader.persistent_workers', 'yes', 'must be a valid boolean'),
        ('train_dataloader.sampler.shufle', 1, 'takes no shufle'),
        ('train_dataloader.dataset.indice', 1, 'takes no indice'),
        ('train_dataloader.dataset.split', 'none', "split='none' must be 'train' or 'val'"),
        ('visualizer.nam', 1, 'visualizer takes no nam (given nam=1); did you mean name?'),
        ('optim_wrapper.optimizer.learning_rate', 1, 'takes no learning_rate'),
        ('optim_wrapper.type', 'OptimWraper', 'mean OptimWrapper or vit_plugin.OptimWrapper?'),
        ('train_cfg.type', 'EpochLoop', "train_cfg: there is no 'EpochLoop' among the loops"),
    ],
)
def test_invalid_names_and_values_raise_with_their_place(digits_config, option, value, words):
    digits_config.merge_from_dict({option: value})
    with rejects(f'^{option.rpartition(".")[0]}') as error:
        check_sections(digits_config.to_dict())
    assert words in str(error.value)


def test_only_the_given_sections_are_checked(digits_config):
    digits_config.merge_from_dict(
        {'train_dataloader.dataset.type': 'Absent', 'optim_wrapper.type': 'Absent'}
    )
    check_sections(digits_config.to_dict(), ['test_dataloader'])
    with rejects("there is no 'Absent' among the datasets"):
        check_sections(digits_config.to_dict())


def test_metrics_of_an_evaluator_are_checked(digits_config):
    metric = dict(type='Accuracy', topk=[1])
    digits_config.val_evaluator = dict(metrics=[metric])
    check_sections(digits_config.to_dict())
    digits_config.val_evaluator.metrics[0].topk = 'all'
    with rejects("val_evaluator.metrics.0: topk='all' must be"):
        check_sections(digits_config.to_dict())


def test_loops_with_keyword_arguments_take_any_names(digits_config):
    class Loop(EpochBasedTrainLoop):
        def __init__(self, runner, dataloader, **options):
            super().__init__(runner, dataloader, options['epochs'])

    digits_config.train_cfg = dict(type=Loop, epochs=3)
    check_sections(digits_config.to_dict())
