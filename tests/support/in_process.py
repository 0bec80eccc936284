"""Run programs in the process of the test, which saves the time of their start and imports."""

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
    """Call a program, which may raise SystemExit, and capture what it prints.

    A message of SystemExit is added to the standard error, as Python prints it.
    """
    # Commands change both. Set by monkeypatch, they are restored after the test.
    monkeypatch.setattr(sys, 'argv', sys.argv)
    monkeypatch.setenv('LOCAL_RANK', '0')
    for cls in (MessageHub, Visualizer, *Visualizer.__subclasses__()):
        cls._instance_dict.clear()  # else instances of an earlier run write to its folder
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
