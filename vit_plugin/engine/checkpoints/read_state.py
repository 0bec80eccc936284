"""Read a checkpoint folder by all ranks together through torch's DCP.

DCP plans what each rank reads, so that any number of ranks, sharded or not, can resume from any
other.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import Tensor, nn
from torch.distributed.checkpoint import HuggingFaceStorageReader
from torch.distributed.tensor import DTensor

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.weights.reading.folders import check_complete, read_run
from vit_plugin.weights.reading.plain import join, tensor_names

from ..distributed import from_rank_0
from .folder import silence_single_process_warning


def read_state(
    path: str | Path,
    model: nn.Module,
    parts: Sequence[str] | None,
    group: 'dist.ProcessGroup | None',
    verify: bool = True,
) -> dict[str, Any]:
    """Read parts of a checkpoint for a model. Every rank calls it.

    A tensor that belongs to a sharded parameter and has its shape (its value, its average, its
    state of the optimizer) is sharded in the same way, and each rank reads only its part. Other
    tensors are complete, on the CPU.

    Args:
        path: the folder.
        model: the model, sharded or not.
        parts: the keys of MMEngine's checkpoint dict to read. Those that it lacks are left out.
            None reads all.
        group: see :func:`~vit_plugin.engine.checkpoints.folder.write_folder`.
        verify: whether rank 0 first compares the files with the manifest.

    Raises:
        ConfigError: if the folder is not a complete checkpoint of this version, or if a rank cannot
            read it. It is the same on every rank.
    """

    def read_metadata() -> Any:
        if verify:
            check_complete(path)
        return HuggingFaceStorageReader(str(path)).read_metadata()

    metadata = from_rank_0(read_metadata)
    plain = read_run(path, parts)
    targets = _allocate(tensor_names(plain), metadata.state_dict_metadata, model)
    silence_single_process_warning()
    try:
        dcp.load(
            targets,
            storage_reader=_Reader(path, metadata),
            process_group=group,
            no_dist=group is None,
        )
    except dcp.CheckpointException as error:
        rank, (cause, _) = min(error.failures.items())
        raise ConfigError(
            f'{str(path)!r} cannot be read (rank {rank}: {first_line(cause)}); put it where all '
            'ranks see it.'
        ) from error
    return join(plain, targets)


def _allocate(
    names: Iterable[Sequence[str]], saved: Mapping[str, Any], model: nn.Module
) -> dict[str, Tensor]:
    """Empty tensors to read into, sharded as in :func:`read_state`.

    Args:
        names: where each tensor is, as keys in the checkpoint, and then its name in the files.
        saved: DCP's metadata of each tensor, by its name in the files.
        model: the model.
    """
    sharded = {
        name: parameter.detach()
        for name, parameter in model.named_parameters()
        if isinstance(parameter, DTensor)
    }
    targets = {}
    for *keys, name in names:
        size, dtype = saved[name].size, saved[name].properties.dtype
        # One of the keys may be a parameter's name, as in optimizer.state.NAME.exp_avg.
        plain_names = (key.removeprefix('module.') for key in keys)
        parameter = next((sharded[key] for key in plain_names if key in sharded), None)
        if parameter is not None and parameter.shape == size:
            targets[name] = torch.empty_like(parameter, dtype=dtype)
        else:
            targets[name] = torch.empty(size, dtype=dtype)
    return targets


class _Reader(HuggingFaceStorageReader):
    """torch's reader, but with the headers of all files as rank 0 has read them."""

    def __init__(self, path: str | Path, metadata: Any) -> None:
        super().__init__(str(path))
        self._metadata = metadata

    def read_metadata(self) -> Any:
        return self._metadata
