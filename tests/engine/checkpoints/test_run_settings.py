"""The settings that determine a run, and the table of those that may change at a resume."""

from pathlib import Path

import pytest
from mmengine.config import Config
from mmengine.hooks import EMAHook
from test_configs import recipes

from vit_plugin.config import read_config
from vit_plugin.engine.checkpoints.run_settings import (
    CHANGEABLE_SETTINGS,
    FREE_ANYWHERE,
    FREE_VALUES,
    OBSERVING_HOOKS,
    RUN_SECTIONS,
    changed_settings,
    flat_settings,
)

pytestmark = pytest.mark.filterwarnings('ignore')
CFG = dict(
    model=dict(type='mmpretrain.ImageClassifier', backbone=dict(drop_rate=0.1, with_cp=False)),
    train_dataloader=dict(num_workers=2, dataset=dict(data_root='a', pipeline=[dict(type='Flip')])),
    train_cfg=dict(by_epoch=True, max_epochs=3),
    val_dataloader=dict(batch_size=3),
    default_hooks=dict(
        logger=dict(type='LoggerHook', interval=2), preemption=dict(interval=2), nothing=None
    ),
    custom_hooks=[dict(type='EMAHook', momentum=0.1, priority='LOW'), dict(type=EMAHook)],
    randomness=dict(seed=1, deterministic=False),
)


def test_flat_settings_are_those_that_determine_a_run():
    assert flat_settings(CFG) == {
        'model.type': 'ImageClassifier',
        'model.backbone.drop_rate': '0.1',
        'train_dataloader.dataset.pipeline.0.type': 'Flip',
        'train_cfg.by_epoch': 'True',
        'randomness.deterministic': 'False',
        'hooks.EMAHook.momentum': '0.1',
        'hooks.EMAHook.2': '{}',
    }


def test_the_page_lists_every_name_of_the_table():
    page = Path('docs/cluster_reference.md').read_text()
    table = page.partition('## What may change at a resume')[2].partition('\n## ')[0]
    names = (
        *RUN_SECTIONS,
        *FREE_ANYWHERE,
        *FREE_VALUES,
        *OBSERVING_HOOKS,
        *CHANGEABLE_SETTINGS,
        *(name for free_names in CHANGEABLE_SETTINGS.values() for name in free_names),
    )
    missing = [name for name in names if f'`{name}`' not in table and f'`{name}.' not in table]
    assert not missing


@recipes(nightly=True)
def test_text_of_a_config_gives_the_same_settings(path):
    """MMEngine's checkpoints have only this text."""
    cfg = read_config(path)
    text = Config(cfg._cfg_dict, format_python_code=False).pretty_text
    assert changed_settings(cfg, dict(cfg=text)) == {}
    assert changed_settings(cfg, dict(run=dict(settings=flat_settings(cfg)))) == {}


@pytest.mark.parametrize('text', ['', None, 'model = <function f at 0x7f>', 'x = 1'])
def test_unreadable_config_text_is_not_compared(text):
    assert changed_settings(CFG, dict(cfg=text)) == {}


def test_default_hooks_without_a_type_in_an_old_checkpoint_are_not_compared():
    settings = {**flat_settings(CFG), 'hooks.None.interval': '9', 'hooks.None.2.interval': '10'}
    assert changed_settings(CFG, dict(run=dict(settings=settings))) == {}
