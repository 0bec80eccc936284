"""The processes of a run: set up their group, share results of rank 0, and name lost ranks."""

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist
from mmengine.device import get_device
from mmengine.dist import barrier, broadcast_object_list, get_rank, get_world_size, is_main_process
from mmengine.logging import print_log
from mmengine.runner import Runner

from vit_plugin.errors import ConfigError
from vit_plugin.launchers import VARIABLES, set_rank_variables

Result = TypeVar('Result')

DIST_TIMEOUT = 600.0  # seconds; torch's own default is 600 with NCCL and 1800 with gloo
# Part of the timeout for waits on the CPU, so that their error comes before NCCL's watchdog.
PART_OF_TIMEOUT = 0.8
ANSWER_TIMEOUT = 5.0  # seconds that rank 0 waits for the others after a failed collective
# Seconds that the others wait for rank 0, which may wait for its own time-out first.
WAIT_FOR_RANK_0 = 30.0
GRACE = 10.0  # seconds until a launcher ends the other processes after a failure


def read_timeout(env_cfg: Mapping[str, Any] | None) -> float:
    """Seconds that ranks wait for one another, ``env_cfg.dist_cfg.timeout``."""
    return ((env_cfg or {}).get('dist_cfg') or {}).get('timeout') or DIST_TIMEOUT


def dist_settings(env_cfg: Mapping[str, Any]) -> dict[str, Any]:
    """``env_cfg.dist_cfg`` with the time-out, and with the backend as one string, as torch's."""
    settings = {**(env_cfg.get('dist_cfg') or {}), 'timeout': read_timeout(env_cfg)}
    # --cfg-options splits cpu:gloo,cuda:nccl at the comma.
    if isinstance(settings.get('backend'), list):
        settings['backend'] = ','.join(settings['backend'])
    return settings


def init_distributed(launcher: str, env_cfg: Mapping[str, Any] | None) -> None:
    """Read the launcher's environment. On a CPU, also set up torch's process group, with gloo.

    MMEngine sets it up on accelerators only.

    Args:
        launcher: pytorch, slurm or mpi.
        env_cfg: the section of the config. Its ``dist_cfg`` has the ``timeout`` in seconds. An
            ``init_method`` there replaces the address and port in the environment.

    Raises:
        ConfigError: if an environment variable of the launcher is missing.
    """
    if dist.is_initialized():
        return
    settings = (env_cfg or {}).get('dist_cfg') or {}
    set_rank_variables(launcher, settings.get('port'))
    if get_device() == 'cpu':
        dist.init_process_group(
            backend='gloo',
            init_method=settings.get('init_method'),
            timeout=timedelta(seconds=read_timeout(env_cfg)),
            rank=int(os.environ['RANK']),
            world_size=int(os.environ['WORLD_SIZE']),
        )


def missing_ranks(group: 'dist.ProcessGroup', timeout: float) -> str | None:
    """Ranks that do not call this in time, such as ``'1, 3'``, or ``'unknown'``. None if all do.

    Only rank 0 learns of all of them. The others only learn that rank 0 does not answer: ``'0'``.

    Args:
        group: a gloo group. Do not use it after a rank was missing.
        timeout: seconds that rank 0 waits. The others wait as long as the group does.
    """
    try:
        dist.monitored_barrier(group, timedelta(seconds=timeout), wait_all_ranks=True)
    except RuntimeError as error:
        match = re.search(r'Ranks? ([\d, ]+) failed', str(error))
        if match:
            return match[1].strip(' ,')
        return '0' if dist.get_rank() else 'unknown'  # a closed connection does not tell its rank
    return None


@contextmanager
def naming_lost_ranks(runner: Runner) -> Iterator[None]:
    """End this process with status 1 if a collective in this context fails because a rank is gone.

    A collective fails when a connection is lost, or after ``env_cfg.dist_cfg.timeout``. Rank 0 then
    asks all ranks for an answer, and logs which did not answer; if rank 0 is lost, rank 1 logs
    that. The launcher ends the remaining processes, such as a stopped one. NCCL's watchdog ends a
    process that waits on its GPU. All processes enter the context together: it begins with a
    barrier.

    Raises:
        SystemExit: if a rank is gone. If all ranks answer, the error is raised as it is.
    """
    group: Any = None
    if get_world_size() > 1:
        barrier()  # the timeout below also covers the creation of the group
        timeout = min(WAIT_FOR_RANK_0, read_timeout(runner.cfg.get('env_cfg')))
        group = dist.new_group(backend='gloo', timeout=timedelta(seconds=timeout))
    try:
        yield
    except RuntimeError as error:
        if group is None or not (isinstance(error, dist.DistError) or 'gloo' in str(error)):
            raise
        missing = missing_ranks(group, ANSWER_TIMEOUT)
        if missing is None:
            raise
        if missing == 'unknown':
            who = 'A rank has ended; its own log or that of the launcher says which'
        elif get_rank() == 0:
            who = (
                f'{"Ranks" if "," in missing else "Rank"} {missing} of {get_world_size()} gave no '
                'answer'
            )
        else:
            who = 'Rank 0 gave no answer: it is lost, or has ended with an error in its own log'
        # The first sentence of torch's message, without its prefix '[file:line] '.
        reason = str(error).splitlines()[0].rpartition('] ')[2].split('. ')[0].rstrip('.')
        if get_rank() < 2:  # rank 1 logs if rank 0 is lost
            print_log(
                f'{who} (iteration {runner.iter + 1}; {reason}). The run ends; continue with '
                '--resume. If a step rightly takes longer, raise env_cfg.dist_cfg.timeout.',
                'current',
                logging.ERROR,
            )
        raise SystemExit(1) from error


def from_rank_0(function: Callable[[], Result]) -> Result:
    """Call a function in rank 0 only. All ranks call this, and return its result or its error.

    Raises:
        Exception: in rank 0, the error of the function.
        ConfigError: in the other ranks, with the text of that error.
    """
    if get_world_size() == 1:
        return function()
    result: Any = None
    error_text: str | None = None
    failure: BaseException | None = None
    if is_main_process():
        try:
            result = function()
        except Exception as error:  # noqa: BLE001  raised below
            failure, error_text = error, str(error) or type(error).__name__
    answer: list[Any] = [result, error_text]
    broadcast_object_list(answer)  # in place
    result, error_text = answer
    if error_text:
        raise failure or ConfigError(error_text)
    return result


def is_first_rank() -> bool:
    """True in the first process, also before the process group exists."""
    # Each launcher has its own variable for the rank; one that is not set is no objection.
    return all(os.environ.get(rank, '0') == '0' for rank, *_ in VARIABLES.values())


def report_with_rank(text: str) -> str:
    """The text of an error to print, with the rank unless it is 0.

    An error while building is the same in all processes, and should be printed once for each
    machine. So in all but the first process of a machine, this waits, and the launcher ends them
    meanwhile. A process that fails alone gets the text after the wait.
    """
    if os.environ.get('LOCAL_RANK', '0') != '0':
        time.sleep(GRACE)
    rank = os.environ.get('RANK', '0')
    size = os.environ.get('WORLD_SIZE', '?')  # a shell may set RANK alone
    return text if rank == '0' else f'rank {rank} of {size}: {text}'
