
import pytest

from vit_plugin.engine.checks import check_options
from vit_plugin.errors import ConfigError


@pytest.mark.parametrize(('option', 'words'), [
    ('train_cfg.max_epoch', "train_cfg has no setting 'max_epoch'; did you mean by_epoch or max_epochs"),
    ('optim_wraper.optimizer.lr', "a config has no setting 'optim_wraper'; did you mean optim_wrapper?"),
    ('randomness.sed', "randomness has no setting 'sed'; did you mean seed"),
    ('optim_wrapper.paramwise_cfg.norm_decay', "did you mean norm_decay_mult"),
    ('param_scheduler.7.end', 'param_scheduler is a list, whose parts are named by their numbers from 0 to 1'),
    ('train_cfg.max_epochs.x', 'train_cfg.max_epochs=3 has no settings of its own'),
    ('default_hooks.checkpoints.interval', 'did you mean checkpoint'),
    ('model.data_preprocessor.num_classes', 'stands beside the model in this config; leave out'),
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


@pytest.mark.parametrize('option', ['sharding.group', 'begin_from', 'lora.r', 'unreadable.max_share'])
def test_settings_that_only_our_runner_reads_may_be_new(digits_config, option):
    check_options(digits_config, {option: 1})


def test_a_wrong_name_in_a_new_group_is_told(digits_config):
    with pytest.raises(ConfigError, match="sharding has no setting 'groups'; did you mean group"):
        check_options(digits_config, {'sharding.groups': 2})
