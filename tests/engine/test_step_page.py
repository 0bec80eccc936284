"""The table of hooks in docs/step.md agrees with a runner."""

import re
from pathlib import Path

import pytest

from benchmarks.tiny_run import build, tiny_cfg

ROW = re.compile(r'^\| `(\w+)`( \(custom\))? \| `(\w+)` \| (.*?) \|', re.MULTILINE)


@pytest.mark.filterwarnings('ignore')
def test_the_table_lists_the_hooks_of_a_runner(tmp_path):
    rows = ROW.findall(Path('docs/step.md').read_text())
    hooks = [dict(type=f'vit_plugin.{name}') for name, custom, *_ in rows if custom]
    runner = build(tiny_cfg(tmp_path, custom_hooks=hooks))
    runner.build_train_loop(runner._train_loop)
    assert hooks
    assert [(type(hook).__name__, hook.priority) for hook in runner.hooks] == [
        (name, priority) for name, _, priority, _ in rows
    ]
    for hook, (name, _, _, stages) in zip(runner.hooks, rows, strict=True):
        assert set(re.findall(r'`(\w+)`', stages)) <= set(hook.get_triggered_stages()), name
