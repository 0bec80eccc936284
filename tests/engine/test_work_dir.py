"""A work directory has one training at a time."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from vit_plugin.engine.work_dir import OWNER, alone_in
from vit_plugin.errors import ConfigError

HOLD = (
    'import os, sys, time; from vit_plugin.engine.work_dir import alone_in\n'
    'with alone_in(sys.argv[1]):\n'
    '    if len(sys.argv) > 2 and not os.fork(): time.sleep(3); os._exit(0)\n'
    '    print(flush=True); time.sleep(60)'
)


def hold(folder: Path, *more: str) -> subprocess.Popen:
    """Another process that trains there."""
    process = subprocess.Popen(
        [sys.executable, '-c', HOLD, str(folder), *more], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    return process


def test_a_second_run_is_told_who_is_there(tmp_path):
    with hold(tmp_path) as other:
        with (
            pytest.raises(
                ConfigError,
                match=rf'a run is training already \(process {other.pid} on .*, since .*\)',
            ),
            alone_in(tmp_path),
        ):
            pass
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        with alone_in(tmp_path):  # a dead run holds nothing
            assert str(os.getpid()) in (tmp_path / OWNER).read_text()
    assert not list(tmp_path.iterdir())


def test_the_workers_of_a_killed_run_are_waited_for(tmp_path):
    with hold(tmp_path, 'with a child') as other:
        os.kill(other.pid, signal.SIGKILL)
        other.wait()
        begun = time.monotonic()
        with alone_in(tmp_path):
            assert time.monotonic() - begun < 20


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
