"""MMPretrain's multimodal models, left out where they cannot be imported."""

import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

OLDEST_WITHOUT = 5  # transformers 5 lacks what MMPretrain's multimodal models import


def leave_out_multimodal() -> None:
    """Let MMPretrain import its other models beside transformers 5 and pycocotools.

    It imports the multimodal models as soon as both are installed. This sets the flag that it would set if one were
    missing, so that a config with such a model is told what to install. It does nothing where they can be imported.
    Call it before the first import of ``mmpretrain.models``, ``mmpretrain.datasets`` or ``mmpretrain.apis``.
    """
    try:
        installed = int(version('transformers').partition('.')[0])
    except (PackageNotFoundError, ValueError):
        return
    if installed >= OLDEST_WITHOUT and 'mmpretrain.models' not in sys.modules and find_spec('mmpretrain'):
        from mmpretrain.utils import dependency
        dependency.WITH_MULTIMODAL = False
