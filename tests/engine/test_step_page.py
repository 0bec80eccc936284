"""The table of hooks in docs/step.md is that of a runner."""

import re
from pathlib import Path

import pytest

from benchmarks.tiny_run import build, tiny_cfg

ROW = re.compile(r'^\| `(\w+)`( \(custom\))? \| `(\w+)` \| (.*?) \|', re.MULTILINE)
CUSTOM = (
    'MaskAnnealingHook',
    'EMAHook',
    'ReportHook',
    'ProgressHook',
    'OptimizeHook',
    'PicturesHook',
)


@pytest.mark.filterwarnings('ignore')
def test_the_table_has_the_hooks_of_a_runner(tmp_path):
    runner = build(
        tiny_cfg(tmp_path, custom_hooks=[dict(type=f'vit_plugin.{name}') for name in CUSTOM])
    )
    runner.build_train_loop(runner._train_loop)
    rows = ROW.findall(Path('docs/step.md').read_text())
    assert [(type(hook).__name__, hook.priority) for hook in runner.hooks] == [
        (name, priority) for name, _, priority, _ in rows
    ]
    assert {name for name, custom, *_ in rows if custom} == set(CUSTOM)
    for hook, (name, _, _, moments) in zip(runner.hooks, rows, strict=True):
        assert set(re.findall(r'`(\w+)`', moments)) <= set(hook.get_triggered_stages()), name
