"""Reword anyfolder's messages for ``vit-plugin train``.

anyfolder names its options in messages as arguments of Python (``task='detection'``). A user of
the command needs its flags (``--task detection``).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from anyfolder.wording import as_flag, using_words
from vit_plugin.errors import ConfigError

# Options of anyfolder that have no flag of the same name -> the words for them. `{}` is the value.
OPTION_WORDS = {
    'decode_all': 'train --check',
    'window': 'read by LoadImage(window={}) in training and prediction; change it in the config',
}


def as_train_flag(name: str, value: Any = None) -> str:
    """The flag, or other words, of ``vit-plugin train`` for an option of :func:`anyfolder.read`."""
    return OPTION_WORDS[name].format(value) if name in OPTION_WORDS else as_flag(name, value)


@contextmanager
def naming_train_flags(flag: str = '--data') -> Iterator[None]:
    """Within this context, messages of anyfolder name the flags of ``vit-plugin train``.

    Args:
        flag: the flag that names the folder.

    Raises:
        ConfigError: for any error of this class, anyfolder's included, with the flag at fault
            before its message: that of the error's ``option``, or else ``flag``.
    """
    with using_words(as_train_flag):
        try:
            yield
        except ConfigError as error:
            subject = as_train_flag(error.option) if error.option else flag
            raise ConfigError(f'{subject}: {error}') from error
