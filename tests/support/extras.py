"""Marks for tests that need an extra, or a task that a copy of the package may lack."""

from importlib.util import find_spec

import pytest

needs_mmdet = pytest.mark.skipif(not find_spec('mmdet'), reason='mmdet is not installed')
needs_mmseg = pytest.mark.skipif(not find_spec('mmseg'), reason='mmseg is not installed')


def needs_task(*names: str) -> pytest.MarkDecorator:
    """Skip a test where one of these folders of ``vit_plugin/tasks`` was deleted."""
    missing = [name for name in names if not find_spec(f'vit_plugin.tasks.{name}')]
    return pytest.mark.skipif(bool(missing), reason=f'the task {", ".join(missing)} was deleted')
