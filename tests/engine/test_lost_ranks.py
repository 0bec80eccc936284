"""If a rank dies or hangs, the others log which one, and end."""

import logging
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from vit_plugin.engine import distributed
from vit_plugin.engine.distributed import naming_lost_ranks

POSITION = ' (iteration 7; '
ENDED = f'A rank has ended; its own log or that of the launcher says which{POSITION}'
NO_ANSWER = f'Rank 1 of 2 gave no answer{POSITION}'
NO_RANK_0 = (
    f'Rank 0 gave no answer: it is lost, or has ended with an error in its own log{POSITION}'
)


def rank_of_two(rank: int, folder: str, act: Callable[[int], None]) -> None:
    """Join a run with another process, act, and wait for the other. Messages go to a file."""
    torch.set_num_threads(1)
    stops = act in (stop_0, stop_1)  # a stopped rank is noticed only by a time-out
    dist.init_process_group(
        'gloo',
        init_method=f'file://{folder}/rendezvous',
        rank=rank,
        world_size=2,
        timeout=timedelta(seconds=2 if stops else 60),
    )

    def print_log(sentence: str, logger: str, level: int) -> None:
        assert (logger, level) == ('current', logging.ERROR)
        with open(Path(folder, 'messages'), 'a') as file:
            file.write(f'{sentence}\n')

    distributed.print_log, distributed.ANSWER_TIMEOUT = print_log, 1.0 if stops else 30.0
    cfg = dict(env_cfg=dict(dist_cfg=dict(timeout=3 if stops else 60)))
    with naming_lost_ranks(SimpleNamespace(iter=6, cfg=cfg)):
        act(rank)
        dist.all_reduce(torch.ones(1))
    os._exit(0)


# The following functions are values of `act`. Their names end with the rank that fails.


def continue_both(rank: int) -> None:
    pass


def kill_1(rank: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)


def kill_0(rank: int) -> None:
    if rank == 0:
        os.kill(os.getpid(), signal.SIGKILL)


def stop_1(rank: int) -> None:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)


def stop_0(rank: int) -> None:
    if rank == 0:
        os.kill(os.getpid(), signal.SIGSTOP)


def fail_1(rank: int) -> None:
    if rank == 1:
        os._exit(3)  # as after an error of its own


def fail_both(rank: int) -> None:
    """Raise an error of gloo on both ranks, although none is lost."""
    try:
        raise RuntimeError('[gloo] of another kind')
    finally:
        time.sleep(0.2 * rank)


@pytest.mark.filterwarnings('ignore:.*use of fork:DeprecationWarning')
@pytest.mark.parametrize(
    ('act', 'statuses', 'message'),
    [
        (continue_both, [0, 0], ''),
        (fail_both, [1, 1], ''),
        # Either message: the connection may or may not be known to be closed by then.
        (kill_1, [1, -9], (ENDED, NO_ANSWER)),
        (fail_1, [1, 3], (ENDED, NO_ANSWER)),
        pytest.param(stop_1, [1, None], NO_ANSWER, marks=pytest.mark.nightly),
        (kill_0, [-9, 1], NO_RANK_0),
        (stop_0, [None, 1], NO_RANK_0),
    ],
    ids=lambda value: getattr(value, '__name__', ''),
)
def test_other_rank_logs_the_lost_one_and_ends(tmp_path, act, statuses, message):
    context = multiprocessing.get_context('fork')
    ranks = [
        context.Process(target=rank_of_two, args=(rank, str(tmp_path), act)) for rank in range(2)
    ]
    for rank in ranks:
        rank.start()
    try:
        for rank, status in zip(ranks, statuses, strict=True):
            rank.join(0 if status is None else 300)  # a stopped rank would be ended by a launcher
        assert [rank.exitcode for rank in ranks] == statuses
    finally:
        for rank in ranks:
            rank.kill()
    log = tmp_path / 'messages'
    lines = log.read_text().splitlines() if log.exists() else []
    assert len(lines) == bool(message), lines
    assert not message or lines[0].startswith(message), lines


def test_single_process_keeps_its_errors():
    with pytest.raises(RuntimeError, match='gloo'), naming_lost_ranks(SimpleNamespace()):
        raise RuntimeError('gloo')
