"""Read the config to examine: a config file, or that of a run, which is treated as data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.config import Config

from anyfolder.text import read_text
from vit_plugin.config import apply_options, read_config
from vit_plugin.files.shipped import CONFIG_SUFFIXES, SHIPPED_PREFIX
from vit_plugin.inference.saved_model import find_checkpoint, saved_config
from vit_plugin.models.loadable_module import KEYS
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.saved_settings import read_settings

from .examined import Examined
from .named_weights import INIT


def examine(subject: str, options: Mapping[str, Any] | None = None) -> Examined:
    """Read a config file, or the config of a run.

    Args:
        subject: a config, which is a program, or a recipe's name; or the folder of a run or a
            checkpoint, whose config is data.
        options: settings to change.

    Raises:
        ConfigError: if it cannot be read, or if the model of a run has classes that are not in the
            table of :mod:`vit_plugin.untrusted`.
    """
    if subject.startswith(SHIPPED_PREFIX) or Path(subject).suffix in CONFIG_SUFFIXES:
        return Examined(read_config(subject, options))
    checkpoint = _read_run(subject)
    settings, admitted = read_settings(checkpoint), saved_config(checkpoint).to_dict()
    model = _with_starts(admitted['model'], settings['model'])
    cfg = Config({**settings, **admitted, 'model': model})
    apply_options(cfg, options, subject)
    return Examined(cfg, is_data=True)


def _read_run(subject: str) -> Checkpoint:
    """The newest config in the folder of a run, or a checkpoint with its config."""
    folder = Path(subject)
    configs = [*folder.glob('*/vis_data/config.py'), *folder.glob('*.py')]
    for path in sorted(configs, key=lambda path: path.stat().st_mtime, reverse=True):
        checkpoint = Checkpoint(str(path), dict(meta=dict(cfg=read_text(path))))
        if isinstance(read_settings(checkpoint).get('model'), Mapping):
            return checkpoint
    return open_checkpoint(find_checkpoint(subject), payload=False)


def _with_starts(model: Any, settings: Any) -> Any:
    """An admitted model, with the weights that its settings name as a start."""
    if isinstance(model, (list, tuple)):
        return type(model)(map(_with_starts, model, settings))
    if not isinstance(model, Mapping):
        return model
    entries_of_model = {key: _with_starts(value, settings.get(key)) for key, value in model.items()}
    given = settings.get(INIT)
    entries = [given] if isinstance(given, Mapping) else given or []
    named = [
        {key: value for key, value in entry.items() if key in KEYS}
        for entry in entries
        if isinstance(entry, Mapping) and entry.get('type') == 'Pretrained'
    ]
    return {**entries_of_model, INIT: named} if named else entries_of_model
