"""The checkpoint hook: when a run saves, what it keeps, and which checkpoint is the last."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from mmengine.dist import is_main_process
from mmengine.hooks import CheckpointHook as EagerCheckpointHook
from mmengine.runner import Runner

from anyfolder.complete import write_text
from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import OrNever, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.registry import HOOKS

from ..sharding import is_sharded, without_ddp
from ..step import is_accumulating
from ..validation_record import to_per_cent
from .found_checkpoint import BEGAN, MARKER
from .retention import Retention, Template, remove_leftovers
from .save_checks import check_shared_folder, warn_of_accumulation

# Key in the runtime information: the names of the run's checkpoints that are not deleted.
KEPT = 'kept_checkpoints'


@HOOKS.register_module()
class CheckpointHook(EagerCheckpointHook):
    """MMEngine's hook, but a complete checkpoint exists at every moment.

    A checkpoint is deleted only after a newer one is complete. The marker ``last_checkpoint`` names
    a checkpoint only once it is complete. A new best checkpoint is written next to the one before,
    and the last checkpoint is left as it is. Accumulated gradients are not saved, so a save by
    iterations waits for the optimizer's next step. :class:`vit_plugin.Runner` uses this hook in
    place of MMEngine's.

    Args:
        interval: epochs or iterations between two checkpoints. -1: none but the last.
        format: ``'file'`` is MMEngine's. ``'folder'`` is a folder of safetensors, which each
            process writes its part of and any number of processes can resume from. ``'auto'`` is a
            folder if the model is sharded.
        keep_every: also keep the checkpoints whose number (of epochs, or of iterations) is a
            multiple of this, regardless of ``max_keep_ckpts``.
        background: whether training continues while a checkpoint is written. It needs memory for a
            copy of what this process writes. None: only for folders.
        filename_tmpl: name of a checkpoint, with a placeholder for the number. A file without a
            suffix gets ``.pth``.
        *args, **kwargs: arguments of MMEngine's ``CheckpointHook``.

    Raises:
        ConfigError: if an argument is invalid, if the runner is not ours, or if a checkpoint cannot
            be written. Earlier checkpoints stay.
    """

    filename_tmpl: str
    best_ckpt_path_dict: dict[str, str]

    def __init__(
        self,
        interval: OrNever = -1,
        *args: Any,
        format: Literal['auto', 'file', 'folder'] = 'auto',
        keep_every: PositiveInt | None = None,
        background: bool | None = None,
        filename_tmpl: Template | None = None,
        **kwargs: Any,
    ) -> None:
        with as_config_error('CheckpointHook'):
            super().__init__(interval, *args, filename_tmpl=filename_tmpl, **kwargs)
        self._format, self._keep_every, self._background = format, keep_every, background
        self._position: tuple[int, int] | None = None  # position of this process's last checkpoint
        self._save_is_due = False  # whether a save waits for the end of gradient accumulation

    def before_train(self, runner: Runner) -> None:
        """Find out where and how to save, and clean up what a killed run left behind."""
        if not hasattr(runner, 'saver'):
            raise ConfigError(
                'default_hooks.checkpoint: vit_plugin.CheckpointHook needs runner_type='
                f"'vit_plugin.Runner', but the runner is {type(runner).__name__}; set it, or use "
                "type='CheckpointHook'."
            )
        self._choose_format(runner)
        info, resumed = runner.message_hub.runtime_info, runner._resume
        runner.message_hub.update_info(BEGAN, (resumed and info.get(BEGAN)) or runner.timestamp)
        if resumed:
            self._update_best_paths(runner)
        super().before_train(runner)
        check_shared_folder(runner, self.out_dir, self._saves_folders)
        self._retention = Retention(self.filename_tmpl, self.max_keep_ckpts, self._keep_every)
        kept = runner.message_hub.runtime_info.get(KEPT, ())
        self._kept = [name for name in kept if self._retention.is_own(name)]
        if is_main_process():
            self._clean_up(runner)
        if self.by_epoch:
            warn_of_accumulation(runner)

    def _choose_format(self, runner: Runner) -> None:
        """Decide between files and folders, and name checkpoints accordingly."""
        self._saves_folders = self._format == 'folder' or (
            self._format == 'auto' and is_sharded(without_ddp(runner.model))
        )
        if self._saves_folders:
            self.filename_tmpl = self.filename_tmpl.removesuffix('.pth')
        elif not Path(self.filename_tmpl.format(1)).suffix:
            self.filename_tmpl += '.pth'  # --resume takes only files with a suffix

    def _update_best_paths(self, runner: Runner) -> None:
        """Update the recorded paths of the best checkpoints: the folder may have been moved."""
        info, folder = runner.message_hub.runtime_info, self.folder_of(runner.work_dir)
        for name in [name for name in info if name.startswith('best_ckpt') and info[name]]:
            moved = folder.rstrip('/') + '/' + Path(info[name]).name
            runner.message_hub.update_info(name, moved)

    def _clean_up(self, runner: Runner) -> None:
        """Delete what a killed run left behind: outdated checkpoints and unfinished files."""
        # A run that was killed before it wrote the marker leaves outdated checkpoints.
        if outdated := self._retention.outdated(self._kept):
            last = self.file_backend.join_path(self.out_dir, self._kept[-1])
            write_text(Path(runner.work_dir, MARKER), last)
            self._delete(outdated)
        remove_leftovers({str(runner.work_dir), str(self.out_dir)}, self._retention)

    def folder_of(self, work_dir: str) -> str:
        """The folder or URL of the checkpoints of a run with this work directory.

        Call it before the training begins: MMEngine then changes ``out_dir``.
        """
        if self.out_dir in (None, work_dir):
            return work_dir
        return f'{str(self.out_dir).rstrip("/")}/{Path(work_dir).name}'

    def after_train_iter(self, runner: Runner, *args: Any, **kwargs: Any) -> None:
        if self.by_epoch:
            return
        self._save_is_due = (
            self._save_is_due
            or self.every_n_train_iters(runner, self.interval, self.save_begin)
            or (self.save_last and self.is_last_train_iter(runner))
        )
        if self._save_is_due and not is_accumulating(runner.optim_wrapper):
            self._save_is_due = False
            runner.logger.info(f'Saving checkpoint at {runner.iter + 1} iterations')
            self._save_checkpoint(runner)

    def save_now(self, runner: Runner) -> str:
        """Save the state after the current iteration, even within an epoch, and wait until done.

        Every process calls it, in ``after_train_iter`` and after the hook that steps the schedules.

        Returns:
            The path of the checkpoint, which ``last_checkpoint`` now names. If the state is not
            finite and the run ignores that, the path of an earlier one, or ''.
        """
        if self._position != (runner.epoch, runner.iter + 1):
            suffix = '' if self._saves_folders else '.pth'
            self._save(
                runner,
                f'iter_{runner.iter + 1}{suffix}',
                dict(epoch=runner.epoch, iter=runner.iter + 1),
            )
        runner.saver.finish()
        return self.last_ckpt or ''

    def after_train(self, runner: Runner) -> None:
        runner.saver.finish()
        super().after_train(runner)

    def _save_checkpoint_with_step(self, runner: Runner, step: int, meta: dict[str, int]) -> None:
        self._save(runner, self.filename_tmpl.format(step), meta)

    def _save(self, runner: Runner, name: str, meta: dict[str, int]) -> None:
        """Save a checkpoint to resume from.

        Once it is complete, name it in the marker and delete outdated checkpoints.
        """
        undo = self._make_undo(runner)
        self._position = meta['epoch'], meta['iter']
        self._kept = [*(kept for kept in self._kept if kept != name), name]
        self.last_ckpt = self.file_backend.join_path(self.out_dir, name)
        runner.message_hub.update_info(KEPT, self._kept)
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
        outdated, path = self._retention.outdated(self._kept), self.last_ckpt
        self._kept = [kept for kept in self._kept if kept not in outdated]

        def complete() -> None:
            write_text(Path(runner.work_dir, MARKER), path)
            self._delete(outdated)

        self._write(runner, name, meta, complete, undo)

    def _make_undo(self, runner: Runner) -> Callable[[], None]:
        """Return a function that restores the hook and the runtime information as they are now.

        A checkpoint is recorded in both before it is written, and it may not be written.
        """
        info, attributes = runner.message_hub.runtime_info, dict(vars(self))
        former_info = dict(info)

        def undo() -> None:
            self.__dict__.update(attributes)
            info.clear()
            info.update(former_info)

        return undo

    def _write(
        self,
        runner: Runner,
        name: str,
        meta: dict[str, int],
        on_complete: Callable[[], None],
        undo: Callable[[], None],
        weights_alone: bool = False,
    ) -> bool:
        """Save a checkpoint, and call ``on_complete`` once it is complete.

        If its state may not be saved, since it is not finite, call ``undo`` and return False.
        ``weights_alone`` leaves out the optimizer and the schedules.
        """
        saved: bool = runner.saver.save(
            self.out_dir,
            name,
            folder=self._saves_folders,
            on_complete=on_complete,
            all_ranks=True,
            background=self._saves_folders if self._background is None else self._background,
            url_args=dict(file_client_args=self.file_client_args, backend_args=self.backend_args),
            meta=dict(meta),
            by_epoch=self.by_epoch,
            save_optimizer=self.save_optimizer and not weights_alone,
            save_param_scheduler=self.save_param_scheduler and not weights_alone,
        )
        if not saved:
            undo()
        return saved

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            path = self.file_backend.join_path(self.out_dir, name)
            if self.file_backend.isfile(path):
                self.file_backend.remove(path)
            elif self.file_backend.isdir(path):
                self.file_backend.rmtree(path)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict[str, Any]) -> None:
        """Save the weights if a metric improves, then delete the previous best ones.

        The last checkpoint is not rewritten to record the score. A run resumed from it validates
        again.
        """
        if not self.save_best:
            return
        if 'auto' in self.key_indicators:
            with as_config_error('default_hooks.checkpoint'):
                self._init_rule(self.rules, [next(iter(metrics))])
        for key, rule in zip(self.key_indicators, self.rules, strict=True):
            if key not in metrics:
                raise ConfigError(
                    f'default_hooks.checkpoint.save_best={key!r} is not one of the metrics, '
                    f"which are {', '.join(metrics)}; choose one of them or 'auto'."
                )
            self._save_if_best(runner, key, rule, metrics[key])

    def _save_if_best(self, runner: Runner, key: str, rule: str, score: float | None) -> None:
        """Save the weights if a metric (``key``) is better than before by its ``rule``."""
        info = runner.message_hub.runtime_info
        # MMEngine's names in the runtime information: a suffix only with several metrics.
        suffix = f'_{key}' if len(self.key_indicators) > 1 else ''
        best = info.get(f'best_score{suffix}', self.init_value_map[rule])
        if score is None or not self.is_better_than[key](score, best):
            return
        number, unit = (runner.epoch, 'epoch') if self.by_epoch else (runner.iter, 'iter')
        name = f'best_{key}_{self.filename_tmpl.format(number)}'.replace('/', '_')
        path = self.file_backend.join_path(self.out_dir, name)
        former = Path(info.get(f'best_ckpt{suffix}') or name).name
        outdated = [former] if former != name and self._retention.is_own(former) else []
        undo = self._make_undo(runner)
        if suffix:  # MMEngine may publish the best checkpoints after the training
            self.best_ckpt_path_dict = {**self.best_ckpt_path_dict, key: path}
        else:
            self.best_ckpt_path = path
        runner.message_hub.update_info(f'best_score{suffix}', score)
        runner.message_hub.update_info(f'best_ckpt{suffix}', path)
        position = dict(epoch=runner.epoch, iter=runner.iter)
        delete = partial(self._delete, outdated)
        if self._write(runner, name, position, delete, undo, weights_alone=True):
            per_cent = to_per_cent({key: score}).get(key, score)
            runner.logger.info(
                f'The best checkpoint with {per_cent:0.4f} {key} at {number} {unit} is saved to '
                f'{name}.'
            )
