"""A training that is interrupted in any phase leaves no process and no temporary folder, and the
next one runs on.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

CONFIG = Path('configs/hybrid_vit/hybrid-vit-mini-p2_1xb16_digits.py').resolve()
SHORT = (
    'train_cfg.max_epochs=2',
    'train_dataloader.dataset.indices=64',
    'val_dataloader.dataset.indices=30',
    'train_dataloader.num_workers=2',
    'val_dataloader.num_workers=2',
)
# Points where a run waits to be interrupted. It is imported by the config.
PAUSES = """
import os, time
from pathlib import Path
from mmengine.hooks import Hook
from mmengine.registry import HOOKS
import torch

phase, reached = os.environ.get('PHASE'), Path('reached')


def pause(name):
    if name == phase and not reached.exists():
        reached.touch()
        time.sleep(3)


@HOOKS.register_module()
class Pauses(Hook):
    def after_train_iter(self, *args, **kwargs):
        pause('training')

    def after_val_iter(self, *args, **kwargs):
        pause('validation')


save = torch.save
torch.save = lambda *args, **kwargs: (save(*args, **kwargs), pause('saving'))
"""


def left_of(mark: str) -> list[int]:
    """The processes with this in their environment."""
    found = []
    for file in Path('/proc').glob('[0-9]*/environ'):
        try:
            found += (
                [int(file.parent.name)] if f'MARK={mark}\0'.encode() in file.read_bytes() else []
            )
        except OSError:
            continue
    return found


@pytest.fixture
def temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:  # a short path, as sockets need
        yield Path(folder)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc')
@pytest.mark.parametrize('phase', ['training', 'validation', 'saving'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_training_leaves_nothing(tmp_path, temporary, phase, number):
    (tmp_path / 'pauses.py').write_text(PAUSES)
    (tmp_path / 'config.py').write_text(
        f"_base_ = '{CONFIG}'\ncustom_imports = dict(imports=['pauses'])\n"
        "custom_hooks = [dict(type='Pauses')]\n"
    )
    environment = dict(
        os.environ,
        TMPDIR=str(temporary),
        PHASE=phase,
        MARK=str(tmp_path),
        OMP_NUM_THREADS='1',
        PYTHONPATH=f'{Path.cwd()}{os.pathsep}{tmp_path}',
    )
    command = [
        sys.executable,
        str(Path('tools/train.py').resolve()),
        'config.py',
        '--work-dir',
        'work',
        '--resume',
        '--cfg-options',
        *SHORT,
    ]
    shared = {*os.listdir('/dev/shm')}
    with open(tmp_path / 'log', 'w') as log:
        run = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log)
    deadline = time.monotonic() + 600
    while not (tmp_path / 'reached').exists():
        assert run.poll() is None, (tmp_path / 'log').read_text()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    run.send_signal(number)
    status = run.wait(timeout=600)
    assert status == {signal.SIGINT: 1, signal.SIGTERM: 143, signal.SIGKILL: -9}[number]
    deadline = time.monotonic() + 300  # workers look every 5 s whether the main process is there
    while left_of(str(tmp_path)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if number != signal.SIGKILL:  # nobody can remove its folder then
        assert not [*temporary.glob('pymp-*')]
    assert not {*os.listdir('/dev/shm')} - shared
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [*(tmp_path / 'work').glob('.*')]


@pytest.mark.nightly
@pytest.mark.parametrize('after', [0.3, 1.5, 3.0])
def test_ctrl_c_while_torch_is_imported_is_no_traceback(tmp_path, after):
    process = subprocess.Popen(
        [sys.executable, '-m', 'vit_plugin', 'train', 'none.py'],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    time.sleep(after)
    process.send_signal(signal.SIGINT)
    assert 'Traceback' not in process.communicate()[1]
    assert process.returncode
