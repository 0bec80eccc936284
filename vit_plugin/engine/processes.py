"""How the processes of a run find each other, and how they say a sentence once."""

import hashlib
import os
import re
import socket
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import torch.distributed
from mmengine.device import get_device
from torch.distributed import TCPStore

from vit_plugin.errors import ConfigError

TIMEOUT = 600.  # seconds. torch waits 600 with NCCL and 1800 with gloo
PORT = '29500'  # torch's
PAUSE = 0.2  # seconds between two looks
PART_OF_TIMEOUT = 0.8  # for a wait on the host, so that what it finds is said before the watchdog of NCCL ends all
SAYING = 2.  # seconds for all processes to say that they end
# The launchers' names of the rank, the number of processes and the rank on this host.
VARIABLES = {
    'pytorch': ('RANK', 'WORLD_SIZE', 'LOCAL_RANK'),
    'slurm': ('SLURM_PROCID', 'SLURM_NTASKS', 'SLURM_LOCALID'),
    'mpi': ('OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE', 'OMPI_COMM_WORLD_LOCAL_RANK'),
}


def timeout_of(env_cfg: Mapping[str, Any]) -> float:
    """How long ranks wait for one another in seconds, ``env_cfg.dist_cfg.timeout``."""
    return (env_cfg.get('dist_cfg') or {}).get('timeout') or TIMEOUT


def meet(launcher: str, env_cfg: Mapping[str, Any]) -> None:
    """Wait until all processes are there. On a CPU, also set up torch's process group, with gloo.

    MMEngine sets it up on accelerators only. The wait is ours everywhere, because torch's cannot be interrupted and
    does not say who is missing.

    Args:
        launcher: pytorch, slurm or mpi.
        env_cfg: that of the config. Its ``dist_cfg`` has the ``timeout`` in seconds. An ``init_method`` there replaces
            the address and port in the environment, and is left to torch.

    Raises:
        ConfigError: if an environment variable of the launcher is missing, or a process does not come in time.
    """
    if _server or torch.distributed.is_initialized():
        return
    settings = dict(env_cfg.get('dist_cfg') or {})
    read_environment(launcher, settings.get('port'))
    if 'init_method' not in settings:
        _await_all(timeout_of(env_cfg))
    if get_device() == 'cpu':
        place = {name: settings[name] for name in ('init_method', ) if name in settings}
        if place:
            place |= dict(rank=int(os.environ['RANK']), world_size=int(os.environ['WORLD_SIZE']))
        torch.distributed.init_process_group('gloo', timeout=timedelta(seconds=timeout_of(env_cfg)), **place)


def read_environment(launcher: str, port: int | str | None = None) -> None:
    """Give the variables of Slurm or Open MPI torch's names: ``RANK``, ``WORLD_SIZE``, ``MASTER_ADDR`` and so on.

    Args:
        launcher: pytorch, slurm or mpi.
        port: ``MASTER_PORT``. Default: as it is in the environment, or 29500.

    Raises:
        ConfigError: if a variable is missing.
    """
    for ours, theirs in zip(VARIABLES['pytorch'], VARIABLES[launcher], strict=True):
        if theirs not in os.environ:
            raise ConfigError(
                f'--launcher {launcher}: the environment has no {theirs}, so that this process was not started by that '
                'launcher; start with tools/dist_train.sh or tools/slurm_train.sh, or leave --launcher out.')
        os.environ[ours] = os.environ[theirs]
        if not os.environ[ours].isdecimal():
            raise ConfigError(f'{theirs}={os.environ[theirs]!r} must be a whole number; start with '
                              'tools/dist_train.sh or tools/slurm_train.sh.')
    rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
    if rank >= world:
        raise ConfigError(f'{VARIABLES[launcher][0]}={rank} is not below {VARIABLES[launcher][1]}={world}, the number '
                          'of processes; count ranks from 0.')
    os.environ['MASTER_PORT'] = str(port or os.environ.get('MASTER_PORT', PORT))
    if not os.environ['MASTER_PORT'].isdecimal() or not 0 < int(os.environ['MASTER_PORT']) < 2**16:
        raise ConfigError(f'MASTER_PORT={os.environ["MASTER_PORT"]!r} must be a number from 1 to 65535.')
    if launcher == 'slurm' and 'MASTER_ADDR' not in os.environ:
        os.environ['MASTER_ADDR'] = subprocess.run(
            ['scontrol', 'show', 'hostnames', os.environ['SLURM_NODELIST']], check=True, capture_output=True,
            text=True).stdout.split()[0]
    if 'MASTER_ADDR' not in os.environ:
        raise ConfigError(f'--launcher {launcher}: the environment has no MASTER_ADDR; set it to the host of rank 0.')


