"""A run keeps the number of threads that it began with, since rounding of sums depends on it."""

import pytest
import torch

from benchmarks.tiny_run import build, final_checkpoint, tiny_cfg
from vit_plugin.engine.exact import kept_threads
from vit_plugin.engine.exact.kept_threads import THREADS_KEY

pytestmark = pytest.mark.filterwarnings('ignore')


@pytest.fixture(autouse=True)
def restore_threads(monkeypatch):
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def train(work_dir, epochs: int, threads: int) -> str:
    """Train or resume with a number of threads, and return the logs."""
    torch.set_num_threads(threads)
    runner = build(tiny_cfg(work_dir, **{'train_cfg.max_epochs': epochs, 'resume': True}))
    runner.train()
    return '\n'.join(path.read_text() for path in work_dir.rglob('*.log'))


def recorded_threads(work_dir) -> int:
    """The number of threads in the last checkpoint of a run."""
    content = torch.load(final_checkpoint(work_dir), weights_only=False)
    return content['message_hub']['runtime_info'][THREADS_KEY]


def test_resumed_run_keeps_its_threads(tmp_path, monkeypatch):
    monkeypatch.setattr(kept_threads, 'cores', lambda: 1)
    train(tmp_path, 1, threads=2)
    assert recorded_threads(tmp_path) == 2
    log = train(tmp_path, 2, threads=1)
    assert torch.get_num_threads() == recorded_threads(tmp_path) == 2
    assert 'continues with the 2 threads of its start' in log
    assert 'this machine has 1 core.' in log


@pytest.mark.nightly
def test_environment_takes_precedence_with_a_warning(tmp_path, monkeypatch):
    train(tmp_path, 1, threads=2)
    monkeypatch.setenv('OMP_NUM_THREADS', '1')
    log = train(tmp_path, 2, threads=1)
    assert torch.get_num_threads() == recorded_threads(tmp_path) == 1
    assert 'began with 2 threads, and OMP_NUM_THREADS gives it 1' in log
