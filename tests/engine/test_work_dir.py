"""A work directory is locked by one training at a time, and sharded ranks must all see it."""

import fcntl
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import Process
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest
from mmengine.dist import get_rank
from ranks import on_ranks
from rejection import rejects

from benchmarks.tiny_run import build, tiny_cfg
from vit_plugin.commands.command_line import build_runner, training_runner
from vit_plugin.config import read_config
from vit_plugin.engine import work_dir
from vit_plugin.engine.work_dir import OWNER, describe_blind_rank, lock_work_dir


def hold(folder: Path, ready: Event, with_child: bool) -> None:
    """Lock the folder, as a training does. A child holds the lock for a second, as data workers
    do after their training was killed.
    """
    with lock_work_dir(folder):
        if with_child and not os.fork():
            time.sleep(1)
            os._exit(0)
        ready.set()
        time.sleep(60)


@contextmanager
def another_run(folder: Path, with_child: bool = False) -> Iterator[Process]:
    """Another process that has locked the folder."""
    ready = multiprocessing.Event()
    process = Process(target=hold, args=(folder, ready, with_child))
    process.start()
    assert ready.wait(60)
    yield process
    process.kill()
    process.join()


def test_second_run_raises_with_the_process_of_the_first(tmp_path, monkeypatch):
    monkeypatch.setattr('vit_plugin.engine.work_dir.PATIENCE', 0.5)
    with another_run(tmp_path) as other:
        with (
            rejects(rf'A run is already training in .* \(process {other.pid} on .*, since .*\)'),
            lock_work_dir(tmp_path),
        ):
            pass
        other.kill()
        other.join()
        with lock_work_dir(tmp_path):  # the lock of a dead run is released
            assert str(os.getpid()) in (tmp_path / OWNER).read_text()
    assert not list(tmp_path.iterdir())


def test_workers_of_a_killed_run_are_waited_for(tmp_path):
    with another_run(tmp_path, with_child=True) as other:
        other.kill()
        other.join()
        with lock_work_dir(tmp_path):
            pass


def test_nested_locks_of_one_process_are_one_lock(tmp_path):
    """A command locks the folder before its runner does."""
    with lock_work_dir(tmp_path):
        with lock_work_dir(tmp_path):
            pass
        assert (tmp_path / OWNER).is_file()
    assert not list(tmp_path.iterdir())


def test_nothing_is_written_before_the_folder_is_locked(tmp_path, monkeypatch, digits_config):
    """First with the command's lock, then without it, as in the frameworks' train.py."""
    monkeypatch.setattr('vit_plugin.engine.work_dir.PATIENCE', 0.5)
    folder = Path(digits_config.work_dir)
    digits_config.launcher = 'none'
    with another_run(folder):
        (folder / Path(digits_config.filename).name).write_text('theirs')
        before = {path: path.read_bytes() for path in folder.iterdir()}
        with (
            rejects('A run is already training in'),
            training_runner(digits_config),
        ):
            pass
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
        runner = build_runner(digits_config)
        with rejects('A run is already training in'):
            runner.train()
        # Compared are only the files from before, since this way adds a log.
        assert {path: path.read_bytes() for path in before} == before


def test_saved_config_moves_with_its_folder(tmp_path, digits_config):
    digits_config.merge_from_dict({'launcher': 'none', 'train_cfg.max_epochs': 1})
    with training_runner(digits_config) as runner:
        runner.train()
    Path(runner.work_dir).rename(tmp_path / 'moved')
    path = tmp_path / 'moved' / Path(digits_config.filename).name
    assert read_config(path).work_dir == str(tmp_path / 'moved')


def test_lock_is_released_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), lock_work_dir(tmp_path):
        print(1 / 0)
    with lock_work_dir(tmp_path):
        pass


def test_file_system_without_locks_is_tolerated(tmp_path, monkeypatch):
    def reject(*args: object) -> None:
        raise OSError(37, 'No locks available')

    monkeypatch.setattr(fcntl, 'flock', reject)
    with lock_work_dir(tmp_path):
        pass
    assert not (tmp_path / OWNER).exists()


def check_visibility(folder: Path, shared: bool) -> None:
    """Assert that ``describe_blind_rank`` names the rank exactly if the folder is not shared."""
    work_dir.VISIBILITY_TIMEOUT = 60.0 if shared else 0.5
    folder_of_rank = folder if shared else folder / f'of_{get_rank()}'
    message = describe_blind_rank(folder_of_rank)
    if shared:
        assert message is None
    else:
        assert f"rank 1 does not see in '{folder / 'of_1'}' of " in message
        assert f"what rank 0 writes in '{folder / 'of_0'}' of " in message
    if get_rank() == 0:
        assert not [*folder.rglob('.shared*')]


@pytest.mark.parametrize('shared', [True, False])
def test_ranks_find_out_whether_they_share_a_folder(tmp_path, shared):
    on_ranks(2, tmp_path, check_visibility, tmp_path, shared)


def train_without_shared_disk(folder: Path, options: dict, message: str | None) -> None:
    """Train on two ranks whose work directories are different, as on two machines."""
    work_dir.VISIBILITY_TIMEOUT = 0.5
    os.chdir(folder / f'machine_{get_rank()}')
    short = {'train_dataloader.batch_size': 8, 'custom_hooks': [], **WITHOUT_VALIDATION}
    runner = build(tiny_cfg('run', **short, **options))
    if message is None:
        runner.train()
    else:
        with rejects(message):
            runner.train()
    saved = [path.name for path in Path('run').iterdir() if path.name.startswith(('epoch', 'last'))]
    if message is None and get_rank() == 0:
        assert {'epoch_3.pth', 'last_checkpoint'} < {*saved}
    else:
        assert not saved


WITHOUT_VALIDATION = {
    'val_dataloader': None,
    'val_cfg': None,
    'val_evaluator': None,
    'default_hooks.checkpoint.save_best': None,
}
SHARDED = {'sharding': {}, 'launcher': 'pytorch'}
# Options of the run, and the error that it raises, if any.
CASES = {
    'sharded': (
        SHARDED,
        r'rank 1 does not see in .* give a --work-dir on a disk that all machines',
    ),
    'folders': (
        {'launcher': 'pytorch', 'default_hooks.checkpoint.format': 'folder'},
        r'rank 1 does not see in .* reads back its part of a checkpoint folder; give a --work-dir',
    ),
    'a file of rank 0': ({**SHARDED, 'default_hooks.checkpoint.format': 'file'}, None),
}


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    'name', ['sharded', 'folders', pytest.param('a file of rank 0', marks=pytest.mark.nightly)]
)
def test_run_that_needs_a_shared_disk_raises_without_one(tmp_path, monkeypatch, name):
    monkeypatch.setenv('LOCAL_RANK', '0')
    for rank in (0, 1):
        (tmp_path / f'machine_{rank}').mkdir()
    on_ranks(2, tmp_path, train_without_shared_disk, tmp_path, *CASES[name])
