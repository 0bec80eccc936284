"""Names in ``--cfg-options`` that nothing reads raise."""

import re
from pathlib import Path

import pytest
from mmengine.runner import Runner

from vit_plugin.arguments import Signature
from vit_plugin.config import check_options
from vit_plugin.config.options import FRAMEWORK_SETTINGS, OUR_SETTINGS
from vit_plugin.engine.model_settings import MODEL_SETTINGS
from vit_plugin.errors import ConfigError


@pytest.mark.parametrize(
    ('option', 'words'),
    [
        (
            'optim_wraper.optimizer.lr',
            "a config has no setting 'optim_wraper'; did you mean optim_wrapper?",
        ),
        (
            'param_scheduler.7.end',
            'param_scheduler is a list, whose items are named by their indices from 0 to 1',
        ),
        ('train_cfg.max_epochs.x', 'train_cfg.max_epochs=3 has no settings'),
        ('default_hooks.checkpoints.interval', 'did you mean checkpoint'),
        ('model.data_preprocessor.num_classes', 'is next to the model in this config; leave out'),
    ],
)
def test_misspelled_options_raise_with_the_nearest_name(digits_config, option, words):
    with pytest.raises(ConfigError) as error:
        check_options(digits_config, {option: 1})
    assert words in str(error.value)


def test_items_of_an_empty_list_raise(digits_config):
    digits_config.custom_hooks = []
    with pytest.raises(ConfigError, match='custom_hooks is a list without items'):
        check_options(digits_config, {'custom_hooks.0.type': 1})


def test_options_that_are_read_pass(digits_config):
    check_options(
        digits_config,
        dict.fromkeys(
            (
                'model.backbone.drop_path_rate',
                'randomness.seed',
                'train_dataloader.dataset.indices',
                'tta_model.type',
                'optim_wrapper.accumulative_counts',
                'activation_checkpointing',
                'train_cfg.dynamic_intervals',
                'param_scheduler.0.end',
                'default_hooks.early_stopping.type',
                'auto_scale_lr.enable',
                'model.neck.type',
                'sharding.group',
                'begin_from',
                'lora.r',
                'unreadable.max_share',
                'default_hooks.checkpoint.keep_every',
                'default_hooks.preemption.signals',
            )
        ),
    )


def test_every_setting_that_our_code_reads_is_known():
    folders = (
        'vit_plugin/config',
        'vit_plugin/engine',
        'vit_plugin/commands',
        'vit_plugin/inference',
    )
    text = '\n'.join(
        source.read_text() for folder in folders for source in Path(folder).rglob('*.py')
    )
    read = set(
        re.findall(r"\bcfg(?:\.get\(|\.setdefault\(|\[)\s*'(\w+)'", text)
        + re.findall(r'\bcfg\.(\w+) = ', text)
    ) | {*MODEL_SETTINGS}
    assert read >= OUR_SETTINGS
    assert read <= OUR_SETTINGS | FRAMEWORK_SETTINGS | Signature.of(Runner).fields.keys()
