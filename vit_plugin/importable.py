"""What MMPretrain, MMDetection and MMSegmentation need to be imported as they are installed here.

mmcv may be installed without its compiled ops, and transformers in a version that MMPretrain's
multimodal models do not fit. Neither concerns the other models, but both stop their imports.
"""

import sys
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

# Provides mmcv's ops when it is imported.
OPS = 'vit_plugin.detection'
MULTIMODAL = 'mmpretrain.models.multimodal'


def make_importable() -> None:
    """Let the frameworks be imported after this call, whatever was imported before it.

    What works is not changed, and a second call does nothing. What is not installed is left to the
    import that needs it.
    """
    with suppress(ImportError):
        leave_out_multimodal()
        if find_spec('mmcv'):
            import_module(OPS)


def leave_out_multimodal() -> None:
    """Let MMPretrain import its other models where transformers 5 and pycocotools are installed.

    It imports its multimodal models as soon as both are installed, and transformers 5 lacks what
    they need. This sets the flag that MMPretrain would set if one were missing, so that a config
    with such a model is told what to install. It does nothing where they can be imported, and
    nothing after MMPretrain's models have been imported.
    """
    try:
        installed = int(version('transformers').partition('.')[0])
    except (PackageNotFoundError, ValueError):
        return
    if installed >= 5 and 'mmpretrain.models' not in sys.modules and find_spec('mmpretrain'):
        from mmpretrain.registry import MODELS
        from mmpretrain.utils import dependency

        dependency.WITH_MULTIMODAL = False
        # An import that failed before has registered some, in whose place others are registered.
        for name, kind in [*MODELS.module_dict.items()]:
            if kind.__module__.startswith(MULTIMODAL):
                del MODELS.module_dict[name]
