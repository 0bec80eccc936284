"""A training that is interrupted leaves no processes and temporary files, and can be resumed."""

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
# A module that the config imports: points where the run waits to be interrupted.
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


def marked_processes(mark: str) -> list[int]:
    """The processes that have this value of MARK in their environment."""
    processes = []
    for file in Path('/proc').glob('[0-9]*/environ'):
        try:
            if f'MARK={mark}\0'.encode() in file.read_bytes():
                processes.append(int(file.parent.name))
        except OSError:  # it has ended, or is another user's
            continue
    return processes


@pytest.fixture
def temporary() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:  # sockets need a short path
        yield Path(folder)


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != 'linux', reason='reads /proc')
@pytest.mark.parametrize('phase', ['training', 'validation', 'saving'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_training_leaves_nothing_and_resumes(tmp_path, temporary, phase, number):
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
    deadline = time.monotonic() + 300  # workers check every 5 s whether the main process is alive
    while marked_processes(str(tmp_path)):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    if number != signal.SIGKILL:  # a killed process cannot remove its folder
        assert not [*temporary.glob('pymp-*')]
    assert not {*os.listdir('/dev/shm')} - shared
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not [*(tmp_path / 'work').glob('.*')]


@pytest.mark.nightly
@pytest.mark.parametrize('after', [0.3, 1.5, 3.0])
def test_ctrl_c_during_the_import_of_torch_prints_no_traceback(tmp_path, after):
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
