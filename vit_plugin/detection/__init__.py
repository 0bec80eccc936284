"""MMDetection without a compiler: stand-ins for mmcv's compiled ops, on torchvision and torch.

Importing this package is all: where mmcv was installed without its compiled module ``mmcv._ext``, :mod:`.ext` takes
that name, before ``mmcv.ops`` or ``mmdet.models`` ask for it; a compiled mmcv is left as it is. In a config:
``custom_imports=dict(imports=['vit_plugin.detection'])``. For a script that imports the detectors before it
reads its config, as MMDetection's ``test.py`` does: ``python -m vit_plugin.detection SCRIPT ARGUMENTS``.
"""

import sys
from importlib.util import find_spec

from vit_plugin.errors import ConfigError, needed_by

with needed_by('vit_plugin.detection'):
    import mmcv  # noqa: F401

if 'mmcv._ext' not in sys.modules and find_spec('mmcv._ext') is None:
    if 'mmdet.structures' in sys.modules:  # without the ops it has put functions that raise in their place
        raise ConfigError('vit_plugin.detection is imported after mmdet, which has found no ops by then: import it '
                          'first, or run the script with `python -m vit_plugin.detection SCRIPT ARGUMENTS`.')
    from vit_plugin.detection import ext
    sys.modules['mmcv._ext'] = ext
    earlier = sys.modules.get('mmcv.cnn.bricks.transformer')
    if earlier:  # imported before there were ops, and so without the one that detectors take from it
        from mmcv.ops import MultiScaleDeformableAttention
        earlier.MultiScaleDeformableAttention = MultiScaleDeformableAttention
