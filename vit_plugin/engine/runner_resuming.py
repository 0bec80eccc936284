"""Load, resume and save in our runner, see :mod:`.checkpoints`."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from vit_plugin.errors import naming
from vit_plugin.weights.for_mmengine import reading_safely
from vit_plugin.weights.provenance import PROVENANCE_KEY, Provenance, read_record

from .checkpoints.found_checkpoint import has_checkpoints
from .checkpoints.hook import CheckpointHook
from .checkpoints.hook_states import HookStates
from .checkpoints.newest import newest_checkpoint
from .checkpoints.reading import read_for, rejecting_unresumable
from .checkpoints.run_settings import flat_settings
from .checkpoints.saver import Saver
from .console import run_summary
from .distributed import from_rank_0
from .run_provenance import collect_provenance
from .runner_building import BuildingRunner
from .same_ranks import check_same, collect_checkpoint_facts
from .sharding import is_sharded, without_ddp


class ResumableRunner(BuildingRunner):
    """A runner that resumes from the newest complete checkpoint, if it is of the same run.

    Attributes:
        saver: writes the checkpoints.
        hook_states: saves and restores the state of the hooks.
        resuming: whether a checkpoint is being resumed from, not just loaded for its weights.
        checked_checkpoint: the path of the checkpoint that was verified when it was chosen.
    """

    _load_from: str | None
    _resume: bool

    resuming = False
    checked_checkpoint: str | None = None
    _resumed_at: int | None = None

    def register_default_hooks(self, hooks: dict | None = None) -> None:
        self.saver, self.hook_states = Saver(self), HookStates(self)
        super().register_default_hooks(hooks)

    def call_hook(self, fn_name: str, **kwargs: Any) -> None:
        super().call_hook(fn_name, **kwargs)
        if fn_name == 'before_train':
            self.hook_states.begin()

    def load_or_resume(self) -> None:
        """Load or resume from ``load_from``, then log a summary of the run.

        Without ``load_from``, it resumes from the newest checkpoint of the work directory. If there
        is none yet, it starts with the weights of ``begin_from``.
        """
        if is_sharded(without_ddp(self.model)):
            # Created here in all processes, because a hook may save in only some of them.
            _ = self.saver.group
        hook = self.find_hook(CheckpointHook)
        folder = hook.folder_of(self.work_dir) if hook else self.work_dir
        if self._resume and self._load_from is None and not self._has_loaded:
            self._load_from = self.checked_checkpoint = from_rank_0(
                partial(newest_checkpoint, self.work_dir, folder)
            )
            if self._load_from is None:
                self._resume = False
                begin_from = self.cfg.get('begin_from')
                self._load_from = None if self._has_begun_from else begin_from
                start = f'with the weights of {begin_from}' if begin_from else 'from scratch'
                self.logger.info(
                    f'There is no checkpoint in {folder} yet: training starts {start}.'
                )
        if self._load_from and not self._has_loaded:
            check_same(
                collect_checkpoint_facts(self._load_from),
                'put the same file or folder at this path for all ranks, such as on a shared disk',
            )
        super().load_or_resume()
        if self._train_loop is not None and not isinstance(self._train_loop, dict):
            self.logger.info(f'Training:\n{run_summary(self)}')
            if not self._resume and any(map(has_checkpoints, {folder, self.work_dir})):
                self.logger.warning(
                    f'{folder} has checkpoints of an earlier run. This one replaces those '
                    'of the same names, and until its first one is saved, --resume continues that '
                    'run; to keep it, give another --work-dir.'
                )

    def load_checkpoint(
        self, filename: str, map_location: str | Callable = 'cpu', *args: Any, **kwargs: Any
    ) -> Any:
        with naming(filename), reading_safely(partial(read_for, self)):
            checkpoint = super().load_checkpoint(filename, map_location, *args, **kwargs)
        if self.resuming and (
            record := read_record(checkpoint.get('meta', {}).get(PROVENANCE_KEY))
        ):
            self.provenance = record
        return checkpoint

    def resume(
        self,
        filename: str,
        resume_optimizer: bool = True,
        resume_param_scheduler: bool = True,
        map_location: str | Callable = 'cpu',
    ) -> None:
        # `read_for` compares the checkpoint with the optimizer and the schedules, so they are built
        # before it is read.
        self.resuming, self.optim_wrapper = True, self.build_optim_wrapper(self.optim_wrapper)
        if self.param_schedulers:
            self.param_schedulers = self.build_param_scheduler(self.param_schedulers)
        try:
            with rejecting_unresumable(filename):
                super().resume(filename, resume_optimizer, resume_param_scheduler, map_location)
        finally:
            self.resuming = False
        self._resumed_at = self.iter

    def save_checkpoint(
        self,
        out_dir: str,
        filename: str,
        file_client_args: dict | None = None,
        save_optimizer: bool = True,
        save_param_scheduler: bool = True,
        meta: dict | None = None,
        by_epoch: bool = True,
        backend_args: dict | None = None,
    ) -> None:
        """Save the run's state in a file, see :meth:`.checkpoints.saver.Saver.save`.

        MMEngine's method describes the arguments.
        """
        self.saver.save(
            out_dir,
            filename,
            url_args=dict(file_client_args=file_client_args, backend_args=backend_args),
            save_optimizer=save_optimizer,
            save_param_scheduler=save_param_scheduler,
            meta=meta,
            by_epoch=by_epoch,
        )

    @cached_property
    def config_text(self) -> str:
        """The config as text, cached, since formatting takes longer than copying the state."""
        return self.cfg.pretty_text

    @cached_property
    def provenance(self) -> Provenance:
        """The provenance of the run's weights. A resumed run keeps the record of its start."""
        return collect_provenance(self.cfg.to_dict())

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings that determine the run, see :mod:`.checkpoints.run_settings`."""
        return flat_settings(self.cfg)
