"""Write checkpoints one after another, optionally in the background."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import mmengine.runner
import torch
import torch.distributed as dist
from mmengine.dist import all_gather_object, get_world_size, is_main_process
from torch import Tensor

from anyfolder.complete import replacing
from vit_plugin.errors import ConfigError

from ..distributed import PART_OF_TIMEOUT, from_rank_0, missing_ranks, read_timeout
from ..non_finite import find_non_finite
from ..runtime_info import RuntimeInfoHook
from ..sharding import is_sharded, without_ddp
from .folder import write_folder
from .hook_states import HOOK_STATES
from .state import State, capture_state, on_cpu, split_state

# Seconds to wait for a checkpoint after an error: in a single process, and in one of several, since
# the others may be dead.
WAIT_ALONE, WAIT_WITH_OTHERS = 600.0, 5.0

WriteStep = Callable[[], Any]  # a part of writing a state that is already captured


class Saver:
    """Writes one checkpoint of a run at a time.

    A write in the background is complete after :meth:`finish`. If the process ends before, the
    write ends too, and earlier checkpoints stay.
    """

    def __init__(self, runner: Any) -> None:
        self.runner = runner
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None
        self._stager: Any = None

    @cached_property
    def group(self) -> 'dist.ProcessGroup | None':
        """A gloo group used only for checkpoints, or None for a single rank.

        The writer thread uses it while training uses other groups. All ranks must access this
        property for the first time at the same point, since that creates the group.
        """
        group: Any = dist.new_group(backend='gloo') if get_world_size() > 1 else None
        return group

    def save(
        self,
        out_dir: str,
        filename: str,
        *,
        folder: bool = False,
        background: bool = False,
        on_complete: WriteStep | None = None,
        all_ranks: bool = False,
        url_args: dict[str, Any] | None = None,
        **content: Any,
    ) -> bool:
        """Save the state of the run, if it is finite.

        For a file and an unsharded model, only the main process saves. Others may call it, but need
        not. For a folder, in the background, or with a sharded model, every process calls it.

        Args:
            out_dir: the place of the checkpoint. A URL takes only files, which MMEngine writes, and
                not in the background.
            filename: its name there.
            folder: whether it is a folder to which each process writes its part, instead of a file
                in MMEngine's format.
            background: whether to return before the checkpoint is complete. Errors are then raised
                by :meth:`finish`.
            on_complete: called in the main process once the checkpoint is complete.
            all_ranks: whether all ranks call this, and raise the error of any one. Implied for a
                folder, in the background, and with a sharded model.
            url_args: MMEngine's ``file_client_args`` and ``backend_args`` for a URL.
            **content: see :func:`~vit_plugin.engine.checkpoints.state.capture_state`.

        Returns:
            False only if the state is not finite and ``non_finite='ignore'``.

        Raises:
            ConfigError: if it cannot be written, if a loss or the state is not finite, or if a
                process does not take part in time. An existing checkpoint is unchanged.
        """
        path, main = Path(out_dir, filename), is_main_process()
        is_url, sharded = '://' in str(out_dir), is_sharded(without_ddp(self.runner.model))
        background = background and not is_url
        all_ranks = all_ranks or folder or background or sharded
        if all_ranks:
            self._prepare_to_save(sharded)
        elif not main:
            return True
        self.runner.message_hub.update_info(HOOK_STATES, self.runner.hook_states.capture())
        state = capture_state(self.runner, **content) if main or folder or sharded else {}
        if not self._is_finite(state, all_ranks):
            return False
        if is_url:
            steps = self._plan_url(out_dir, filename, {**(url_args or {}), **content})
        elif folder:
            steps = self._plan_folder(path, state, background)
        else:
            steps = self._plan_file(path, state, background)
        if on_complete and main:
            steps.append(on_complete)
        if not all_ranks:
            _run(steps)
        elif background:
            self._thread = threading.Thread(
                target=self._run_keeping_error, args=(steps,), name='checkpoint', daemon=True
            )
            self._thread.start()
        else:
            self._run_keeping_error(steps)
            self.finish()
        return True

    def _plan_url(self, out_dir: str, filename: str, options: dict[str, Any]) -> list[WriteStep]:
        """The step that writes to a URL. MMEngine captures the state again; ours was checked."""
        save = mmengine.runner.Runner.save_checkpoint
        return [partial(save, self.runner, out_dir, filename, **options)]

    def _plan_folder(self, path: Path, state: State, background: bool) -> list[WriteStep]:
        """The steps that write a folder. In the background, they write copies of the tensors."""
        tensors, plain = split_state(state, is_main_process())
        if background:
            tensors = self._stage(tensors)
        return [partial(write_folder, path, tensors, plain, self.group)]

    def _plan_file(self, path: Path, state: State, background: bool) -> list[WriteStep]:
        """Gather a sharded state, and return the steps that write it in the main process."""
        main = is_main_process()
        state = on_cpu(state, copy=background, keep=main)
        return [partial(write_checkpoint, path, state)] if main else []

    def _is_finite(self, state: State, all_ranks: bool) -> bool:
        """Return whether a state is finite. If all ranks call this, the states of all count.

        Raises:
            ConfigError: if it is not, unless the run ignores that.
        """
        broken = find_non_finite(state, dict(without_ddp(self.runner.model).named_parameters()))
        iteration = state['meta']['iter'] if state else 0
        if all_ranks:
            failures = [answer for answer in all_gather_object((broken, iteration)) if answer[0]]
            broken, iteration = failures[0] if failures else (None, iteration)
        policy = self.runner.find_hook(RuntimeInfoHook) or RuntimeInfoHook()
        return policy.may_save(self.runner, broken, iteration)

    def _prepare_to_save(self, sharded: bool) -> None:
        """Check that losses are finite, and finish the previous checkpoint.

        If the model is sharded, first check that every process has come.
        """
        timeout = PART_OF_TIMEOUT * read_timeout(self.runner.cfg.get('env_cfg'))
        if sharded and self.group is not None:
            self.wait()  # the writer thread uses the group
            # Any other collective would hang on a missing process, or collide with what it does
            # instead.
            if missing := missing_ranks(self.group, timeout):
                raise ConfigError(
                    f'Not every process came to save a checkpoint within {timeout:g} s (missing: '
                    f'{missing}), but each has a part of the sharded model; call '
                    'runner.save_checkpoint in all processes, without is_main_process().'
                )
        if hook := self.runner.find_hook(RuntimeInfoHook):
            hook.check_losses(self.runner)
        self.finish()

    def _stage(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """CPU copies of tensors, unaffected by training. The next checkpoint reuses the memory."""
        if self._stager is not None:
            # torch 2.11 closes a stager after its first use, and a closed one raises a KeyError
            # (pytorch/pytorch#183413).
            with suppress(KeyError):
                return self._stager.stage(tensors)
        self._stager = new_stager()
        return self._stager.stage(tensors)

    def _run_keeping_error(self, steps: list[WriteStep]) -> None:
        try:
            _run(steps)
        except BaseException as error:  # noqa: BLE001  finish() raises it
            self._error = error

    def finish(self) -> None:
        """Wait until the checkpoint is complete. Every process calls it.

        Raises:
            ConfigError: if it cannot be written: rank 0's error on every process, otherwise the
                process's own.
        """
        self.wait()
        error, self._error = self._error, None

        def raise_error() -> None:
            if error:
                raise error

        from_rank_0(raise_error)
        raise_error()  # rank 0 succeeded, and this process may have failed

    def wait(self, seconds: float | None = None) -> None:
        """Wait for the writer thread of this process, at most ``seconds``. None has no limit."""
        if self._thread:
            self._thread.join(seconds)
            if not self._thread.is_alive():
                self._thread = None

    @contextmanager
    def waiting_on_error(self) -> Iterator[None]:
        """Within this context, an error first waits for a checkpoint that is being written."""
        try:
            yield
        except BaseException:
            self.wait(WAIT_ALONE if get_world_size() == 1 else WAIT_WITH_OTHERS)
            raise


def _run(steps: list[WriteStep]) -> None:
    for step in steps:
        step()


def new_stager() -> Any:
    """torch's stager, which copies from the device into reusable memory, pinned for a GPU."""
    from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions

    on_device = torch.cuda.is_available()
    return DefaultStager(
        StagingOptions(
            use_pinned_memory=on_device,
            use_shared_memory=False,
            use_async_staging=False,
            use_non_blocking_copy=on_device,
        )
    )


def write_checkpoint(path: Path, state: State) -> None:
    """Write a state in MMEngine's format, atomically, without a second copy in memory."""
    with replacing(path) as unfinished:
        torch.save(state, unfinished)
