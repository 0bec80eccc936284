"""When a run saves, what it keeps, and where it names the last checkpoint."""

import re
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from mmengine.dist import is_main_process
from mmengine.hooks import CheckpointHook as EagerCheckpointHook
from mmengine.runner import Runner
from pydantic import AfterValidator

from vit_plugin.arguments import as_config_error
from vit_plugin.arguments.fields import OrNever, PositiveInt
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import write_text
from vit_plugin.registry import HOOKS

from ..sharding import is_sharded, unwrapped
from ..step import in_window
from ..work_dir import unseen

MARKER = 'last_checkpoint'
KEPT = 'kept_checkpoints'
BEGAN = 'began'  # when the run began, which its checkpoints have in common
# The hidden names next to what a run writes, see `files.complete.replacing` and
# `folder.write_folder`.
LEFTOVER = re.compile(
    r'\.((epoch|iter)_\d+|best_.+|shared|last_checkpoint|preempted|metrics|results|classes|labels'
    r'|train_batch|val_\w+|learning_curve|confusion_matrix|precision_recall|non_finite_step_\d+)'
    r'\.([0-9a-f]{8}(\.\w+)?|saving|before)'
)


def _with_one_field(template: str) -> str:
    """Reject a template with which the checkpoints of two epochs have the same file name."""
    try:
        names = {template.format(number) for number in (1, 2)}
    except (AttributeError, LookupError, TypeError):
        names = set()
    if len(names) < 2 or any(Path(name).name != name for name in names):
        raise ValueError(
            "Input should be a file name with one place for the number, such as 'epoch_{}.pth'"
        )
    return template


Template = Annotated[str, AfterValidator(_with_one_field)]


