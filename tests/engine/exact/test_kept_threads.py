"""Sums are rounded by the number of threads, so that a run keeps that of its start."""

import pytest
import torch

from benchmarks.tiny_run import build, final_checkpoint, tiny_cfg
from vit_plugin.engine.exact import kept_threads
from vit_plugin.engine.exact.kept_threads import THREADS_KEY

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def train(work_dir, epochs: int, threads: int) -> str:
    """What a run that has this number of threads, and is resumed, logs."""
    torch.set_num_threads(threads)
    runner = build(tiny_cfg(work_dir, **{'train_cfg.max_epochs': epochs, 'resume': True}))
    runner.train()
    return '\n'.join(path.read_text() for path in work_dir.rglob('*.log'))


def recorded(work_dir) -> int:
    content = torch.load(final_checkpoint(work_dir), weights_only=False)
    return content['message_hub']['runtime_info'][THREADS_KEY]


def test_a_resumed_run_has_the_threads_of_its_start(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_threads, 'cores', lambda: 1)
    train(tmp_path, 1, threads=2)
    assert recorded(tmp_path) == 2
    log = train(tmp_path, 2, threads=1)
    assert torch.get_num_threads() == recorded(tmp_path) == 2
    assert 'continues with the 2 threads of its start' in log
    assert 'this machine has 1 core.' in log


def test_the_environment_decides_and_a_warning_names_it(tmp_path, monkeypatch):
    train(tmp_path, 1, threads=2)
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    log = train(tmp_path, 2, threads=1)
    assert torch.get_num_threads() == recorded(tmp_path) == 1
    assert 'began with 2 threads, and OMP_NUM_THREADS gives it 1' in log
