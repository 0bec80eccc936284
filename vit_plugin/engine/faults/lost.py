"""End a run that has lost a rank with a sentence that names it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch.distributed as dist
from mmengine.dist import barrier, get_rank, get_world_size
from mmengine.logging import print_log
from mmengine.runner import Runner

from ..distributed import missing_ranks, timeout_of

ANSWER = 5.  # seconds in which rank 0 waits for the others
OF_RANK_0 = 30.  # seconds in which the others wait for rank 0, which may wait for its own time-out first


@contextmanager
def naming_lost_ranks(runner: Runner) -> Iterator[None]:
    """Within this context, a collective that fails because a rank is gone ends this process with status 1.

    A collective fails when a connection is lost, or after ``env_cfg.dist_cfg.timeout``. Rank 0 then asks all ranks for
    an answer, and logs which gave none. If it gets none itself, rank 1 says so. The launcher ends what is left, such as
    a stopped process. NCCL's watchdog ends a process that waits on its GPU, without a sentence.

    Every process enters at the same moment.

    Raises:
        SystemExit: if a rank is gone. If all ranks answer, the error is raised as it is.
    """
    group: Any = None
    if get_world_size() > 1:
        barrier()  # the time-out below is also that of making the group
        timeout = min(OF_RANK_0, timeout_of(runner.cfg.get('env_cfg')))
        group = dist.new_group(backend='gloo', timeout=timedelta(seconds=timeout))
    try:
        yield
    except RuntimeError as error:
        if group is None or not (isinstance(error, dist.DistError) or 'gloo' in str(error)):
            raise
        missing = missing_ranks(group, ANSWER)
        if missing is None:
            raise
        if missing == 'unknown':
            who = 'A rank has ended, which its own log or the launcher names'
        elif get_rank() == 0:
            who = f'{"Ranks" if "," in missing else "Rank"} {missing} of {get_world_size()} gave no answer'
        else:
            who = 'Rank 0 gave no answer: it is lost, or has ended and says why in its own log'
        reason = str(error).splitlines()[0].rpartition('] ')[2].split('. ')[0].rstrip('.')
        if get_rank() < 2:
            print_log(
                f'{who} (iteration {runner.iter + 1}; {reason}). The run ends; go on with --resume. What takes longer '
                'by right needs a higher env_cfg.dist_cfg.timeout.', 'current', logging.ERROR)
        raise SystemExit(1) from error
