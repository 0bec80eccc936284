import shlex
import sys
from collections.abc import Callable
from functools import partial
from importlib import import_module

import pytest
from in_process import Done, run_in_process

from vit_plugin.commands.entry import run_command


@pytest.fixture
def run_campaign(monkeypatch, capsys, no_default_scope) -> Callable[..., Done]:
    """Runs a campaign, given as its name or the beginning of a line, and further arguments."""

    def run(line: str, *arguments: object) -> Done:
        name, *words = [*shlex.split(line), *map(str, arguments)]
        monkeypatch.setattr(sys, 'argv', [name, *words])
        program = partial(run_command, import_module(f'benchmarks.{name}'))
        return run_in_process(program, monkeypatch, capsys)

    return run
