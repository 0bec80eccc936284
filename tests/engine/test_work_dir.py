"""A work directory has one training at a time, and sharded ranks share it."""

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
from vit_plugin.engine.work_dir import OWNER, alone_in, blind_rank


def train(folder: Path, ready: Event, with_child: bool) -> None:
    """Hold the folder, as a training does, and maybe as its data worker after it."""
    with alone_in(folder):
        if with_child and not os.fork():
            time.sleep(1)
            os._exit(0)
        ready.set()
        time.sleep(60)


@contextmanager
def another_run(folder: Path, with_child: bool = False) -> Iterator[Process]:
    """Another process that trains there."""
    ready = multiprocessing.Event()
    process = Process(target=train, args=(folder, ready, with_child))
    process.start()
    assert ready.wait(60)
    yield process
    process.kill()
    process.join()


def test_a_second_run_is_told_who_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr('vit_plugin.engine.work_dir.PATIENCE', 0.5)
    with another_run(tmp_path) as other:
        with (
            rejects(rf'A run is already training in .* \(process {other.pid} on .*, since .*\)'),
            alone_in(tmp_path),
        ):
            pass
        other.kill()
        other.join()
        with alone_in(tmp_path):  # a dead run holds nothing
            assert str(os.getpid()) in (tmp_path / OWNER).read_text()
    assert not list(tmp_path.iterdir())


def test_the_workers_of_a_killed_run_are_waited_for(tmp_path):
    with another_run(tmp_path, with_child=True) as other:
        other.kill()
        other.join()
        with alone_in(tmp_path):
            pass


def test_within_itself_the_outer_one_counts(tmp_path):
    """A command locks the folder before its runner does."""
    with alone_in(tmp_path):
        with alone_in(tmp_path):
            pass
        assert (tmp_path / OWNER).is_file()
    assert not list(tmp_path.iterdir())


def test_before_a_folder_is_a_runs_own_nothing_is_written_there(
    tmp_path, monkeypatch, digits_config
):
    """Also without the command's lock, as in the frameworks' own train.py, but for a log."""
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
        assert {path: path.read_bytes() for path in before} == before


def test_the_config_that_a_run_leaves_moves_with_its_folder(tmp_path, digits_config):
    digits_config.merge_from_dict({'launcher': 'none', 'train_cfg.max_epochs': 1})
    with training_runner(digits_config) as runner:
        runner.train()
    Path(runner.work_dir).rename(tmp_path / 'moved')
    path = tmp_path / 'moved' / Path(digits_config.filename).name
    assert read_config(path).work_dir == str(tmp_path / 'moved')


def test_it_is_free_after_an_error(tmp_path):
    with pytest.raises(ZeroDivisionError), alone_in(tmp_path):
        print(1 / 0)
    with alone_in(tmp_path):
        pass


def test_a_file_system_without_locks_is_said(tmp_path, monkeypatch):
    def reject(*args: object) -> None:
        raise OSError(37, 'No locks available')

    monkeypatch.setattr(fcntl, 'flock', reject)
    with alone_in(tmp_path):
        pass
    assert not (tmp_path / OWNER).exists()


def see(folder: Path, shared: bool) -> None:
    work_dir.SIGHT = 60.0 if shared else 0.5
    own = folder if shared else folder / f'of_{get_rank()}'
    found = blind_rank(own)
    if shared:
        assert found is None
    else:
        assert f"rank 1 does not see in '{folder / 'of_1'}' of " in found
        assert f"what rank 0 writes in '{folder / 'of_0'}' of " in found
    if get_rank() == 0:
        assert not [*folder.rglob('.shared*')]


@pytest.mark.parametrize('shared', [True, False])
def test_ranks_find_out_whether_they_share_a_folder(tmp_path, shared):
    on_ranks(2, tmp_path, see, tmp_path, shared)


def train_apart(folder: Path, options: dict, message: str | None) -> None:
    """A run of two ranks on machines with folders of their own."""
    work_dir.SIGHT = 0.5
    os.chdir(folder / f'machine_{get_rank()}')
    more = {'train_dataloader.batch_size': 8, 'custom_hooks': [], **WITHOUT_VALIDATION}
    runner = build(tiny_cfg('run', **more, **options))
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
APART = {
    'sharded': (
        SHARDED,
        r'rank 1 does not see in .* give a --work-dir on a disk that all machines',
    ),
    'a file of rank 0': ({**SHARDED, 'default_hooks.checkpoint.format': 'file'}, None),
}


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(
    'name', ['sharded', pytest.param('a file of rank 0', marks=pytest.mark.nightly)]
)
def test_a_sharded_run_ends_before_it_saves_what_nobody_can_read(tmp_path, monkeypatch, name):
    monkeypatch.setenv('LOCAL_RANK', '0')
    for rank in (0, 1):
        (tmp_path / f'machine_{rank}').mkdir()
    on_ranks(2, tmp_path, train_apart, tmp_path, *APART[name])
