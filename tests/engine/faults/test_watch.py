"""Ranks that are dead or hang: who is named, and what ends."""

import multiprocessing
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from vit_plugin.engine import WatchHook, processes
from vit_plugin.engine.faults import watch
from vit_plugin.engine.faults.places import Patience
from vit_plugin.engine.faults.watch import Watch
from vit_plugin.errors import ConfigError


def rank_of_two(rank: int, folder: str, port: int, act: Callable[[Watch], None]) -> None:
    """Join a run with another process, and act. All that is said goes to a file."""
    os.setsid()  # as launchers do
    torch.set_num_threads(1)
    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port), SLURM_PROCID=str(rank), SLURM_NTASKS='2',
                      SLURM_LOCALID=str(rank))
    os.environ.pop('TORCHELASTIC_USE_AGENT_STORE', None)
    processes._server.clear()
    watch.BEAT, watch.LOST = 0.2, 1.

    def say(sentence: str, *_: object) -> None:
        with open(Path(folder, 'said'), 'a') as file:
            file.write(f'{sentence}\n')

    watch.print_log = say
    processes.meet('slurm', dict(dist_cfg=dict(timeout=20)))
    act(Watch(Patience(step=3., other=3.), silence=2.))


def works(alone: Watch, steps: int = 200) -> None:
    for step in range(1, steps + 1):
        alone.move(step, 'loading')
        alone.move(step, 'step')
        torch.distributed.all_reduce(torch.ones(1))
        time.sleep(0.02)


def works_until(alone: Watch, rank: int, number: int) -> None:
    """Take steps, then get a signal after all have told where they are."""
    works(alone, 4)
    time.sleep(1)
    if alone.rank == rank:
        os.kill(os.getpid(), number)
    try:
        works(alone)
    except RuntimeError as error:
        alone.fail(error)
    os._exit(7)  # only if nothing has ended it


def is_stopped(alone: Watch) -> None:
    works_until(alone, 1, signal.SIGSTOP)


def serves_and_is_stopped(alone: Watch) -> None:
    works_until(alone, 0, signal.SIGSTOP)


def is_killed(alone: Watch) -> None:
    works_until(alone, 1, signal.SIGKILL)


def serves_and_is_killed(alone: Watch) -> None:
    works_until(alone, 0, signal.SIGKILL)


def does_not_load(alone: Watch) -> None:
    alone.move(4, 'loading')
    if alone.rank == 1:
        time.sleep(60)
    alone.move(4, 'step')
    torch.distributed.all_reduce(torch.ones(1))


def fails(alone: Watch) -> None:
    if alone.rank == 1:
        alone.fail(ValueError('its own'))
        os._exit(3)
    time.sleep(60)


def loses_its_launcher(alone: Watch) -> None:
    if alone.rank == 1:
        alone._launcher = 1
    works(alone)


def ends(alone: Watch) -> None:
    time.sleep(0.5 * alone.rank)
    alone.leave()


@pytest.mark.parametrize(('act', 'statuses', 'said'), [
    (is_stopped, (1, -9), 'Rank 1 (process {1} on {host}), last in step 4: gave no sign of life for 2 s.'),
    (serves_and_is_stopped, (-9, 1), 'Rank 0 (process {0} on {host}), last in step 4: gave no sign of life for'),
    (is_killed, (1, -9), 'Rank 1 (process {1} on {host}), last in step 4: gave no sign of life for 1 s.'),
    (serves_and_is_killed, (-9, 1), 'Rank 0 (process {0} on {host}), last in step 4: gave no sign of life for'),
    (does_not_load, (1, 1), 'Rank 1 (process {1} on {host}), last loading the batch of step 4: came no further for'),
    (fails, (1, 3), ''),
    (loses_its_launcher, (1, 1), 'The launcher of this process has ended, so it ends too.'),
    (ends, (0, 0), ''),
])
def test_a_run_ends_with_one_sentence(tmp_path, act, statuses, said):
    with socket.socket() as listener:
        listener.bind(('127.0.0.1', 0))
        port = listener.getsockname()[1]
    context = multiprocessing.get_context('fork')
    ranks = [context.Process(target=rank_of_two, args=(rank, str(tmp_path), port, act)) for rank in range(2)]
    for rank in ranks:
        rank.start()
    try:
        for rank in ranks:
            rank.join(30)
        ends = tuple(rank.exitcode for rank in ranks)
        assert ends[0] == statuses[0]
        assert ends[1] in (statuses[1], -9 if said else statuses[1])  # a process that hangs may be killed first
    finally:
        for rank in ranks:
            rank.kill()
    lines = (tmp_path / 'said').read_text().splitlines() if (tmp_path / 'said').exists() else []
    assert len(lines) == bool(said), lines
    assert not said or lines[0].startswith(said.format(*(rank.pid for rank in ranks), host=socket.gethostname()))


def test_wrong_settings_are_a_sentence():
    with pytest.raises(ConfigError, match='WatchHook: silence=0 must be a finite number above 0'):
        WatchHook(silence=0)
