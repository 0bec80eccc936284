"""Find weights: in a file, at an address, in timm's or Hugging Face's hub."""

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import torch
from mmengine.logging import print_log
from torch import Tensor

from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.suggestions import closest

from .downloads import download, removed_if_damaged
from .files import LazyArrays, find_tensors, find_weights, read_checkpoint, read_weights
from .hub import CONFIG, WEIGHTS, is_hub_folder, meta_beside

with needed_by('vit_plugin'):  # it imports OpenCV
    from mmengine.runner import (
        CheckpointLoader,
        get_deprecated_model_names,
        get_external_models,
        get_torchvision_models,
    )

HUB_FILES = (WEIGHTS, 'pytorch_model.bin')


def _of_openmmlab(name: str) -> str:
    return get_external_models()[get_deprecated_model_names().get(name, name)]


# MMEngine's schemes that stand for an address, and the functions that find the address.
ADDRESSES: dict[str, Callable[[str], str]] = {
    'openmmlab': _of_openmmlab,
    'open-mmlab': _of_openmmlab,
    'torchvision': lambda name: get_torchvision_models()[name],
    'modelzoo': lambda name: get_torchvision_models()[name],
}


def open_weights(source: str | Path) -> Mapping[str, Tensor]:
    """Read named weights at a path, ``http(s)://``, ``timm://<model>`` or ``hf://<org>/<model>``.

    For URLs see :func:`~vit_plugin.weights.downloads.download`.

    Raises:
        ConfigError: if the weights cannot be found or read.
    """
    if str(source).startswith('timm://'):
        return _from_timm(str(source).removeprefix('timm://'))
    path = _fetched(str(source))
    with removed_if_damaged(path, str(source)):
        return read_weights(path)


def _fetched(source: str) -> Path:
    """The local file for a path, an address or a name in a hub. Downloads it if necessary."""
    scheme, found, rest = source.partition('://')
    if not found:
        path = Path(source).expanduser()
        return path / WEIGHTS if is_hub_folder(path) else path
    if scheme in ADDRESSES:
        try:
            return _fetched(ADDRESSES[scheme](rest))
        except KeyError as error:
            raise ConfigError(
                f'{source} is none of the checkpoints that MMEngine lists for {scheme}://.'
            ) from error
    if scheme in ('http', 'https'):
        return download(source)
    if scheme == 'hf':
        return _from_hugging_face(rest)
    raise ConfigError(
        f'The checkpoint {source} is at {scheme}://, which is not read safely; download it and '
        f'give its path. Known are http, https, hf, timm, {", ".join(ADDRESSES)}.'
    )


@contextmanager
def said_once() -> Iterator[None]:
    """Log only the first of the hub library's retry messages. The error names the reason."""
    logger, said = logging.getLogger('huggingface_hub.utils._http'), list[logging.LogRecord]()

    def is_first(record: logging.LogRecord) -> bool:
        said.append(record)
        return len(said) == 1

    logger.addFilter(is_first)
    try:
        yield
    finally:
        logger.removeFilter(is_first)


@said_once()
def _from_hugging_face(name: str) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError

    for file in HUB_FILES:
        try:
            found = Path(hf_hub_download(name, file))
            if file == WEIGHTS:
                with suppress(EntryNotFoundError):
                    hf_hub_download(name, CONFIG)  # which comes to lie next to it
            return found
        except GatedRepoError as error:
            raise ConfigError(
                f'hf://{name} is gated; accept its licence on https://huggingface.co/{name}, and '
                'log in with hf auth login, or set HF_TOKEN.'
            ) from error
        except Exception as error:  # of the hub, of the library that it asks with, of the disk
            # Without a network the error is an EntryNotFoundError too, and a FileNotFoundError.
            if not isinstance(error, EntryNotFoundError) or isinstance(error, FileNotFoundError):
                raise ConfigError(
                    f'hf://{name} cannot be downloaded ({_reason(error)}); check the name and the '
                    'network, or download it by hand and give its path.'
                ) from error
            if file == HUB_FILES[-1]:
                raise ConfigError(f'hf://{name} has none of {", ".join(HUB_FILES)}.') from error
    raise AssertionError


