from contextlib import AbstractContextManager

import pytest

from vit_plugin.errors import ConfigError


def rejects(words: str) -> AbstractContextManager[pytest.ExceptionInfo[ConfigError]]:
    """The block raises a ``ConfigError`` with this pattern in its sentence."""
    return pytest.raises(ConfigError, match=words)
