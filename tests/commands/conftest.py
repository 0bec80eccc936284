import shlex
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from mmengine.logging import MessageHub
from mmengine.visualization import Visualizer

from vit_plugin.__main__ import main


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run_command(monkeypatch, capsys, no_default_scope) -> Callable[..., Done]:
    """Runs a command in this process, which spares the start and the imports.

    It is given as a line, or a part of it, and the arguments that follow.
    """

    def run(line: str, *arguments: object) -> Done:
        monkeypatch.setattr(sys, 'argv', sys.argv)  # which a command sets
        # The launcher's flag sets it, and does not take it back.
        monkeypatch.setenv('LOCAL_RANK', '0')
        for kind in (MessageHub, Visualizer, *Visualizer.__subclasses__()):
            kind._instance_dict.clear()  # of an earlier run, whose folder they write to
        capsys.readouterr()
        code = 0
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            try:
                code = main([*shlex.split(line), *map(str, arguments)])
            except SystemExit as end:
                code = end.code or 0
        stdout, stderr = capsys.readouterr()
        return (
            Done(1, stdout, f'{stderr}{code}\n')
            if isinstance(code, str)
            else Done(code, stdout, stderr)
        )

    return run
