"""Read a folder with anyfolder, and name the flags of ``vit-plugin train`` in its messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyfolder.wording import as_flag, using_words
from vit_plugin.errors import ConfigError

# Options of anyfolder with a flag of another name.
RENAMED_FLAGS = {
    'decode_all': 'train --check',
    'window': 'read by LoadImage(window={}) in training and prediction; change it in the config',
}


def as_train_flag(name: str, value: Any = None) -> str:
    """The flag of ``vit-plugin train`` for an option of :func:`anyfolder.read`."""
    return RENAMED_FLAGS[name].format(value) if name in RENAMED_FLAGS else as_flag(name, value)


@contextmanager
def reading_folder(flag: str = '--data') -> Iterator[None]:
    """Within this context, messages about a folder name flags, and errors begin with ``flag``.

    Raises:
        ConfigError: in place of anyfolder's errors.
    """
    with using_words(as_train_flag):
        try:
            yield
        except ConfigError as error:
            subject = as_flag(error.option) if error.option else flag
            raise ConfigError(f'{subject}: {error}') from error
