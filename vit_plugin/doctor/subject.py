"""Read the config to examine: a config file, or that of a run, which is treated as data."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mmengine.config import Config

from anyfolder.text import read_text
from vit_plugin.config import apply_options, read_config
from vit_plugin.files.shipped import CONFIG_SUFFIXES, SHIPPED_PREFIX
from vit_plugin.inference.saved_model import find_checkpoint, saved_config
from vit_plugin.models.loadable_module import PRETRAINED_KEYS
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.saved_settings import read_settings

from .examined import ExaminedConfig
from .named_weights import INIT


def examine(subject: str, options: Mapping[str, Any] | None = None) -> ExaminedConfig:
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
        return ExaminedConfig(read_config(subject, options))
    checkpoint = _read_run(subject)
    unvalidated, validated = read_settings(checkpoint), saved_config(checkpoint).to_dict()
    # The checks also need what validation drops: the weights in init_cfg, and the sections that
    # inference does not use.
    model = _with_init_cfg(validated['model'], unvalidated['model'])
    cfg = Config({**unvalidated, **validated, 'model': model})
    apply_options(cfg, options, subject)
    return ExaminedConfig(cfg, is_untrusted=True)


def _read_run(subject: str) -> Checkpoint:
    """The newest config in the folder of a run, or a checkpoint with its config.

    A config file becomes a checkpoint without weights, since both are read the same way.
    """
    folder = Path(subject)
    configs = [*folder.glob('*/vis_data/config.py'), *folder.glob('*.py')]
    for path in sorted(configs, key=lambda path: path.stat().st_mtime, reverse=True):
        checkpoint = Checkpoint(str(path), dict(meta=dict(cfg=read_text(path))))
        if isinstance(read_settings(checkpoint).get('model'), Mapping):
            return checkpoint
    return open_checkpoint(find_checkpoint(subject), payload=False)


def _with_init_cfg(model: Any, unvalidated: Any) -> Any:
    """A validated model section, with the ``init_cfg`` entries that name weights put back.

    Args:
        model: the section, from which validation has dropped ``init_cfg``.
        unvalidated: the same section before validation.
    """
    if isinstance(model, (list, tuple)):
        return type(model)(map(_with_init_cfg, model, unvalidated))
    if not isinstance(model, Mapping):
        return model
    section = {key: _with_init_cfg(value, unvalidated.get(key)) for key, value in model.items()}
    init_cfg = unvalidated.get(INIT)
    entries = [init_cfg] if isinstance(init_cfg, Mapping) else init_cfg or []
    pretrained = [
        {key: value for key, value in entry.items() if key in PRETRAINED_KEYS}
        for entry in entries
        if isinstance(entry, Mapping) and entry.get('type') == 'Pretrained'
    ]
    return {**section, INIT: pretrained} if pretrained else section
