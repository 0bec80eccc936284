"""A checkpoint in a safetensors folder, written by all ranks together through torch's DCP.

DCP plans what each rank writes, so that a tensor that several ranks hold is written once. DCP
usually writes pickles. The format here is that of its ``HuggingFaceStorageWriter``. But that writer
rejects tensors that share memory (the buffers of a model and of its average) or are not contiguous
(channels-last), and holds a second copy of a rank's file in memory. So here each rank streams its
file, see :mod:`.safetensors_stream`.
"""

import shutil
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.storage import WriteResult
from torch.futures import Future

from anyfolder.complete import fsync_dir
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.weights.reading.folders import (
    FORMAT,
    MANIFEST,
    RUN,
    VERSION,
    manifest_text,
    read_manifest,
    what_is_wrong,
)
from vit_plugin.weights.reading.plain import to_text

from .safetensors_stream import write_hashed, write_safetensors


def write_folder(
    folder: Path,
    tensors: Mapping[str, Tensor],
    plain: Mapping[str, Any],
    group: 'dist.ProcessGroup | None',
) -> None:
    """Write a checkpoint completely or not at all. Every rank calls it.

    It gets its final name only after every file was read back, if possible by another rank than
    the one that wrote it.

    Args:
        folder: the folder. An existing one is replaced once the new one is complete.
        tensors, plain: see :func:`~vit_plugin.engine.checkpoints.state.split_state`. They must not
            change during the write.
        group: a gloo group used only for checkpoints. None for a single rank.

    Raises:
        ConfigError: if a rank cannot write or read it, the same on every rank. An existing
            checkpoint is unchanged.
    """
    partial = folder.with_name(f'.{folder.name}.saving')
    writer = _Writer(partial, folder, plain)
    silence_single_process_warning()
    try:
        dcp.save(dict(tensors), storage_writer=writer, process_group=group, no_dist=group is None)
        _read_back(folder, writer, group)
        if writer.is_coordinator:
            _rename(partial, folder)
    except dcp.CheckpointException as error:
        shutil.rmtree(partial, ignore_errors=True)
        rank, (cause, _) = min(error.failures.items())
        raise _to_config_error(folder, rank, cause) or error from error
    except (ConfigError, OSError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise _to_config_error(folder, rank=0, cause=error) or error from error


def _read_back(folder: Path, writer: '_Writer', group: 'dist.ProcessGroup | None') -> None:
    """Compare what was written with the plan and the manifest. Each rank reads a part of the files.

    Raises:
        ConfigError: if a rank finds a difference, the same on every rank.
    """
    rank, ranks = (0, 1) if group is None else (dist.get_rank(group), dist.get_world_size(group))
    # Each rank reads the file of the next rank. Sorted by name, `run.json` has the number 0, so
    # rank 0's file has the number 1.
    problem = writer.find_damage(((rank + 2) % ranks, ranks))
    problems: list[Any] = [problem]
    if group is not None:
        problems = [None] * ranks  # filled by `all_gather_object`
        dist.all_gather_object(problems, problem, group)
    for number, problem_of_rank in enumerate(problems):
        if problem_of_rank:
            raise ConfigError(
                f'{str(folder)!r} was written and cannot be read back (rank {number}: '
                f'{problem_of_rank}); {_describe_kept(folder)}: check the disk, and that all ranks '
                'see the same folder there.'
            )


def _rename(partial: Path, folder: Path) -> None:
    """Give a complete folder its final name, replacing an existing one."""
    before = folder.with_name(f'.{folder.name}.before')
    shutil.rmtree(before, ignore_errors=True)
    if folder.exists():
        folder.rename(before)
    partial.rename(folder)
    fsync_dir(folder.parent)
    shutil.rmtree(before, ignore_errors=True)


def _describe_kept(folder: Path) -> str:
    """What remains of the earlier checkpoints after a failed write."""
    if folder.exists():
        return 'the checkpoint that was there is unchanged'
    return 'the ones before are unchanged'


def _to_config_error(folder: Path, rank: int, cause: BaseException) -> BaseException | None:
    """The error to raise for the error of a rank, or None for an error of an unexpected type."""
    if isinstance(cause, OSError):
        return ConfigError(
            f'{str(folder)!r} cannot be written (rank {rank}: {cause.strerror}); '
            f'{_describe_kept(folder)}: make room, or give another path.'
        )
    # Anything but an `Exception`, such as a KeyboardInterrupt, is raised as it is.
    return cause if isinstance(cause, ConfigError) or not isinstance(cause, Exception) else None


class _Writer(HuggingFaceStorageWriter):
    """torch's writer, but it streams and hashes files. Rank 0 adds a file of plain data."""

    def __init__(self, partial: Path, folder: Path, plain: Mapping[str, Any]) -> None:
        super().__init__(str(partial), save_distributed=True)
        self._partial, self._folder, self._plain = partial, folder, plain
        self._planned: dict[str, Any] = {}  # shapes of tensors by name, on rank 0 after `finish`

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        super().set_up_storage_writer(is_coordinator, *args, **kwargs)
        self.is_coordinator = is_coordinator
        if is_coordinator:  # no rank writes before all have passed this point
            if self._folder.is_file() or self._folder.is_symlink():
                raise ConfigError(
                    f'{str(self._folder)!r} cannot be written, since it is not a folder; remove it.'
                )
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial.mkdir(parents=True, exist_ok=True)

    def prepare_local_plan(self, plan: 'dcp.SavePlan') -> 'dcp.SavePlan':
        # The parent would create the folder on every rank. Only rank 0 does, so that writing fails
        # if the folder is not shared.
        return plan

    def prepare_global_plan(self, plans: 'list[dcp.SavePlan]') -> 'list[dcp.SavePlan]':
        return [
            replace(plan, storage_data=f'shard-{number:05}.safetensors')
            for number, plan in enumerate(plans, 1)
        ]

    def write_data(self, plan: 'dcp.SavePlan', planner: 'dcp.SavePlanner') -> Future:
        results = []
        if plan.items:
            file = write_safetensors(
                self._partial / plan.storage_data, plan.items, planner.resolve_data
            )
            results.append(
                WriteResult(plan.items[0].index, file['bytes'], (plan.storage_data, file))
            )
        done: Future = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Any, results: 'list[list[WriteResult]]') -> None:
        """Write ``run.json`` and the manifest, on rank 0 after all ranks have written."""
        files = dict(
            result.storage_data for results_of_rank in results for result in results_of_rank
        )
        files[RUN] = write_hashed(self._partial / RUN, to_text(self._plain).encode())
        meta = self._plain['meta']
        write_hashed(
            self._partial / MANIFEST,
            manifest_text(
                dict(
                    format=FORMAT,
                    version=VERSION,
                    epoch=meta['epoch'],
                    iteration=meta['iter'],
                    files=files,
                )
            ).encode(),
        )
        fsync_dir(self._partial)
        self._planned = {name: tensor.size for name, tensor in metadata.state_dict_metadata.items()}

    def find_damage(self, share: tuple[int, int]) -> str:
        """How a share of the files differs from the manifest, or ''.

        Rank 0 also compares the tensors of all files with the plan. See
        :func:`~vit_plugin.weights.reading.folders.what_is_wrong` for ``share``.
        """
        try:
            files = read_manifest(self._partial)['files']
            if wrong := what_is_wrong(self._partial, files, share):
                return wrong
            if self._planned:
                read: Any = HuggingFaceStorageReader(str(self._partial)).read_metadata()
                for name, size in self._planned.items():
                    if getattr(read.state_dict_metadata.get(name), 'size', None) != size:
                        return f'{name} is missing or not complete'
        except Exception as error:  # noqa: BLE001  the other ranks wait for the answer
            return first_line(error)
        return ''


def silence_single_process_warning() -> None:
    """Silence torch's warning about a single process without a process group."""
    warnings.filterwarnings('ignore', 'torch.distributed is disabled', UserWarning)
