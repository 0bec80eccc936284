"""Make the OpenMMLab frameworks importable as installed, and import less of them.

mmcv may be installed without its compiled ops, and transformers in a version that breaks
MMPretrain's multimodal models. Neither matters to other models, but both break their imports.
MMEngine imports transformers for one optimizer, and MMPretrain imports MMDetection for one layer.
These two take longer than everything else, so they are imported only for configs that need them.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module, reload
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

# Importing this module provides mmcv's ops, if mmcv lacks them.
OPS_MODULE = 'vit_plugin.detection'
MULTIMODAL = 'mmpretrain.models.multimodal'
# MMPretrain's module with a layer for detectors, and the layer, which is None without MMDetection.
DETECTION_LAYER = 'mmpretrain.models.utils.res_layer_extra_norm', 'ResLayerExtraNorm'
OPTIMIZER = 'Adafactor'  # transformers' optimizer; MMEngine calls torch's TorchAdafactor


def make_importable() -> None:
    """Make the frameworks importable after this call, regardless of earlier imports.

    Working imports are not changed, and a second call does nothing. Missing packages are reported
    by the import that needs them.
    """
    with suppress(ImportError):
        leave_out_multimodal()
        if find_spec('mmcv'):
            import_module(OPS_MODULE)


def register_framework_models(scope: str | None) -> None:
    """Import only MMPretrain's classifiers, or add the layer that detectors need.

    Args:
        scope: the ``default_scope`` of the config that is built next. For ``'mmpretrain'`` its
            models are imported without MMDetection.
    """
    module, layer = DETECTION_LAYER
    if scope == 'mmpretrain':
        with suppress(ImportError), hide_packages('mmdet'):  # reported when the model is built
            import_module('mmpretrain.models')
    elif scope == 'mmdet' and getattr(sys.modules.get(module), layer, True) is None:
        reload(sys.modules[module])


def register_optimizer(wrapper: Any) -> None:
    """Register transformers' ``Adafactor`` if the section ``optim_wrapper`` of a config names it.

    MMEngine does so when it is imported, unless :func:`hide_packages` hid transformers then.
    """
    if OPTIMIZER in str(wrapper):
        from mmengine.optim.optimizer.builder import OPTIMIZERS, register_transformers_optimizers

        if OPTIMIZER not in OPTIMIZERS.module_dict:
            register_transformers_optimizers()


@contextmanager
def hide_packages(*packages: str) -> Iterator[None]:
    """Within this context, packages that were not imported yet seem not to be installed."""
    absent = [name for name in packages if name not in sys.modules]
    hidden: dict = dict.fromkeys(absent)  # Python raises ImportError for a module that is None
    sys.modules.update(hidden)
    try:
        yield
    finally:
        for name in absent:
            sys.modules.pop(name, None)


def leave_out_multimodal() -> None:
    """Let MMPretrain import its other models where transformers 5 and pycocotools are installed.

    It imports its multimodal models as soon as both are installed, and transformers 5 lacks what
    they need. This sets the flag that MMPretrain would set if one were missing, so that a config
    with such a model gets an error with what to install. It does nothing if they can be imported,
    or if MMPretrain's models already have been.
    """
    try:
        major_version = int(version('transformers').partition('.')[0])
    except (PackageNotFoundError, ValueError):  # not installed, or a version without a number
        return
    if major_version >= 5 and 'mmpretrain.models' not in sys.modules and find_spec('mmpretrain'):
        from mmpretrain.registry import MODELS
        from mmpretrain.utils import dependency

        dependency.WITH_MULTIMODAL = False
        # A failed import has registered some classes, which are now registered again.
        for name, model_class in [*MODELS.module_dict.items()]:
            if model_class.__module__.startswith(MULTIMODAL):
                del MODELS.module_dict[name]
