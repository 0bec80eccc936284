import sys

import pytest


@pytest.fixture(autouse=True)
def stand_in(monkeypatch):
    """mmcv's ops run on our functions, also where mmcv is compiled."""
    import mmcv.ops  # noqa: F401

    from vit_plugin.detection import ext

    for name, module in list(sys.modules.items()):
        if name.startswith('mmcv.ops.') and hasattr(module, 'ext_module'):
            monkeypatch.setattr(module, 'ext_module', ext)
    return ext
