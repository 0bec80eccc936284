"""Configs in YAML and JSON are data: reading one runs nothing.

MMEngine reads YAML with a loader that calls any function that a tag names, and it runs bases in
Python. A config in Python is a program, and is run as one.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import IO, Any
from unittest import mock

from mmengine.fileio.handlers.registry_utils import file_handlers

from anyfolder.bounded import json_in, yaml_in
from vit_plugin.errors import ConfigError
from vit_plugin.untrusted.table import SCOPES

CONFIG_READERS: dict[str, Callable[[str, str], Any]] = dict(json=json_in, yaml=yaml_in, yml=yaml_in)


def is_plain_config(path: str) -> bool:
    """True for the name of a config in YAML or JSON."""
    return Path(path).suffix.lower().removeprefix('.') in CONFIG_READERS


@contextmanager
def read_as_data(path: str) -> Iterator[None]:
    """Within this context, MMEngine reads YAML and JSON as plain values, within limits.

    ``Config.fromfile`` takes no readers, so those of MMEngine are replaced, in the whole process.
    Nothing serializes threads: read configs in one thread at a time.

    Args:
        path: path of the config, for messages about it or its bases.
    """

    def load(read: Callable[[str, str], Any], file: IO[str], **kwargs: Any) -> Any:
        content = read(file.read(), path)
        if not isinstance(content, Mapping):
            raise ConfigError(
                f'The config file {path!r} has a {type(content).__name__}, where a mapping of '
                'setting names to values is expected; correct it or its bases.'
            )
        return content

    with ExitStack() as stack:
        for extension, read in CONFIG_READERS.items():
            handler = file_handlers[extension]
            patch = mock.patch.object(handler, 'load_from_fileobj', partial(load, read))
            stack.enter_context(patch)
        yield


def check_base(base: str, path: str) -> None:
    """Raise a ``ConfigError`` if a config in YAML or JSON has a program as its base.

    Recipes of installed packages (``pkg::path``) may be its bases.
    """
    if is_plain_config(path) and not is_plain_config(base) and '::' not in base:
        raise ConfigError(
            f'The config file {path!r} is data, and its base {base!r} is a program; give the base '
            'as YAML or JSON, or write the config in Python.'
        )


def check_imports(imports: Any, path: str) -> None:
    """Raise a ``ConfigError`` if a config in YAML or JSON imports modules of other packages."""
    names = [imports] if isinstance(imports, str) else imports
    foreign = [name for name in names or () if str(name).partition('.')[0] not in SCOPES]
    if is_plain_config(path) and foreign:
        raise ConfigError(
            f'The config file {path!r} is data, and imports the module {foreign[0]!r}; '
            f'write the config in Python, or import modules of {", ".join(SCOPES)} alone.'
        )
