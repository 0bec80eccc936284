"""MMDetection without a compiler: mmcv's compiled ops replaced with torchvision and torch code.

If mmcv has no compiled module ``mmcv._ext``, importing this package puts :mod:`.ext` in its place,
and :mod:`.earlier_imports` repairs modules that were imported without it. A compiled mmcv is not
changed. With transformers 5, MMPretrain's multimodal models are left out, see
:func:`~vit_plugin.importable.leave_out_multimodal`.

In a config, write ``custom_imports=dict(imports=['vit_plugin.detection'])``. A script that fails
before it has read its config runs as ``python -m vit_plugin.detection SCRIPT ARGUMENTS``.
"""

import sys
from importlib.util import find_spec

from vit_plugin.errors import needed_by
from vit_plugin.importable import leave_out_multimodal

with needed_by('vit_plugin.detection'):
    import mmcv  # noqa: F401

    from vit_plugin import registry  # noqa: F401  MMEngine
leave_out_multimodal()  # MMDetection installs pycocotools

if 'mmcv._ext' not in sys.modules and find_spec('mmcv._ext') is None:
    from vit_plugin.detection import earlier_imports, ext

    sys.modules['mmcv._ext'] = ext
    earlier_imports.retry()
