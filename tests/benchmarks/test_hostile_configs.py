"""Half a minute of the campaign that tries hostile configs with every registered class.

It runs in a process of its own, because its audit hook cannot be removed. A faster test is in
tests/untrusted/test_admission.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip('mmpretrain')
pytest.importorskip('mmdet')
pytest.importorskip('mmseg')


@pytest.mark.nightly
def test_no_hostile_config_leaves_a_mark():
    command = [sys.executable, 'benchmarks/hostile_configs.py', '--minutes', '0.5']
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, 'PYTHONPATH': str(Path.cwd())},
    )
    assert done.returncode == 0, done.stderr
    assert 'marks: 0' in done.stdout
    assert 'refused by the table' in done.stdout
