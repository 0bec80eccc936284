"""A checkpoint in a safetensors folder, written and read by all ranks together through torch's DCP.

DCP plans: what each rank writes, so that a tensor that several ranks hold is written once, and what
each rank reads, so that any number of ranks, sharded or not, can resume from any other. Its usual
files are pickles. These are in the form of its ``HuggingFaceStorageWriter``, which rejects tensors
that share memory (the buffers of a model and of its average) or are not contiguous (channels-last),
and has a rank's file once more in memory. The writer here streams it, and hashes it on the way.
"""

import hashlib
import json
import os
import shutil
import struct
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.checkpoint.storage import WriteResult
from torch.distributed.tensor import DTensor
from torch.futures import Future

from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import settle_folder
from vit_plugin.weights.reading.folders import (
    FORMAT,
    MANIFEST,
    RUN,
    SHARDS,
    VERSION,
    check_complete,
    manifest_text,
    read_run,
)
from vit_plugin.weights.reading.plain import join, tensor_names, to_text

from ..distributed import from_rank_0

# safetensors' names of the types.
DTYPES = {
    torch.float64: 'F64',
    torch.float32: 'F32',
    torch.float16: 'F16',
    torch.bfloat16: 'BF16',
    torch.int64: 'I64',
    torch.int32: 'I32',
    torch.int16: 'I16',
    torch.int8: 'I8',
    torch.uint8: 'U8',
    torch.bool: 'BOOL',
}


def write_folder(
    folder: Path,
    tensors: Mapping[str, Tensor],
    plain: Mapping[str, Any],
    group: 'dist.ProcessGroup | None',
) -> None:
    """Write a checkpoint completely or not at all. Every rank calls it.

    Args:
        folder: the folder. What is there is replaced once the new one is complete.
        tensors, plain: see :func:`~vit_plugin.engine.checkpoints.state.parts_of`. They must not
            change meanwhile.
        group: a group of gloo for this alone. None if there is one rank.

    Raises:
        ConfigError: if a rank cannot write, the same on every rank. What was there is unchanged.
    """
    partial = folder.with_name(f'.{folder.name}.saving')
    _single_process_is_meant()
    try:
        dcp.save(
            dict(tensors),
            storage_writer=_Writer(partial, folder, plain),
            process_group=group,
            no_dist=group is None,
        )
    except dcp.CheckpointException as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise _one_sentence(folder, error) from error


def _one_sentence(folder: Path, error: 'dcp.CheckpointException') -> BaseException:
    rank, (cause, _) = min(error.failures.items())
    if not isinstance(cause, OSError):
        return (
            cause if isinstance(cause, ConfigError) or not isinstance(cause, Exception) else error
        )
    kept = (
        'the checkpoint that was there is unchanged'
        if folder.exists()
        else 'the ones before are unchanged'
    )
    return ConfigError(
        f'{str(folder)!r} cannot be written (rank {rank}: {cause.strerror}); {kept}: make room, '
        'or give another path.'
    )


