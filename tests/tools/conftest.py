import runpy
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from mmengine.logging import MessageHub
from mmengine.visualization import Visualizer


@dataclass(frozen=True)
class Done:
    """How a program ended."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def run_tool(monkeypatch, capsys, no_default_scope) -> Callable[..., Done]:
    """Runs a tool with a command line of its own in this process, which spares the start and the
    imports.
    """

    def run(name: str, *arguments: object) -> Done:
        monkeypatch.setattr(sys, 'argv', [f'tools/{name}.py', *map(str, arguments)])
        # As the launcher's flag sets it, and does not take it back.
        monkeypatch.setenv('LOCAL_RANK', '0')
        for kind in (MessageHub, Visualizer, *Visualizer.__subclasses__()):
            kind._instance_dict.clear()  # of an earlier run, whose folder they write to
        capsys.readouterr()
        code = 0
        with warnings.catch_warnings():
            warnings.simplefilter('ignore')
            try:
                runpy.run_path(sys.argv[0], run_name='__main__')
            except SystemExit as end:
                code = end.code or 0
        stdout, stderr = capsys.readouterr()
        return (
            Done(1, stdout, f'{stderr}{code}\n')
            if isinstance(code, str)
            else Done(code, stdout, stderr)
        )

    return run
