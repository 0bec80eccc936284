"""Find the recipes (configs), tools and model index that come with the package."""

import os
from pathlib import Path

from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import closest

PACKAGE_FOLDER = Path(__file__).parents[1]
SHIPPED_PREFIX = 'vit_plugin::'
CONFIG_SUFFIXES = ('.py', '.yml', '.yaml', '.json')  # config files that MMEngine reads


def shipped(name: str) -> Path:
    """The path of ``configs``, ``tools`` or ``model-index.yml``.

    An installed package has them in its folder ``.mim``, where mim and MMEngine look. A clone that
    is not installed has them next to the package.

    Raises:
        ConfigError: if they are in neither folder.
    """
    paths = [PACKAGE_FOLDER / '.mim' / name, PACKAGE_FOLDER.parent / name]
    present = next((path for path in paths if path.exists()), None)
    if present is None:
        raise ConfigError(f'The installation lacks {name} ({paths[0]}); install vit_plugin again.')
    return present


def config_path(config: str) -> str:
    """The path of a config. ``'vit_plugin::vit/x.py'`` is the package's recipe ``vit/x.py``.

    Raises:
        ConfigError: if there is no such file, or if it is not a config. For an unknown recipe, the
            message has the nearest name.
    """
    if not config.startswith(SHIPPED_PREFIX):
        # The shell does not expand --config=~/x.py.
        config = os.path.expanduser(config)
        path = Path(config)
        if not path.exists():
            raise ConfigError(
                f'There is no config file {config!r}; the recipes are in {shipped("configs")}.'
            )
        if path.suffix not in CONFIG_SUFFIXES:
            raise ConfigError(
                f'{config!r} is not a config, which is a file that ends in '
                f'{", ".join(CONFIG_SUFFIXES)}; a folder of images is '
                'given with --data, and a checkpoint with --weights.'
            )
        return config
    folder, name = shipped('configs'), config.removeprefix(SHIPPED_PREFIX)
    if not (folder / name).is_file():
        names = [path.relative_to(folder).as_posix() for path in folder.rglob('*.py')]
        near = closest(name, names, cutoff=0.3)
        remedy = (
            f'did you mean {SHIPPED_PREFIX}{near[0]}?' if near else f'the recipes are in {folder}.'
        )
        raise ConfigError(f'There is no recipe {config!r}; {remedy}')
    return str(folder / name)
