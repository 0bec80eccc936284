"""Run programs in the process of the test, which spares their start and imports."""

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


def run_in_process(
    program: Callable[[], int | None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture,
) -> Done:
    """Call a program that may end the process, and capture what it prints."""
    monkeypatch.setattr(sys, 'argv', sys.argv)  # which a command sets
    # The launcher's flag sets it, and does not take it back.
    monkeypatch.setenv('LOCAL_RANK', '0')
    for kind in (MessageHub, Visualizer, *Visualizer.__subclasses__()):
        kind._instance_dict.clear()  # of an earlier run, whose folder they write to
    capsys.readouterr()
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        try:
            code = program() or 0
        except SystemExit as end:
            code = end.code or 0
    stdout, stderr = capsys.readouterr()
    if isinstance(code, str):
        return Done(1, stdout, f'{stderr}{code}\n')
    return Done(code, stdout, stderr)
