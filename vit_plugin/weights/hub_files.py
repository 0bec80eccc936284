"""The files of a model in the format of Hugging Face's hub: in a folder, or in the hub's cache.

A folder in the hub's format has ``model.safetensors``, maybe split into several files, and a
``config.json``; OpenCLIP's have names of their own. The weights of any library's folder can be
read. A folder of ``vit-plugin convert RUN --out FOLDER`` has an additional entry in its config,
which makes it as complete as a checkpoint of MMEngine: with the config of the model, its
preprocessing and its class names. The entry is untrusted data, like the config in a checkpoint, see
:mod:`vit_plugin.untrusted`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from typing_extensions import NotRequired

from anyfolder.bounded import read_json
from anyfolder.limits import LimitError
from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import OpenDict
from vit_plugin.errors import ConfigError

from .reading.shards import INDEX

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


def weights_in(folder: str | Path) -> Path | None:
    """The weights in a folder in the hub's format or in its cache, or None for any other folder."""
    folder = find_model_folder(folder)
    if not has_model_config(folder):
        return None
    return next((path for name in HUB_FILES if (path := Path(folder, name)).is_file()), None)


def has_model_config(folder: Path) -> bool:
    """True if a folder has a config that names its model, of transformers, timm or OpenCLIP."""
    return any(Path(folder, name).is_file() for name in (HUB_CONFIG, OPEN_CLIP_CONFIG))


def configs_for(file: Path) -> tuple[Path, ...]:
    """The configs that may be next to weights in a hub folder. The first one names the model."""
    names = (OPEN_CLIP_CONFIG,) if file.name in OPEN_CLIP_FILES else HUB_CONFIGS
    return tuple(file.with_name(name) for name in names)


def model_config_next_to(file: Path | None) -> Path | None:
    """The config next to weights in a hub folder that names their model, or None without one."""
    if file is None or file.name not in HUB_FILES:
        return None
    config = configs_for(file)[0]
    return config if config.is_file() else None


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
