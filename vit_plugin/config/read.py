"""Read a config, and complete it as the frameworks' own tools do."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

from mmengine.config import Config, ConfigDict
from mmengine.config.utils import MODULE2PACKAGE
from mmengine.device import get_device
from mmengine.utils import import_modules_from_strings

from anyfolder.cores import cores
from vit_plugin.errors import EXTRAS, ConfigError, first_line, rejecting
from vit_plugin.files.shipped import SHIPPED_PREFIX, config_path
from vit_plugin.importable import OPS_MODULE

from .data import LOADER_SECTIONS
from .options import check_options
from .plain_configs import check_base, check_imports, is_plain_config, read_as_data


def read_config(path: str, options: Mapping[str, Any] | None = None) -> Config:
    """Read the config file, or the recipe ``vit_plugin::...``, and apply ``--cfg-options``.

    A config in Python is a program and is run. One in YAML or JSON is data, see
    :mod:`~vit_plugin.config.plain_configs`, though the classes that it names are built later.

    Raises:
        ConfigError: if the file does not exist or cannot be read, if it has no model, or if an
            option has an impossible name or does not fit.
    """
    path = config_path(str(path))
    try:
        with _resolving_bases(), read_as_data(path):
            cfg = Config.fromfile(path, import_custom_modules=False)
        imports = cfg.get('custom_imports') or {}
        check_imports(imports.get('imports'), path)
        _import_custom(path, **imports)
    except ConfigError:
        raise
    except Exception as error:  # a config is a program and may raise anything
        reason, remedy = first_line(error), 'correct it or its bases'
        if (package := reason.partition(' is not installed')[0]) in EXTRAS:  # MMEngine's wording
            reason, remedy = f'{package} is not installed', f'pip install {EXTRAS[package]}'
        raise ConfigError(
            f'The config file {path!r} cannot be read ({type(error).__name__}: {reason}); {remedy}.'
        ) from error
    apply_options(cfg, options, path)
    if not isinstance(cfg.get('model'), Mapping):
        raise ConfigError(
            f'The config file {path!r} has no model=dict(...); it is a base for recipes, not '
            'a complete config.'
        )
    return cfg


def framework_model(base: str) -> dict[str, Any]:
    """The section ``model`` of a framework's recipe, without preprocessing and initialization.

    Args:
        base: such as ``'mmdet::dino/dino-4scale_r50_8xb2-12e_coco.py'``.
    """
    with _resolving_bases():
        model = Config.fromstring(f'_base_ = {base!r}', '.py').model.to_dict()
    return {name: model[name] for name in model if name not in ('data_preprocessor', 'init_cfg')}


def _import_custom(path: str, imports: Any = (), allow_failed_imports: bool = False) -> None:
    """Import the modules that a config names.

    Our replacements of mmcv's compiled ops come first, since mmdet needs them when it is imported.
    A Python config can also import modules from its own folder and the working directory, after the
    installed ones.

    Raises:
        ConfigError: if a module is in none of these places, unless ``allow_failed_imports``.
    """
    names = [imports] if isinstance(imports, str) else imports
    missing = [name for name in names if not _is_known(name)]
    if missing and not is_plain_config(path):
        folders = map(str, (Path(path).resolve().parent, Path.cwd()))
        sys.path += [folder for folder in folders if folder not in sys.path]
        missing = [name for name in missing if not _is_known(name)]
    if missing and not allow_failed_imports:
        raise ConfigError(
            f'The config file {path!r} imports {missing[0]!r}, and no such module is installed, in '
            'the folder of the config or in the working directory; put its folder into PYTHONPATH.'
        )
    ops = [OPS_MODULE] if OPS_MODULE in names else []
    import_modules_from_strings([*ops, *names], allow_failed_imports)


def _is_known(module: str) -> bool:
    """True if the package of a module can be found."""
    package = module.partition('.')[0]
    return package in sys.modules or find_spec(package) is not None


def apply_options(cfg: Config, options: Mapping[str, Any] | None, path: str) -> None:
    """Apply ``--cfg-options`` to the config that was read from a path.

    Raises:
        ConfigError: if an option has an impossible name, or does not fit.
    """
    check_options(cfg, options or {})
    with rejecting(
        f'--cfg-options do not fit the config {path!r}',
        kinds=(TypeError, KeyError, ValueError, AssertionError, AttributeError),
    ):
        cfg.merge_from_dict(dict(options or {}))


@contextmanager
def _resolving_bases() -> Iterator[None]:
    """Within this context, MMEngine finds base configs in this package and in the fork of mmseg.

    This package need not be installed. The fork of MMSegmentation has another package name than
    MMEngine's table.
    """
    original = Config._get_cfg_path

    def find_base(base: str, filename: str) -> tuple[str, str | None]:
        """MMEngine's method, which returns the path of a base and the scope of its types."""
        check_base(base, filename)
        if base.startswith(SHIPPED_PREFIX):
            # For `pkg::base`, MMEngine also returns the scope `pkg`, and would resolve every `type`
            # in it. Our recipes use their framework's types without a prefix, so return no scope.
            return config_path(base), None
        path_and_scope: tuple[str, str | None] = original(base, filename)
        return path_and_scope

    with (
        mock.patch.dict(MODULE2PACKAGE, mmseg='mmseg'),
        mock.patch.object(Config, '_get_cfg_path', staticmethod(find_base)),
    ):
        yield


def data_workers() -> int:
    """Number of data loading processes: one per core available to this process, at most 4."""
    return min(4, cores())


def apply_loader_defaults(cfg: Config, no_pin_memory: bool = False) -> None:
    """Set the defaults of the data loaders, for this machine and the config's framework."""
    for name in LOADER_SECTIONS:
        if isinstance(cfg.get(name), Mapping):  # check_config rejects other values
            workers = cfg[name].get('num_workers', data_workers())
            defaults = dict(
                num_workers=workers,
                pin_memory=get_device() != 'cpu',
                persistent_workers=isinstance(workers, int) and workers > 0,
            )
            # The other frameworks batch images of several sizes themselves.
            if cfg.get('default_scope') == 'mmpretrain':
                defaults['collate_fn'] = dict(type='default_collate')
            cfg[name] = ConfigDict(defaults, **cfg[name])
            if no_pin_memory:
                cfg[name].pin_memory = False


def entry_for_framework(table: Mapping[str, Any], cfg: Config) -> Any:
    """The entry of a table for the framework of ``default_scope``.

    Raises:
        ConfigError: if the table has none.
    """
    scope = cfg.get('default_scope')
    if scope not in table:
        raise ConfigError(
            f'default_scope={scope!r} must name the framework, one of {", ".join(table)}, for this.'
        )
    return table[scope]
