"""Run a function on several processes of this machine, which share the imports of the tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

# At the first backward autograd starts a thread for each device that is known then, and with threads it does not run in
# a forked process. On a CPU it needs none, but sharding a model on the meta device makes torch know of more devices.
torch.ones(1, requires_grad=True).sum().backward()


def on_ranks(count: int, folder: Path, function: Callable[..., None], *args: Any) -> None:
    """Call ``function(*args)`` in ``count`` processes with a group of gloo. An error in one of them is raised here.

    Args:
        count: number of processes.
        folder: an empty folder, for the rendezvous.
        function: defined at the top of a module.
        *args: its arguments.
    """
    torch.multiprocessing.start_processes(_rank, (count, str(folder), function, args), count, start_method='fork')


def _rank(rank: int, count: int, folder: str, function: Callable[..., None], args: tuple) -> None:
    torch.set_num_threads(1)
    dist.init_process_group('gloo', init_method=f'file://{folder}/rendezvous_of_{function.__name__}', rank=rank,
                            world_size=count)
    function(*args)
    dist.barrier()
    dist.destroy_process_group()
