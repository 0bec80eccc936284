"""Marks for tests that need an extra, which may not be installed."""

from importlib.util import find_spec

import pytest

needs_mmdet = pytest.mark.skipif(not find_spec('mmdet'), reason='mmdet is not installed')
needs_mmseg = pytest.mark.skipif(not find_spec('mmseg'), reason='mmseg is not installed')
