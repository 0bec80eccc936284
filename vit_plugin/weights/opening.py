"""Open a checkpoint: a file, an address, or a name in a hub. No code in it is run."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from vit_plugin.errors import ConfigError, naming, needed_by

from .downloads import cached_path, download, removed_if_damaged
from .hub import TIMM_SCHEME, download_hugging_face, download_timm
from .hub_files import configs_next_to, read_own_meta, weights_in
from .lora import merge_adapters
from .reading.files import read_checkpoint
from .reading.lazy import Weights
from .reading.size_checks import check_weight_limit
from .reading.tensors import find_tensors

with needed_by('vit_plugin'):  # it imports OpenCV
    from mmengine.runner import (
        get_deprecated_model_names,
        get_external_models,
        get_torchvision_models,
    )


@dataclass(frozen=True)
class Checkpoint:
    """An open checkpoint.

    Attributes:
        source: its source, as the user wrote it.
        content: the whole content: the dict that a training saved, or tensors by name. See
            ``weights`` for the tensors alone.
        hub_configs: the configs next to weights in a hub folder, by file name without
            suffix.
        path: the local file or folder; None for the name of a timm model.
    """

    source: str
    content: Any
    hub_configs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    path: Path | None = None

    @cached_property
    def weights(self) -> Weights:
        """The weights by their own names, with LoRA's adapters merged into them.

        Raises:
            ConfigError: see :func:`~vit_plugin.weights.reading.tensors.find_tensors` and
                :func:`~vit_plugin.weights.lora.merge_adapters`, and if there are too many tensors.
        """
        with naming(self.source):
            weights, meta = find_tensors(self.content)
            check_weight_limit(self.source, 'tensors', len(weights))
            return merge_adapters(weights, meta)

    @property
    def meta(self) -> Mapping[str, Any]:
        """The ``meta`` that MMEngine saves with the weights, or {} without one.

        Raises:
            ConfigError: if it is not a dict.
        """
        return self._dict(self.content, 'meta')

    @property
    def dataset_meta(self) -> Mapping[str, Any]:
        """Facts about the data of the training, such as the names of the ``classes``.

        Raises:
            ConfigError: if they are not a dict.
        """
        return self._dict(self.meta, 'dataset_meta')

    def _dict(self, content: Any, name: str) -> Mapping[str, Any]:
        """The dict under a name, or {} if there is none."""
        entry = content.get(name) if isinstance(content, Mapping) else None
        if not isinstance(entry, Mapping | None):
            raise ConfigError(
                f'The checkpoint {self.source!r} has a {type(entry).__name__} as {name}, where a '
                f'dict is expected; save it again without {name}.'
            )
        return {} if entry is None else entry


Source = str | Path | Checkpoint | Weights


def read_source(source: Source) -> tuple[str, Weights]:
    """The source of weights, if known, and the weights.

    Args:
        source: a checkpoint or its source; or tensors by name, which are returned unchanged.

    Raises:
        ConfigError: see :func:`open_checkpoint`.
    """
    if isinstance(source, Mapping):
        return '', source
    checkpoint = source if isinstance(source, Checkpoint) else open_checkpoint(source)
    return checkpoint.source, checkpoint.weights


def open_checkpoint(source: str | Path, **kwargs: Any) -> Checkpoint:
    """Open a checkpoint at a path, ``http(s)://``, ``timm://<model>`` or ``hf://<org>/<model>``.

    Tensors are read lazily, if the file allows it. For URLs see
    :func:`~vit_plugin.weights.downloads.download`.

    Args:
        source: the path, address or name.
        kwargs: see :func:`~vit_plugin.weights.reading.files.read_checkpoint`.

    Raises:
        ConfigError: if it cannot be found or read.
    """
    source = str(source)
    if source.startswith(TIMM_SCHEME):
        return Checkpoint(source, download_timm(source.removeprefix(TIMM_SCHEME)))
    path = _fetch(source)
    with removed_if_damaged(path, source):
        content = read_checkpoint(path, **dict(mmap=True) | kwargs)
    may_have_configs = '://' not in source or source.startswith('hf://')
    hub_configs = configs_next_to(path) if may_have_configs else {}
    if meta := read_own_meta(hub_configs, path):
        content = dict(meta=meta, state_dict=content)
    return Checkpoint(source, content, hub_configs, path)


def _openmmlab_url(name: str) -> str:
    """The URL of a checkpoint that MMEngine lists, maybe by a deprecated name."""
    return get_external_models()[get_deprecated_model_names().get(name, name)]


# MMEngine's schemes for an address, with the functions that resolve them.
ADDRESSES: dict[str, Callable[[str], str]] = {
    'openmmlab': _openmmlab_url,
    'open-mmlab': _openmmlab_url,
    'torchvision': lambda name: get_torchvision_models()[name],
    'modelzoo': lambda name: get_torchvision_models()[name],
}


def may_be_local(source: str) -> bool:
    """False for a URL whose file was not downloaded yet, True for anything else.

    It is True for every name in a hub, since the caches of hubs are not checked.
    """
    scheme, separator, name = source.partition('://')
    if separator and scheme in ADDRESSES:
        with suppress(KeyError):  # a name that MMEngine does not list, which `_fetch` rejects
            return may_be_local(ADDRESSES[scheme](name))
    return scheme not in ('http', 'https') or cached_path(source).exists()


def _fetch(source: str) -> Path:
    """The local file for a path, an address or a name in a hub. Downloads it if necessary."""
    scheme, separator, name = source.partition('://')
    if not separator:
        path = Path(os.path.expanduser(source))  # pathlib's raises for an unknown user
        return weights_in(path) or path
    if scheme in ADDRESSES:
        try:
            return _fetch(ADDRESSES[scheme](name))
        except KeyError as error:
            raise ConfigError(
                f'{source} is not among the checkpoints that MMEngine lists for {scheme}://.'
            ) from error
    if scheme in ('http', 'https'):
        return download(source)
    if scheme == 'hf':
        return download_hugging_face(name)
    raise ConfigError(
        f'The checkpoint {source} is at {scheme}://, which is not read safely; download it and '
        f'give its path. Supported are http, https, hf, timm, {", ".join(ADDRESSES)}.'
    )