def shared_store(timeout: float, serve: bool = False) -> TCPStore:
    """A connection of its own to the store of the run, which torchrun or rank 0 serves at ``MASTER_ADDR``.

    Args:
        timeout: of the connection and of each request in seconds.
        serve: whether rank 0 shall serve it, if torchrun does not. It does so until all connections of this process
            are closed, and torch's own process group uses the same one.
    """
    served = os.environ.get('TORCHELASTIC_USE_AGENT_STORE') == 'True'
    return TCPStore(os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']),
                    is_master=serve and not served and os.environ['RANK'] == '0', wait_for_workers=False,
                    multi_tenant=True, timeout=timedelta(seconds=timeout))


def missing_ranks(group: 'torch.distributed.ProcessGroup', timeout: float) -> str | None:
    """Which ranks do not come here in time, such as ``'1, 3'``, or ``'unknown'``; None if all do.

    Every rank calls it. Only rank 0 finds out about all. The others only see that rank 0 does not let them go on.

    Args:
        group: a group of gloo. Do not use it after a rank was missing.
        timeout: seconds that rank 0 waits. The others wait as long as the group does.
    """
    try:
        torch.distributed.monitored_barrier(group, timedelta(seconds=timeout), wait_all_ranks=True)
    except RuntimeError as error:
        found = re.search(r'Ranks? ([\d, ]+) failed', str(error))
        if found:
            return found[1].strip(' ,')
        return '0' if torch.distributed.get_rank() else 'unknown'  # a connection that was closed has no number
    return None


def _attempt() -> str:
    """Tells apart the starts that share torchrun's store.

    A host counts only the crashes of its own processes, so on several hosts the numbers differ. With a store for each
    start, as `tools/torchrun.sh` has it, there is nothing to tell apart.
    """
    shared = os.environ.get('TORCHELASTIC_USE_AGENT_STORE') == 'True'
    return os.environ.get('TORCHELASTIC_RESTART_COUNT', '0') if shared else '0'


def _await_all(timeout: float) -> None:
    deadline = time.monotonic() + timeout
    rank, world = int(os.environ['RANK']), int(os.environ['WORLD_SIZE'])
    place = f'{os.environ["MASTER_ADDR"]}:{os.environ["MASTER_PORT"]}'
    while True:
        with suppress(OSError):
            if rank:  # torch would retry by itself, but it would not hear Ctrl-C meanwhile
                socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), 1).close()
            break
        if time.monotonic() > deadline:
            raise ConfigError(f'Rank 0 did not answer at {place} within {timeout:g} s; start all {world} processes, '
                              'and see that MASTER_ADDR and MASTER_PORT are those of the first host.')
        time.sleep(PAUSE)
    _server[:] = [shared_store(timeout, serve=True)]
    keys = [f'vit_plugin/came/{_attempt()}/{other}' for other in range(world)]
    _server[0].set(keys[rank], '')
    while not _server[0].check(keys):
        if time.monotonic() > deadline:
            missing = [str(other) for other, key in enumerate(keys) if not _server[0].check([key])]
            raise ConfigError(
                f'{"Rank" if len(missing) == 1 else "Ranks"} {", ".join(missing)} of {world} did not come to {place} '
                f'within {timeout:g} s; start all {world} processes, or give env_cfg.dist_cfg.timeout=SECONDS.')
        time.sleep(PAUSE)


_server: list[TCPStore] = []  # kept, because rank 0 serves it to the others


def is_first_to_say(text: str) -> bool:
    """Whether no other process of the run has said the same. In a single process it is true."""
    if not _server and os.environ.get('TORCHELASTIC_USE_AGENT_STORE') != 'True':  # torchrun serves it from the start
        return True
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    key = f'vit_plugin/said/{_attempt()}/{digest}'
    with suppress(RuntimeError):  # where the store has ended, it is better said twice
        store = shared_store(SAYING)
        number, deadline = store.add(key, 1), time.monotonic() + SAYING
        while os.environ['RANK'] == '0' and time.monotonic() < deadline:  # it may serve the store
            if store.add(key, 0) >= int(os.environ['WORLD_SIZE']):
                break
            time.sleep(PAUSE)
        return number == 1
    return True
