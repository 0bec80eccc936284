"""Weights and configs from timm's and Hugging Face's hubs, by the name of a model.

For the files of a model in the format of the latter, see :mod:`~vit_plugin.weights.hub_files`.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from mmengine.logging import print_log
from torch import Tensor

from anyfolder.bounded import read_json
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.suggestions import closest

from .hub_files import (
    CARD,
    HUB_CONFIG,
    HUB_FILES,
    configs_for,
    find_model_folder,
    has_model_config,
    weights_in,
)
from .reading.shards import INDEX, shard_files

TIMM_SCHEME = 'timm://'
TIMM_SCHEMES = (TIMM_SCHEME, 'hf://timm/')  # prefixes of a timm model's name


def timm_name(source: str) -> str | None:
    """The name of a timm model in a source of weights, or None for any other source.

    timm's organization on the hub also has models of OpenCLIP, whose names timm does not know.
    """
    start = next((start for start in TIMM_SCHEMES if source.startswith(start)), None)
    if start is None:
        return None
    name = source.removeprefix(start)
    if start != TIMM_SCHEME:
        from timm.models import is_model  # imported late, since it takes seconds

        return name if is_model(name) else None
    return name


def is_of_hub(name: str) -> bool:
    """True for ``hf://ORG/NAME``, and for a folder in the format of the hub."""
    if not name or name.startswith('hf://'):
        return bool(name)
    return has_model_config(find_model_folder(os.path.expanduser(name)))


def hub_config(source: str) -> Mapping[str, Any]:
    """The entries of the ``config.json`` of a folder or of ``hf://ORG/NAME``.

    Raises:
        ConfigError: if it cannot be read.
    """
    try:
        path = find_model_folder(os.path.expanduser(source)) / HUB_CONFIG
        if source.startswith('hf://'):
            from huggingface_hub import hf_hub_download

            path = Path(hf_hub_download(source.removeprefix('hf://'), HUB_CONFIG))
        content = read_json(path)
    except Exception as error:  # from the hub, the network or the file
        raise ConfigError(
            f'config={source!r}: {HUB_CONFIG} cannot be read ({first_line(error)}); give its '
            'entries, a folder or hf://ORG/NAME.'
        ) from error
    if not isinstance(content, Mapping):
        raise ConfigError(f'config={source!r}: {HUB_CONFIG} has no entries; give another.')
    return content


@contextmanager
def quiet_retries() -> Iterator[None]:
    """Log only the first of the hub library's retry messages, and that more retries may follow.

    If all fail, the error names the reason.
    """
    logger = logging.getLogger('huggingface_hub.utils._http')
    retries: list[logging.LogRecord] = []

    def is_first(record: logging.LogRecord) -> bool:
        retries.append(record)
        record.msg = f'{record.msg} Trying again, for up to a minute.'
        return len(retries) == 1

    logger.addFilter(is_first)
    try:
        yield
    finally:
        logger.removeFilter(is_first)


@contextmanager
def offline() -> Iterator[None]:
    """Within this context, the hub's library only finds files that were downloaded before."""
    with mock.patch('huggingface_hub.constants.HF_HUB_OFFLINE', True):
        yield


@quiet_retries()
def download_hugging_face(name: str) -> Path:
    """Download the weights of a model, with its configs and its card next to them.

    With ``HF_HUB_OFFLINE=1``, only the cache is used.

    Returns:
        The path of the weights, or of their index if they are in several files.

    Raises:
        ConfigError: if the model is gated, cannot be downloaded, or has none of ``HUB_FILES``.
    """
    from huggingface_hub import constants
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError

    cached = Path(constants.HF_HUB_CACHE, f'models--{name.replace("/", "--")}')
    if constants.HF_HUB_OFFLINE and (weights := weights_in(cached)):
        return weights
    for file in HUB_FILES:
        try:
            return _download_files(name, file)
        except GatedRepoError as error:
            raise ConfigError(
                f'hf://{name} is gated; accept its license on https://huggingface.co/{name}, and '
                'log in with hf auth login, or set HF_TOKEN.'
            ) from error
        except Exception as error:  # from the hub, its client library or the disk
            # If the file is missing, the next is tried. Without a network, the error is also an
            # EntryNotFoundError, but a FileNotFoundError too.
            if not isinstance(error, EntryNotFoundError) or isinstance(error, FileNotFoundError):
                raise ConfigError(
                    f'hf://{name} cannot be downloaded ({_reason(error)}); check the name and the '
                    'network, or download it by hand and give its path.'
                ) from error
    raise ConfigError(f'hf://{name} has none of {", ".join(HUB_FILES)}.')


def _download_files(name: str, file: str) -> Path:
    """Download a file of weights with its shards, its configs and the card, and return its path.

    Args:
        name: the name of the model.
        file: one of ``HUB_FILES``, which the model may lack.
    """
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    downloaded = Path(hf_hub_download(name, file))
    if file == INDEX:  # the files that it names go next to it
        for shard in sorted({*shard_files(downloaded).values()}):
            try:
                hf_hub_download(name, shard)
            except EntryNotFoundError as error:
                if isinstance(error, LocalEntryNotFoundError):  # no network
                    raise
                raise FileNotFoundError(f'{INDEX} names {shard}, which is not there') from None
    for config in (*configs_for(downloaded), downloaded.with_name(CARD)):
        try:
            hf_hub_download(name, config.name)
        except LocalEntryNotFoundError as error:  # no network, and not in the cache
            if config == configs_for(downloaded)[0] and not constants.HF_HUB_OFFLINE:
                _warn_of_missing_config(name, config.name, error)
        except EntryNotFoundError:  # models need not have each of them
            pass
    return downloaded


def _warn_of_missing_config(name: str, config: str, error: Exception) -> None:
    """Log that a config may exist, but not if the cache knows that the model has none."""
    from huggingface_hub import _CACHED_NO_EXIST, try_to_load_from_cache

    if try_to_load_from_cache(name, config) is not _CACHED_NO_EXIST:
        print_log(
            f'hf://{name}: its weights are read without {config}, which is not in the cache and '
            f'cannot be downloaded ({_reason(error)}).',
            'current',
            logging.WARNING,
        )


@quiet_retries()
def download_timm(name: str) -> Mapping[str, Tensor]:
    """Download the weights of a timm model.

    Raises:
        ConfigError: if timm has no such weights, or if they cannot be downloaded.
    """
    import timm

    try:
        return timm.create_model(name, pretrained=True).state_dict()
    except Exception as error:  # from timm, the hub or the network
        if timm.is_model_pretrained(name):
            raise ConfigError(
                f'timm://{name} cannot be downloaded ({_reason(error)}); check the network, or '
                'download it by hand and give its path.'
            ) from error
        near = timm.list_pretrained(f'*{name.partition(".")[0]}*')[:5] or closest(
            name, timm.list_pretrained(), max_names=3, cutoff=0.0
        )
        raise ConfigError(
            f'timm://{name} cannot be downloaded ({_reason(error)}); timm has weights for '
            f'{", ".join(near)}, and needs the network for them.'
        ) from error


def _reason(error: Exception) -> str:
    """The first line of the error's cause, or of the error itself if it has none."""
    return first_line(error.__cause__ or error)
