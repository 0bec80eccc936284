"""The default hooks of a run, and how a config changes or disables them."""

import pytest

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.engine import PreemptionHook
from vit_plugin.engine.default_hooks import with_default_hooks


@pytest.mark.filterwarnings('ignore')
def test_config_disables_a_hook_that_mmengine_does_not_know(tmp_path):
    runner = build(tiny_cfg(tmp_path, **{'default_hooks.preemption': None}))
    assert runner.find_hook(PreemptionHook) is None


@pytest.mark.parametrize(
    ('hooks', 'interval'),
    [(None, 1), ({}, 1), (dict(checkpoint=dict(save_best='auto')), None)],
)
def test_run_saves_every_epoch_unless_the_config_changes_the_hook(hooks, interval):
    assert with_default_hooks(hooks)['checkpoint'].get('interval') == interval
