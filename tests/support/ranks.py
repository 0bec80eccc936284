"""Run a function on several ranks: processes that are forked from that of the tests."""

import faulthandler
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.multiprocessing

# In the first backward pass, autograd starts a thread for each kind of device known by then, and
# once it has threads it does not work in a forked process. For the CPU it needs none, but sharding
# a model on the meta device registers more devices. So the first backward pass happens here.
torch.ones(1, requires_grad=True).sum().backward()


def on_ranks(count: int, folder: Path, function: Callable[..., None], *args: Any) -> None:
    """Call ``function(*args)`` in ``count`` processes with a group of gloo.

    An error in one of them is raised here. All processes have ended when this returns.

    Args:
        count: number of processes.
        folder: an empty folder, for the rendezvous.
        function: a function at the top level of a module.
        *args: its arguments.
    """
    try:
        torch.multiprocessing.start_processes(
            _rank, (count, str(folder), function, args), count, start_method='fork'
        )
    except torch.multiprocessing.ProcessExitedException as error:
        trace = (folder / f'crash_of_rank_{error.error_index}.txt').read_text()
        raise RuntimeError(f'{error}\n{trace}') from error


def _rank(rank: int, count: int, folder: str, function: Callable[..., None], args: tuple) -> None:
    # Objects of earlier tests must not be destroyed here: it may need threads, which fork() drops.
    gc.freeze()
    rendezvous = f'file://{folder}/rendezvous_of_{function.__name__}'
    with Path(folder, f'crash_of_rank_{rank}.txt').open('w') as trace:
        faulthandler.enable(trace)
        torch.set_num_threads(1)
        dist.init_process_group('gloo', init_method=rendezvous, rank=rank, world_size=count)
        function(*args)
        dist.barrier()
        dist.destroy_process_group()
