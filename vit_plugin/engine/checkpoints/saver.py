"""Write checkpoints one after another, in the background if asked."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import torch
import torch.distributed as dist
from mmengine.dist import broadcast_object_list, get_world_size
from torch import Tensor

from vit_plugin.errors import ConfigError

from ..processes import missing_ranks

# Seconds that a run that ends in an error waits for its checkpoint. Others of its processes may be dead.
ALONE, TOGETHER = 600., 5.


class Saver:
    """Writes one checkpoint at a time.

    A checkpoint that is written in the background belongs to this object until :meth:`finish`. If the process ends
    without it, the writing ends too, and the checkpoints before it stay.
    """

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._started = False
        self._stager: Any = None

    @cached_property
    def group(self) -> 'dist.ProcessGroup | None':
        """A group of gloo for checkpoints alone, which the thread uses while training uses others. None for one rank.

        Every rank must ask for it for the first time at the same moment.
        """
        group: Any = dist.new_group(backend='gloo') if get_world_size() > 1 else None
        return group

    def stage(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Copies of tensors on the host, which training does not change. The next checkpoint uses their memory again.

        Divided tensors stay so.
        """
        from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
        self.finish()
        on_device = torch.cuda.is_available()
        self._stager = self._stager or DefaultStager(StagingOptions(
            use_pinned_memory=on_device, use_shared_memory=False, use_async_staging=False,
            use_non_blocking_copy=on_device))
        return self._stager.stage(tensors)

    def gather(self, timeout: float) -> None:
        """Wait until every process has come to save.

        Args:
            timeout: seconds to wait.

        Raises:
            ConfigError: if one has not. Other work of the group would wait for it, or meet what it is doing instead.
        """
        if self.group is None:
            return
        self.wait()  # the thread uses the group
        if missing := missing_ranks(self.group, timeout):
            raise ConfigError(
                f'Not every process came to save a checkpoint within {timeout:g} s (missing: {missing}), and of a '
                'sharded model each has a part; call runner.save_checkpoint in all processes, without '
                'is_main_process().')

    def start(self, write: Callable[[], None], background: bool = False) -> None:
        """Finish the checkpoint before, then write this one. Every process calls it, whether it writes or not.

        Args:
            write: writes the checkpoint.
            background: whether to return at once. Errors come with :meth:`finish` then.

        Raises:
            ConfigError: if a checkpoint cannot be written, on every process.
        """
        self.finish()
        self._started = True
        if background:
            self._thread = threading.Thread(target=self._run, args=(write, ), name='checkpoint', daemon=True)
            self._thread.start()
            return
        try:
            write()
        except ConfigError as error:  # other errors are not for the other processes to know
            self._error = error
        self.finish()

    def _run(self, write: Callable[[], None]) -> None:
        try:
            write()
        except BaseException as error:  # noqa: BLE001  finish() raises it
            self._error = error

    def finish(self) -> None:
        """Wait until the checkpoint is whole on all processes.

        Raises:
            ConfigError: if it cannot be written, the same on every process.
        """
        if not self._started:
            return
        self.wait()
        self._started, error, self._error = False, self._error, None
        if get_world_size() > 1:
            said = [str(error) if isinstance(error, ConfigError) else None]
            broadcast_object_list(said)  # from the process that writes files
            error = error or (ConfigError(said[0]) if said[0] else None)
        if error:
            raise error

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the writing in this process alone, at most so many seconds."""
        if self._thread:
            self._thread.join(seconds)
            self._thread = None

    @contextmanager
    def ending(self) -> Iterator[None]:
        """For training: a checkpoint that is being written when an error ends it may become whole."""
        try:
            yield
        except BaseException:
            self.wait(ALONE if get_world_size() == 1 else TOGETHER)
            raise
