"""A fixture that runs commands in this process, for all tests of this folder."""

import shlex
from collections.abc import Callable
from functools import partial

import pytest
from in_process import Done, run_in_process

from vit_plugin.__main__ import main


@pytest.fixture
def run_command(monkeypatch, capsys, no_default_scope) -> Callable[..., Done]:
    """A function that runs a command line in this process.

    It takes the line, or its beginning and further arguments, such as paths with blanks.
    """

    def run(line: str, *arguments: object) -> Done:
        words = [*shlex.split(line), *map(str, arguments)]
        return run_in_process(partial(main, words), monkeypatch, capsys)

    return run
