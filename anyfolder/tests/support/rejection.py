from contextlib import AbstractContextManager

import pytest

from anyfolder.errors import InputError


def rejects(words: str) -> AbstractContextManager[pytest.ExceptionInfo[InputError]]:
    """The block raises an ``InputError`` with this pattern in its sentence."""
    return pytest.raises(InputError, match=words)
