"""All tests of this folder call this package's replacements of mmcv's ops."""

import sys

import pytest


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """Let mmcv's ops call our functions, also if mmcv is compiled."""
    import mmcv.ops  # noqa: F401

    from vit_plugin.detection import ext

    for name, module in list(sys.modules.items()):
        if name.startswith('mmcv.ops.') and hasattr(module, 'ext_module'):
            monkeypatch.setattr(module, 'ext_module', ext)
    return ext
