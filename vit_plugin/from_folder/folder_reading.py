"""Reading a folder by anyfolder, whose sentences name the flags of ``vit-plugin train`` here."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyfolder.wording import as_flag, worded
from vit_plugin.errors import ConfigError

# Options whose flags have other names.
RENAMED_FLAGS = {
    'decode_all': 'train --check',
    'window': 'read by LoadImage(window={}) in training and prediction; change it in the config',
}


def as_train_flag(name: str, value: Any = None) -> str:
    """An option of :func:`anyfolder.read` as ``vit-plugin train`` has it."""
    return RENAMED_FLAGS[name].format(value) if name in RENAMED_FLAGS else as_flag(name, value)


@contextmanager
def reading_folder(flag: str = '--data') -> Iterator[None]:
    """Name flags in what the readers say of a folder, and begin their errors with this one.

    Raises:
        ConfigError: in place of theirs.
    """
    with worded(as_train_flag):
        try:
            yield
        except ConfigError as error:
            about = as_flag(error.option) if error.option else flag
            raise ConfigError(f'{about}: {error}') from error
