"""Open a checkpoint with the config in it. No code in it is run."""

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import Config

from vit_plugin.arguments import fits
from vit_plugin.config import apply_options, check_channels, read_config
from vit_plugin.config.scope import in_scope
from vit_plugin.engine.checkpoints.chosen import choose_checkpoint
from vit_plugin.engine.distributed import is_first_rank
from vit_plugin.errors import ConfigError, needed_by
from vit_plugin.files.place import relocate_paths
from vit_plugin.importable import register_framework_models
from vit_plugin.registry import CLASSIFIER_SCOPE
from vit_plugin.untrusted import IMPORTABLE_MODULES, UNTRUSTED_REMEDY, validate_untrusted
from vit_plugin.weights.hub_files import weights_in
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.published_run import address_of, as_run
from vit_plugin.weights.reading.folders import check_checkpoint, is_checkpoint_folder
from vit_plugin.weights.saved_settings import read_settings


class SavedModel(NamedTuple):
    """A checkpoint with the config of its model."""

    checkpoint: Checkpoint
    cfg: Config


def open_model(
    path: str,
    config: str | None = None,
    options: Mapping[str, Any] | None = None,
    use: str = 'predict',
    which: str | None = None,
) -> SavedModel:
    """Open a checkpoint and read its config.

    Args:
        path: a file, folder or URL, or the folder of a run.
        config: the config file, or a recipe's name. Default: the config that the checkpoint holds.
        options: settings to change in the config.
        use: the purpose, see :func:`~vit_plugin.untrusted.validate_untrusted`.
        which: the checkpoint of the folder, see :func:`find_checkpoint`.

    Raises:
        ConfigError: if the checkpoint or config cannot be read, if there is no config, if the
            config in the checkpoint could run code, or if components of the model do not fit
            together.
    """
    cfg = read_config(config, options) if config else None
    checkpoint = as_run(open_checkpoint(find_checkpoint(path, which)))
    if cfg is None:
        cfg = saved_config(checkpoint, use)
        apply_options(cfg, options, checkpoint.source)
    else:
        register_framework_models(cfg.get('default_scope', CLASSIFIER_SCOPE))
    with in_scope(cfg.get('default_scope', CLASSIFIER_SCOPE)):
        check_channels(cfg.model)
    return SavedModel(checkpoint, cfg)


def find_checkpoint(path: str, which: str | None = None, default_which: str | None = None) -> str:
    """The path of a checkpoint, also in the folder of a run or of a hub.

    All commands resolve a folder here. If the file is chosen from a run, its name is printed.

    Args:
        path: a file, a folder or a URL, or the name of a published detector.
        which: see :func:`~vit_plugin.engine.checkpoints.chosen.choose_checkpoint`.
        default_which: as ``which``, if that is not given. Unlike ``which``, it raises no error and
            has no effect if ``path`` is not the folder of a run.

    Raises:
        ConfigError: if there is no checkpoint, or if ``which`` is given and ``path`` is not the
            folder of a run.
    """
    if path.endswith('.py') or path.startswith('vit_plugin::'):
        raise ConfigError(
            f'{path!r} is a config, where a checkpoint is expected; give the config with --config.'
        )
    path = path if os.path.exists(path) else address_of(path)
    path = path if '://' in path else os.path.expanduser(path)
    hub_weights = weights_in(path)
    if os.path.isdir(path) and not hub_weights and not is_checkpoint_folder(path):
        path, sentence = choose_checkpoint(path, which or default_which)
        if is_first_rank():
            print(sentence, file=sys.stderr)
    elif which:
        raise ConfigError(
            f'--checkpoint {which} chooses in the folder of a run, which {path!r} is not; leave it '
            'out, or give the folder.'
        )
    path = str(hub_weights or path)
    check_checkpoint(path)
    return path


def saved_config(checkpoint: Checkpoint, use: str = 'predict') -> Config:
    """The config in a checkpoint from MMEngine, read as plain values and not run as a program.

    It only has the settings that ``use`` needs.

    Args:
        checkpoint: the checkpoint.
        use: the purpose, see :func:`~vit_plugin.untrusted.validate_untrusted`.

    Raises:
        ConfigError: if there is no config, if it could run code, or if it names modules to import
            that this process has not imported.
    """
    path, settings = checkpoint.source, read_settings(checkpoint)
    if not isinstance(settings.get('model'), Mapping):
        from vit_plugin.weights.unread_kinds import reject_unread_kind

        reject_unread_kind(checkpoint)
        raise ConfigError(
            f'The checkpoint {path!r} holds no config; give it with --config, or, to predict, '
            'the arch of the weights with --arch, such as B/16.'
        )
    imports = settings.get('custom_imports')
    modules = imports.get('imports') or () if isinstance(imports, Mapping) else ()
    modules = [modules] if isinstance(modules, str) else modules
    if not fits(Sequence[str], modules):
        raise ConfigError(
            f'The config in {path!r} has custom_imports.imports={modules!r}, where names of '
            f'modules are expected; {UNTRUSTED_REMEDY}.'
        )
    register_framework_models(settings.get('default_scope', CLASSIFIER_SCOPE))
    for name in IMPORTABLE_MODULES:
        if name in modules:
            with needed_by(f'The model in {path!r}'):
                import_module(name)
    missing = [name for name in modules if name not in sys.modules]
    if missing:
        raise ConfigError(
            f'The config in {path!r} names the modules {missing} to import, and no code is run '
            f'that a checkpoint names; {UNTRUSTED_REMEDY}.'
        )
    old_folder, folder = settings.get('work_dir'), str(Path(path).absolute().parent)
    if (
        isinstance(old_folder, str)
        and os.path.isabs(old_folder)
        and old_folder != folder
        and '://' not in path
    ):
        # The run was moved, so its paths move with it.
        settings = relocate_paths(settings, old_folder, folder)
    return Config(validate_untrusted(settings, path, use))
