"""A folder of Hugging Face's hub: ``model.safetensors``, and ``config.json``, which describes it.

Any library's folder gives its weights. One of ``vit-plugin convert RUN FOLDER`` has an entry of
ours in its config, which makes it a checkpoint as MMEngine has them: with the config of the model,
its pixels and the names of its classes. The entry is data from a stranger, as the config in a
checkpoint is, see :mod:`vit_plugin.weights.untrusted`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import with_config
from typing_extensions import NotRequired, TypedDict

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import OPEN
from vit_plugin.errors import ConfigError

CONFIG, WEIGHTS = 'config.json', 'model.safetensors'
ENTRY = 'vit_plugin'  # of the config


@with_config(OPEN)
class Entry(TypedDict):
    """Our entry of ``config.json``.

    Attributes:
        config: the settings that predict, as text in Python, which is read as plain values.
        dataset_meta: facts about the data, such as the names of the ``classes``.
    """

    config: str
    dataset_meta: NotRequired[dict[str, Any]]


def is_hub_folder(path: str | Path) -> bool:
    """True if this is a folder of weights in the form of the hub."""
    return all(Path(path, name).is_file() for name in (CONFIG, WEIGHTS))


def meta_beside(file: Path) -> dict[str, Any]:
    """What our entry in the ``config.json`` next to weights says, as the ``meta`` of a checkpoint.

    It is empty where there is none.

    Raises:
        ConfigError: if the entry is damaged.
    """
    path = file.with_name(CONFIG)
    if file.name != WEIGHTS or not path.is_file():
        return {}
    try:
        content = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError, RecursionError):  # of another library, which reads it as it likes
        return {}
    entry = content.get(ENTRY) if isinstance(content, Mapping) else None
    if entry is None:
        return {}
    if not fits(Entry, entry):
        raise ConfigError(
            f'The entry {ENTRY!r} of {str(path)!r} has no config and dataset_meta of a model; '
            'write the folder again with vit-plugin convert.'
        )
    return dict(cfg=entry['config'], dataset_meta=entry.get('dataset_meta', {}))