@said_once()
def _from_timm(name: str) -> Mapping[str, Tensor]:
    import timm

    try:
        return timm.create_model(name, pretrained=True).state_dict()
    except Exception as error:  # as above
        if timm.is_model_pretrained(name):
            raise ConfigError(
                f'timm://{name} cannot be downloaded ({_reason(error)}); check the network, or '
                'download it by hand and give its path.'
            ) from error
        near = timm.list_pretrained(f'*{name.partition(".")[0]}*')[:5] or closest(
            name, timm.list_pretrained(), most=3, cutoff=0.0
        )
        raise ConfigError(
            f'timm://{name} cannot be downloaded ({_reason(error)}); timm has weights for '
            f'{", ".join(near)}, and needs the network for them.'
        ) from error


def _reason(error: Exception) -> str:
    """The first line of what came before the hub's own error, where there is that."""
    text = str(error.__cause__ or error).strip() or type(error).__name__
    return text.splitlines()[0].rstrip('.')


def read_source(source: str, **kwargs: Any) -> Any:
    """All that is in the file at a path, an address or ``hf://``, which is downloaded if necessary.

    Args:
        source: where the file is.
        kwargs: see :func:`~vit_plugin.weights.files.read_checkpoint`.

    Raises:
        ConfigError: see :func:`open_weights`.
    """
    path = _fetched(source)
    with removed_if_damaged(path, source):
        return read_checkpoint(path, **kwargs)


def read_complete(source: str, map_location: str | torch.device | None = None) -> dict[str, Any]:
    """Read a checkpoint for MMEngine's runner, from any source of :func:`open_weights`.

    A checkpoint from MMEngine is returned complete, because resuming needs all of it. For others,
    only the weights are returned.

    Raises:
        ConfigError: see :func:`open_weights`.
    """
    if source.startswith('timm://'):
        return dict(open_weights(source))
    content = read_source(source, map_location=map_location or 'cpu')
    on_a_hub = '://' not in source or source.startswith('hf://')
    if on_a_hub and (meta := meta_beside(_fetched(source))):
        return dict(meta=meta, state_dict=dict(content))
    content = dict(content) if isinstance(content, LazyArrays) else content
    weights, _ = find_tensors(content)
    state = content.get('state_dict') if isinstance(content, Mapping) else None
    return (
        content
        if isinstance(state, Mapping) and weights.keys() <= state.keys()
        else dict(find_weights(content))
    )


# Add two hubs and two kinds of files to MMEngine's table of readers. Nothing is replaced. MMEngine
# tries the greatest pattern first. The pattern for the files begins with "~" so that it is tried
# before `https://`.
CheckpointLoader.register_scheme(
    ['timm://', 'hf://', r'~?(https?://|(?![\w:-]*://)).+\.(npz|safetensors)(#sha256=\w*)?$'],
    read_complete,
    force=True,
)


@contextmanager
def reading_safely(read: Callable[[str, Any], dict[str, Any]] = read_complete) -> Iterator[None]:
    """Within this context, MMEngine uses our reader (``load_from``, ``resume``, ``init_cfg``).

    Our reader runs no code from a file. It accepts the schemes of :func:`open_weights` and rejects
    others. Outside the context, MMEngine reads as usual. Our tools use this context, and so does
    the ``init_cfg`` of our backbone.

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
            # MMEngine's `resume` would run it as Python, to compare the number of GPUs.
            meta.pop('config', None)
        return content

    theirs = CheckpointLoader.__dict__['load_checkpoint']
    CheckpointLoader.load_checkpoint = staticmethod(load_checkpoint)
    try:
        yield
    finally:
        CheckpointLoader.load_checkpoint = theirs
