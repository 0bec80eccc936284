"""Check before the first step that a run can resume from the checkpoints that it will write."""

from pathlib import Path

from mmengine.runner import Runner

from vit_plugin.errors import ConfigError

from ..sharding import is_sharded, without_ddp
from ..work_dir import describe_blind_rank


def check_shared_folder(runner: Runner, out_dir: str | Path, is_folder: bool) -> None:
    """Check that all ranks see the place of the checkpoints. Every rank calls it.

    If only rank 0 writes there, a rank that does not see its folder causes a warning.

    Args:
        runner: the run.
        out_dir: the folder or the URL of the checkpoints.
        is_folder: whether a checkpoint is a folder.

    Raises:
        ConfigError: if ``out_dir`` is a URL and a checkpoint is a folder or the model is sharded,
            or if checkpoints are folders, which every rank reads back, and a rank does not see
            that of rank 0.
    """
    sharded = is_sharded(without_ddp(runner.model))
    if '://' in str(out_dir):
        if is_folder or sharded:
            raise ConfigError(
                f'default_hooks.checkpoint: out_dir={out_dir!r} takes only files '
                "(format='file'), of models that are not sharded; give a path."
            )
        return
    problem = describe_blind_rank(out_dir)
    if problem is None:
        return
    remedy = 'give a --work-dir on a disk that all machines share, at one path'
    if is_folder:
        raise ConfigError(
            f'{problem}, but every rank writes or reads back its part of a checkpoint folder; '
            f"{remedy}, or default_hooks.checkpoint.format='file', which rank 0 writes."
        )
    runner.logger.warning(
        f'{problem}. It writes all checkpoints, and --resume must read them in all ranks: '
        f'{remedy}, or copy them before you resume.'
    )


def warn_of_accumulation(runner: Runner) -> None:
    """Warn if an epoch ends within gradient accumulation: accumulated gradients are not saved."""
    window = getattr(runner.optim_wrapper, '_accumulative_counts', 1)
    length = len(runner.train_dataloader)
    if length % window:
        runner.logger.warning(
            f'optim_wrapper.accumulative_counts={window} does not divide the {length} iterations '
            "of an epoch, so a run that is resumed from an epoch's end lacks gradients; give a "
            'number that divides them, or save by iterations with '
            'default_hooks.checkpoint.by_epoch=False.'
        )
