"""A work directory has one training at a time."""

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

from vit_plugin.apps.command_line import build_runner, training_runner
from vit_plugin.config import read_config
from vit_plugin.engine.work_dir import OWNER, alone_in
from vit_plugin.errors import ConfigError


def train(folder: Path, ready: Event, with_child: bool) -> None:
    """Hold the folder, as a training does, and maybe as its data worker after it."""
    with alone_in(folder):
        if with_child and not os.fork():
            time.sleep(3)
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
            pytest.raises(
                ConfigError,
                match=rf'a run is training already \(process {other.pid} on .*, since .*\)',
            ),
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
        begun = time.monotonic()
        with alone_in(tmp_path):
            assert time.monotonic() - begun < 20


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
            pytest.raises(ConfigError, match='a run is training already'),
            training_runner(digits_config),
        ):
            pass
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
        runner = build_runner(digits_config)
        with pytest.raises(ConfigError, match='a run is training already'):
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
