"""MMDetection without a compiler: mmcv's compiled ops replaced with torchvision and torch code.

Import this package before ``mmcv.ops`` and ``mmdet.models``. If mmcv has no compiled module
``mmcv._ext``, the import puts :mod:`.ext` in its place. A compiled mmcv is not changed. With
transformers 5, MMPretrain's multimodal models are left out, see
:func:`~vit_plugin.errors.leave_out_multimodal`.

In a config, write ``custom_imports=dict(imports=['vit_plugin.detection'])``. Some scripts import
the detectors before they read a config, as MMDetection's ``test.py`` does. Run them as ``python -m
vit_plugin.detection SCRIPT ARGUMENTS``.
"""

import sys
from importlib.util import find_spec

from vit_plugin.errors import ConfigError, leave_out_multimodal, needed_by

with needed_by('vit_plugin.detection'):
    import mmcv  # noqa: F401

    from vit_plugin import registry  # noqa: F401  MMEngine
leave_out_multimodal()  # MMDetection installs pycocotools

if 'mmcv._ext' not in sys.modules and find_spec('mmcv._ext') is None:
    if 'mmdet.structures' in sys.modules:  # without the ops, mmdet uses functions that only raise
        raise ConfigError(
            'vit_plugin.detection is imported after mmdet, which has found no ops by then: import '
            'it first, or run the script with `python -m vit_plugin.detection SCRIPT ARGUMENTS`.'
        )
    from vit_plugin.detection import ext

    sys.modules['mmcv._ext'] = ext
    earlier = sys.modules.get('mmcv.cnn.bricks.transformer')
    # It was imported without the ops, so it lacks the one that detectors import from it.
    if earlier:
        from mmcv.ops import MultiScaleDeformableAttention

        vars(earlier)['MultiScaleDeformableAttention'] = MultiScaleDeformableAttention
