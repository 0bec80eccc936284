"""Make MMEngine read checkpoints with our reader, which runs no code in them."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch
from mmengine.logging import print_log

from vit_plugin.errors import needed_by

from .opening import open_checkpoint
from .published_run import as_run
from .reading.tensors import find_tensors

with needed_by('vit_plugin'):  # importing it imports OpenCV
    from mmengine.runner import CheckpointLoader


def read_complete(source: str, map_location: str | torch.device | None = None) -> dict[str, Any]:
    """Read a checkpoint for MMEngine's runner, from any source of :func:`open_checkpoint`.

    A checkpoint from MMEngine is returned complete, because resuming needs all of it, and so is a
    published model that a project reads, such as a detector. For other files, only the weights are
    returned.

    Raises:
        ConfigError: see :func:`open_checkpoint`.
    """
    checkpoint = as_run(
        open_checkpoint(source, map_location=map_location or 'cpu', mmap=False), images=False
    )
    content, (weights, _) = checkpoint.content, find_tensors(checkpoint.content)
    state = content.get('state_dict') if isinstance(content, Mapping) else None
    # If the weights are elsewhere, such as in `ema`, MMEngine would not find them.
    if isinstance(state, Mapping) and weights.keys() <= state.keys():
        return dict(content, state_dict=dict(state))
    return dict(checkpoint.weights)


# Add two hubs and two file types to MMEngine's table of readers, without replacing any. MMEngine
# tries patterns in descending order. The pattern for files begins with "~" to be tried before
# `https://`.
CheckpointLoader.register_scheme(
    ['timm://', 'hf://', r'~?(https?://|(?![\w:-]*://)).+\.(npz|safetensors)(#sha256=\w*)?$'],
    read_complete,
    force=True,
)


# MMEngine's own reader, then those of the open contexts in the order in which they were entered.
# The last one is active. Empty outside of all contexts.
_readers: list[staticmethod] = []
_switching = Lock()  # held while the reader is replaced


@contextmanager
def reading_safely(read: Callable[[str, Any], dict[str, Any]] = read_complete) -> Iterator[None]:
    """Within this context, MMEngine uses our reader (``load_from``, ``resume``, ``init_cfg``).

    Our reader runs no code from a file. It accepts the schemes of
    :func:`~vit_plugin.weights.opening.open_checkpoint` and rejects others. Outside the context,
    MMEngine reads as usual. Our tools use this context, and so does the ``init_cfg`` of our
    backbone. Threads may be in it at the same time.

    Some of MMEngine's strategies read without its ``CheckpointLoader`` (DeepSpeed, ColossalAI,
    sharded FSDP). This context does not cover them.

    Args:
        read: the reader, which takes the source and ``map_location``.
    """

    def load_checkpoint(
        filename: str, map_location: Any = None, logger: str = 'current'
    ) -> dict[str, Any]:
        print_log(f'Loads checkpoint safely from: {filename}', logger=logger)
        content = read(str(filename), map_location)
        if isinstance(meta := content.get('meta'), dict):
            # MMEngine's `resume` would run the config as Python, to compare the number of GPUs.
            meta.pop('config', None)
        return content

    safe_reader = staticmethod(load_checkpoint)
    with _switching:
        if not _readers:
            _readers.append(CheckpointLoader.__dict__['load_checkpoint'])
        _readers.append(safe_reader)
        CheckpointLoader.load_checkpoint = safe_reader
    try:
        yield
    finally:
        with _switching:
            _readers.remove(safe_reader)
            CheckpointLoader.load_checkpoint = _readers[-1]
            if len(_readers) == 1:
                _readers.clear()