@HOOKS.register_module()
class CheckpointHook(EagerCheckpointHook):
    """MMEngine's hook, but there is a complete checkpoint at every moment.

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
            multiple of this, whatever ``max_keep_ckpts`` says.
        background: whether training continues while a checkpoint is written. It needs memory for
            one copy of what this process writes. None does so for folders.
        filename_tmpl: name of a checkpoint, with a place for the number.
        **kwargs: arguments of MMEngine's ``CheckpointHook``.

    Raises:
        ConfigError: if the runner is another, or if a checkpoint cannot be written. The ones before
            stay.
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
        self._position: tuple[int, int] | None = None  # of the last checkpoint of this process
        self._due = False

    def before_train(self, runner: Runner) -> None:
        if not hasattr(runner, 'saver'):
            raise ConfigError(
                'default_hooks.checkpoint: vit_plugin.CheckpointHook needs runner_type='
                f"'vit_plugin.Runner', and the runner is {type(runner).__name__}; set it, or take "
                "type='CheckpointHook'."
            )
        self._folder = self._format == 'folder' or (
            self._format == 'auto' and is_sharded(unwrapped(runner.model))
        )
        if self._folder:
            self.filename_tmpl = self.filename_tmpl.removesuffix('.pth')
        info, resumed = runner.message_hub.runtime_info, runner._resume
        runner.message_hub.update_info(BEGAN, (resumed and info.get(BEGAN)) or runner.timestamp)
        folder = self.folder_of(runner.work_dir)
        for name in [name for name in info if resumed and name.startswith('best_ckpt')]:
            if info[name]:  # the folder may have been moved since
                moved = folder.rstrip('/') + '/' + Path(info[name]).name
                runner.message_hub.update_info(name, moved)
        super().before_train(runner)
        if '://' in str(self.out_dir) and (self._folder or is_sharded(unwrapped(runner.model))):
            raise ConfigError(
                f'default_hooks.checkpoint: out_dir={self.out_dir!r} takes only files '
                "(format='file'), of models that are not sharded; give a path."
            )
        if '://' not in str(self.out_dir):
            self._check_shared(runner)
        kept = runner.message_hub.runtime_info.get(KEPT, ())
        self._kept = [name for name in kept if self._is_own(name)]
        if is_main_process():
            if outdated := self._outdated():  # a kill came before the marker was written
                last = self.file_backend.join_path(self.out_dir, self._kept[-1])
                write_text(Path(runner.work_dir, MARKER), last)
                self._delete(outdated)
            _remove_leftovers({str(runner.work_dir), str(self.out_dir)})
        window = getattr(runner.optim_wrapper, '_accumulative_counts', 1)
        if self.by_epoch and len(runner.train_dataloader) % window:
            runner.logger.warning(
                f'optim_wrapper.accumulative_counts={window} does not divide the '
                f'{len(runner.train_dataloader)} iterations of an epoch, so that a run that is '
                'resumed from its end lacks gradients; give a number that divides them, or save '
                'by iterations with default_hooks.checkpoint.by_epoch=False.'
            )

    def folder_of(self, work_dir: str) -> str:
        """Where the checkpoints of a run with this work directory are, before it trains."""
        if self.out_dir in (None, work_dir):
            return work_dir
        return f'{self.out_dir.rstrip("/")}/{Path(work_dir).name}'

    def _check_shared(self, runner: Runner) -> None:
        """Check that all ranks see the folder of the checkpoints, before the first is lost."""
        which = unseen(self.out_dir)
        if which is None:
            return
        remedy = 'give a --work-dir on a disk that all machines share, at one path'
        if self._folder and is_sharded(unwrapped(runner.model)):
            raise ConfigError(
                f'{which}, and of a sharded model every rank writes a part of a checkpoint; '
                f"{remedy}, or default_hooks.checkpoint.format='file', which rank 0 writes."
            )
        runner.logger.warning(
            f'{which}. It writes all checkpoints, and --resume must read them in all ranks: '
            f'{remedy}, or copy them before you resume.'
        )

    def after_train_iter(
        self, runner: Runner, batch_idx: int, data_batch: Any = None, outputs: dict | None = None
    ) -> None:
        if self.by_epoch:
            return
        self._due = (
            self._due
            or self.every_n_train_iters(runner, self.interval, self.save_begin)
            or (self.save_last and self.is_last_train_iter(runner))
        )
        if self._due and not in_window(runner.optim_wrapper):
            self._due = False
            runner.logger.info(f'Saving checkpoint at {runner.iter + 1} iterations')
            self._save_checkpoint(runner)

    def save_now(self, runner: Runner) -> str:
        """Save the state after the current iteration, even within an epoch, and wait until done.

        Every process calls it, in ``after_train_iter`` and after the hook that steps the schedules.

        Returns:
            The path of the checkpoint, which ``last_checkpoint`` names now. Of an earlier one, or
            '', if this state is not finite, and the run is to ignore that.
        """
        if self._position != (runner.epoch, runner.iter + 1):
            end = '' if self._folder else '.pth'
            self._save(
                runner,
                f'iter_{runner.iter + 1}{end}',
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
        undo = self._undoing(runner)
        self._position = meta['epoch'], meta['iter']
        self._kept = [*(one for one in self._kept if one != name), name]
        self.last_ckpt = self.file_backend.join_path(self.out_dir, name)
        runner.message_hub.update_info(KEPT, self._kept)
        runner.message_hub.update_info('last_ckpt', self.last_ckpt)
        outdated, path = self._outdated(), self.last_ckpt
        self._kept = [one for one in self._kept if one not in outdated]

        def settle() -> None:
            write_text(Path(runner.work_dir, MARKER), path)
            self._delete(outdated)

        if not self._write(
            runner,
            name,
            meta,
            settle,
            save_optimizer=self.save_optimizer,
            save_param_scheduler=self.save_param_scheduler,
        ):
            undo()

    def _undoing(self, runner: Runner) -> Callable[[], None]:
        """Return what forgets the names of a checkpoint that is then not written."""
        info, own = runner.message_hub.runtime_info, dict(vars(self))
        known = dict(info)

        def undo() -> None:
            self.__dict__.update(own)
            info.clear()
            info.update(known)

        return undo

    def _write(
        self,
        runner: Runner,
        name: str,
        meta: dict[str, int],
        then: Callable[[], None],
        **content: bool,
    ) -> bool:
        saved: bool = runner.saver.save(
            self.out_dir,
            name,
            folder=self._folder,
            then=then,
            together=True,
            background=self._folder if self._background is None else self._background,
            remote=dict(file_client_args=self.file_client_args, backend_args=self.backend_args),
            meta=dict(meta),
            by_epoch=self.by_epoch,
            **content,
        )
        return saved

    def _is_own(self, name: str) -> bool:
        """True if a run gives this name, which the checkpoint says that it was resumed from."""
        end = self.filename_tmpl.removesuffix('.pth')
        return Path(name).name == name and any(
            name.removesuffix('.pth').endswith((end.format(int(number)), f'iter_{number}'))
            for number in re.findall(r'\d+', name)
        )

    def _outdated(self) -> list[str]:
        """The names of the checkpoints to delete, oldest first."""
        if self.max_keep_ckpts <= 0:
            return []
        old = self._kept[: -self.max_keep_ckpts]
        kept = {
            self.filename_tmpl.format(int(number))
            for name in old
            for number in re.findall(r'\d+', name)
            if self._keep_every and int(number) % self._keep_every == 0
        }
        return [name for name in old if name not in kept]

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            path = self.file_backend.join_path(self.out_dir, name)
            if self.file_backend.isfile(path):
                self.file_backend.remove(path)
            elif self.file_backend.isdir(path):
                self.file_backend.rmtree(path)

    def _save_best_checkpoint(self, runner: Runner, metrics: dict[str, Any]) -> None:
        """Save the weights if a metric improves, then delete the previous best ones.

        The last checkpoint is not written again to note the score. A run that is resumed from it
        validates again.
        """
        if not self.save_best:
            return
        if 'auto' in self.key_indicators:
            self._init_rule(self.rules, [next(iter(metrics))])
        step, unit = (runner.epoch, 'epoch') if self.by_epoch else (runner.iter, 'iter')
        for key, rule in zip(self.key_indicators, self.rules, strict=True):
            if key not in metrics:
                raise ConfigError(
                    f'default_hooks.checkpoint.save_best={key!r} is none of the metrics, which are '
                    f"{', '.join(metrics)}; choose one of them or 'auto'."
                )
            info = runner.message_hub.runtime_info
            end = f'_{key}' * (len(self.key_indicators) > 1)
            score, best = metrics[key], info.get(f'best_score{end}', self.init_value_map[rule])
            if score is None or not self.is_better_than[key](score, best):
                continue
            name = f'best_{key}_{self.filename_tmpl.format(step)}'.replace('/', '_')
            path = self.file_backend.join_path(self.out_dir, name)
            before, undo = info.get(f'best_ckpt{end}'), self._undoing(runner)
            former = Path(before).name if before else name
            outdated = [former] if former != name and self._is_own(former) else []
            if end:  # for MMEngine's publishing at the end
                self.best_ckpt_path_dict = {**self.best_ckpt_path_dict, key: path}
            else:
                self.best_ckpt_path = path
            runner.message_hub.update_info(f'best_score{end}', score)
            runner.message_hub.update_info(f'best_ckpt{end}', path)
            if not self._write(
                runner,
                name,
                dict(epoch=runner.epoch, iter=runner.iter),
                partial(self._delete, outdated),
                save_optimizer=False,
                save_param_scheduler=False,
            ):
                undo()
                continue
            runner.logger.info(
                f'The best checkpoint with {score:0.4f} {key} at {step} {unit} is saved to {name}.'
            )


def _remove_leftovers(folders: set[str]) -> None:
    """Remove what killed writers left behind. Only this run trains here, see `work_dir`."""
    for folder in (Path(folder) for folder in folders if '://' not in folder):
        for path in folder.glob('.*'):
            if not LEFTOVER.fullmatch(path.name):
                continue
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)