class _Writer(HuggingFaceStorageWriter):
    """torch's writer that streams and hashes files. Rank 0 adds the rest and renames the folder."""

    def __init__(self, partial: Path, folder: Path, plain: Mapping[str, Any]) -> None:
        super().__init__(str(partial), save_distributed=True)
        self._partial, self._folder, self._plain = partial, folder, plain

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        super().set_up_storage_writer(is_coordinator, *args, **kwargs)
        if is_coordinator:  # no rank writes before all have been here
            if self._folder.is_file() or self._folder.is_symlink():
                raise ConfigError(
                    f'{str(self._folder)!r} cannot be written, since it is not a folder; remove it.'
                )
            shutil.rmtree(self._partial, ignore_errors=True)
            self._partial.mkdir(parents=True, exist_ok=True)

    def prepare_global_plan(self, plans: 'list[dcp.SavePlan]') -> 'list[dcp.SavePlan]':
        return [
            replace(plan, storage_data=f'shard-{number:05}.safetensors')
            for number, plan in enumerate(plans, 1)
        ]

    def write_data(self, plan: 'dcp.SavePlan', planner: 'dcp.SavePlanner') -> Future:
        results = []
        if plan.items:
            file = _write_safetensors(
                self._partial / plan.storage_data, plan.items, planner.resolve_data
            )
            results.append(
                WriteResult(plan.items[0].index, file['bytes'], (plan.storage_data, file))
            )
        done: Future = Future()
        done.set_result(results)
        return done

    def finish(self, metadata: Any, results: 'list[list[WriteResult]]') -> None:
        """On rank 0, after all ranks have written."""
        files = dict(
            result.storage_data for results_of_rank in results for result in results_of_rank
        )
        files[RUN] = _write(self._partial / RUN, to_text(self._plain).encode())
        meta = self._plain['meta']
        _write(
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
        settle_folder(self._partial)
        before = self._folder.with_name(f'.{self._folder.name}.before')
        shutil.rmtree(before, ignore_errors=True)
        if self._folder.exists():
            self._folder.rename(before)
        self._partial.rename(self._folder)
        settle_folder(self._folder.parent)
        shutil.rmtree(before, ignore_errors=True)


def read_state(
    path: str | Path,
    model: nn.Module,
    parts: Sequence[str] | None,
    group: 'dist.ProcessGroup | None',
    verify: bool = True,
) -> dict[str, Any]:
    """Read parts of a checkpoint for a model. Every rank calls it.

    A tensor that belongs to a sharded parameter and has its shape (its value, its average, its
    state of the optimizer) is sharded in the same way, and each rank reads its part alone. Other
    tensors are complete, on the CPU.

    Args:
        path: the folder.
        model: the model, sharded or not.
        parts: the keys of MMEngine's checkpoint dict to read. Those that it lacks are left out.
            None reads all.
        group: see :func:`write_folder`.
        verify: whether rank 0 first compares the files with the manifest.

    Raises:
        ConfigError: if the folder is not a complete checkpoint of this version, the same on every
            rank.
    """

    def find() -> Any:
        if verify:
            check_complete(path)
        return HuggingFaceStorageReader(str(path)).read_metadata()

    metadata = from_rank_0(find)
    plain = {
        name: value for name, value in read_run(path).items() if parts is None or name in parts
    }
    sharded = {
        name: parameter.detach()
        for name, parameter in model.named_parameters()
        if isinstance(parameter, DTensor)
    }
    targets = {}
    for *keys, name in tensor_names(plain):
        saved = metadata.state_dict_metadata[name]
        own = (key.removeprefix('module.') for key in keys)
        like = next((sharded[key] for key in own if key in sharded), None)
        targets[name] = (
            torch.empty_like(like, dtype=saved.properties.dtype)
            if like is not None and like.shape == saved.size
            else torch.empty(saved.size, dtype=saved.properties.dtype)
        )
    _single_process_is_meant()
    dcp.load(
        targets, storage_reader=_Reader(path, metadata), process_group=group, no_dist=group is None
    )
    return join(plain, targets)


def _single_process_is_meant() -> None:
    """Keep torch from warning that without a process group there is one process."""
    warnings.filterwarnings('ignore', 'torch.distributed is disabled', UserWarning)


class _Reader(HuggingFaceStorageReader):
    """torch's reader, but rank 0 has read the headers of all files, for all ranks."""

    def __init__(self, path: str | Path, metadata: Any) -> None:
        super().__init__(str(path))
        self._metadata = metadata

    def read_metadata(self) -> Any:
        return self._metadata


def _write_safetensors(path: Path, items: list, resolve: Callable[[Any], Any]) -> dict[str, Any]:
    """Write the planned parts of tensors one by one, and hash them on the way."""
    header, offsets, end = {}, {}, 0
    for item in items:
        chunk, name = item.tensor_data.chunk, item.index.fqn
        begin, end = end, end + chunk.sizes.numel() * item.tensor_data.properties.dtype.itemsize
        header[name] = dict(
            dtype=DTYPES[item.tensor_data.properties.dtype],
            shape=list(chunk.sizes),
            data_offsets=[begin, end],
        )
        offsets[name] = dict(saved_offsets=list(chunk.offsets))
    text = json.dumps(
        {'__metadata__': {SHARDS: json.dumps(offsets), 'format': 'pt'}, **header}
    ).encode()
    text += b' ' * (-len(text) % 8)
    blocks = (
        resolve(item).detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
        for item in items
    )
    return _write(path, struct.pack('<Q', len(text)) + text, *blocks)


def _write(path: Path, *blocks: Any) -> dict[str, Any]:
    """Write a file. Returns its facts for the manifest."""
    digest, size = hashlib.sha256(), 0
    with open(path, 'wb') as file:
        for block in blocks:
            file.write(block)
            digest.update(block)
            size += len(block)
        file.flush()
        os.fsync(file.fileno())
    return dict(bytes=size, sha256=digest.hexdigest())
