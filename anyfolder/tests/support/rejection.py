from contextlib import AbstractContextManager

import pytest

from anyfolder.errors import InputError


def rejects(words: str) -> AbstractContextManager[pytest.ExceptionInfo[InputError]]:
    """Expect an ``InputError`` whose message matches the pattern ``words``."""
    return pytest.raises(InputError, match=words)
