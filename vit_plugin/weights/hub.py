"""Weights from timm's and Hugging Face's hubs, and folders in the format of the latter.

A folder in the hub's format has ``model.safetensors``, maybe split into several files, and a
``config.json``; OpenCLIP's have names of their own. The weights of any library's folder can be
read. A folder of ``vit-plugin convert RUN --out FOLDER`` has an additional entry in its config,
which makes it as complete as a checkpoint of MMEngine: with the config of the model, its
preprocessing and its class names. The entry is untrusted data, like the config in a checkpoint, see
:mod:`vit_plugin.untrusted`.
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
from typing_extensions import NotRequired

from anyfolder.bounded import read_json
from anyfolder.limits import LimitError
from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import OpenDict
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.suggestions import closest

from .reading.shards import INDEX, shard_files

TIMM_SCHEME = 'timm://'
TIMM_SCHEMES = (TIMM_SCHEME, 'hf://timm/')  # prefixes of a timm model's name
HUB_CONFIG, HUB_WEIGHTS = 'config.json', 'model.safetensors'
# OpenCLIP's files. Some folders have transformers' as well, which come first.
OPEN_CLIP_CONFIG = 'open_clip_config.json'
OPEN_CLIP_FILES = ('open_clip_model.safetensors', 'open_clip_pytorch_model.bin')
# The files that may have the weights, in the order in which they are looked for.
HUB_FILES = (HUB_WEIGHTS, INDEX, 'pytorch_model.bin', *OPEN_CLIP_FILES)
HUB_CONFIGS = (HUB_CONFIG, 'preprocessor_config.json', 'processor_config.json')
SNAPSHOTS = 'snapshots'  # folder in the hub's cache of a model, with a folder for each revision
CARD = 'README.md'  # the model card, which states the license
ENTRY = 'vit_plugin'  # the key of our entry in config.json


class Entry(OpenDict):
    """Our entry in the ``config.json`` of a model.

    Attributes:
        config: the settings for prediction, as Python text, which is read as plain values.
        dataset_meta: facts about the data, such as the names of the ``classes``.
        provenance: see :mod:`vit_plugin.weights.provenance`, which reads it.
    """

    config: str
    dataset_meta: NotRequired[dict[str, Any]]
    provenance: NotRequired[Any]


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


def find_model_folder(folder: str | Path) -> Path:
    """The folder with the files of a model.

    For a ``models--ORG--NAME`` in the hub's cache, it is the snapshot of ``main``, or the only one.
    Any other folder is returned unchanged.
    """
    snapshots, main = Path(folder, SNAPSHOTS), Path(folder, 'refs', 'main')
    if not snapshots.is_dir() or Path(folder, HUB_CONFIG).is_file():
        return Path(folder)
    if main.is_file() and (snapshot := snapshots / main.read_text().strip()).is_dir():
        return snapshot
    revisions = [path for path in snapshots.iterdir() if path.is_dir()]
    return revisions[0] if len(revisions) == 1 else Path(folder)


def is_of_hub(name: str) -> bool:
    """True for ``hf://ORG/NAME``, and for a folder in the format of the hub."""
    folder = find_model_folder(os.path.expanduser(name)) if name else Path()
    return name.startswith('hf://') or bool(name and _has_config(folder))


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


def weights_in(folder: str | Path) -> Path | None:
    """The weights in a folder in the hub's format or in its cache, or None for any other folder."""
    folder = find_model_folder(folder)
    if not _has_config(folder):
        return None
    return next((path for name in HUB_FILES if (path := Path(folder, name)).is_file()), None)


def _has_config(folder: Path) -> bool:
    return any(Path(folder, name).is_file() for name in (HUB_CONFIG, OPEN_CLIP_CONFIG))


def configs_for(file: Path) -> tuple[Path, ...]:
    """The configs that may be next to weights in a hub folder. The first one names the model."""
    names = (OPEN_CLIP_CONFIG,) if file.name in OPEN_CLIP_FILES else HUB_CONFIGS
    return tuple(file.with_name(name) for name in names)


def configs_next_to(file: Path) -> dict[str, Mapping[str, Any]]:
    """The configs next to weights, by file name without suffix, if they exist and can be read.

    Args:
        file: the weights, one of ``HUB_FILES``. Any other file has no configs.

    Raises:
        LimitError: if a config is too large, or nested too deeply.
    """
    configs: dict[str, Mapping[str, Any]] = {}
    if file.name not in HUB_FILES:
        return configs
    for path in configs_for(file):
        try:
            content = read_json(path)
        except LimitError:
            raise
        except (OSError, ValueError):  # not a config that this package has to read
            continue
        if isinstance(content, Mapping):
            configs[path.stem] = content
    return configs


def read_own_meta(hub_configs: Mapping[str, Mapping[str, Any]], file: Path) -> dict[str, Any]:
    """Our entry in the ``config.json`` next to weights, as the ``meta`` of a checkpoint.

    Empty if there is none.

    Args:
        hub_configs: see :func:`configs_next_to`.
        file: the weights.

    Raises:
        ConfigError: if the entry is damaged.
    """
    entry = hub_configs.get(Path(HUB_CONFIG).stem, {}).get(ENTRY)
    if entry is None or file.name != HUB_WEIGHTS:  # we write no shards
        return {}
    if not fits(Entry, entry):
        raise ConfigError(
            f'The entry {ENTRY!r} of {str(file.with_name(HUB_CONFIG))!r} has no config and '
            'dataset_meta of a model; write the folder again with vit-plugin convert.'
        )
    meta = dict(cfg=entry['config'], dataset_meta=entry.get('dataset_meta', {}))
    if 'provenance' in entry:
        meta['provenance'] = entry['provenance']
    return meta


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
    from huggingface_hub import constants, hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
    )

    cached = Path(constants.HF_HUB_CACHE, f'models--{name.replace("/", "--")}')
    if constants.HF_HUB_OFFLINE and (weights := weights_in(cached)):
        return weights
    for file in HUB_FILES:
        try:
            downloaded = Path(hf_hub_download(name, file))
            if file == INDEX:  # the files that it names go next to it
                for shard in sorted({*shard_files(downloaded).values()}):
                    hf_hub_download(name, shard)
            for config in (*configs_for(downloaded), downloaded.with_name(CARD)):
                try:
                    hf_hub_download(name, config.name)
                except LocalEntryNotFoundError as error:  # no network, and not in the cache
                    if config == configs_for(downloaded)[0] and not constants.HF_HUB_OFFLINE:
                        _warn_of_missing_config(name, config.name, error)
                except EntryNotFoundError:  # models need not have each of them
                    pass
            return downloaded
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
            if file == HUB_FILES[-1]:
                raise ConfigError(f'hf://{name} has none of {", ".join(HUB_FILES)}.') from error
    raise AssertionError  # the loop returns, or raises for its last file


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
