"""Half a minute of the campaign that tries hostile configs with every registered class.

It runs in a process of its own, because its audit hook cannot be removed. A faster test is in
tests/untrusted/test_admission.py.
"""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip('mmpretrain')
pytest.importorskip('mmdet')
pytest.importorskip('mmseg')
from benchmarks.hostile_configs import Baits


def test_a_file_that_leaves_the_folder_of_results_is_a_mark():
    baits = SimpleNamespace(
        listening=True, allowed=('/own',), watched=Path('/baits'), seen=Counter()
    )
    Baits._listen(baits, 'os.rename', ('/own/a', '/own/b', -1, -1))
    assert not baits.seen
    for event in ('os.rename', 'shutil.copyfile'):
        Baits._listen(baits, event, ('/own/a', '/elsewhere/b'))
    assert [*baits.seen] == ['os.rename /elsewhere/b', 'shutil.copyfile /elsewhere/b']


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
