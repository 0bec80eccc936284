"""Child registries of MMEngine's roots, scope ``vit_plugin``.

A scoped name such as ``type='vit_plugin.VisionTransformer'`` makes MMEngine import this file, and the
registry its ``locations``, from any host (MMPretrain, MMDetection, MMSegmentation) and without
``custom_imports``. They hang from MMEngine's roots, not from MMPretrain's registries, because a
grandchild is not found from a sibling host.
"""

from vit_plugin.errors import needed_by

with needed_by('vit_plugin'):
    from mmengine import registry as root
    from mmengine.registry import Registry

SCOPE = 'vit_plugin'


def _child(parent: Registry, location: str) -> Registry:
    return Registry(parent.name, parent=parent, scope=SCOPE, locations=[location])


MODELS = _child(root.MODELS, 'vit_plugin.models')
DATASETS = _child(root.DATASETS, 'vit_plugin.data')
TRANSFORMS = _child(root.TRANSFORMS, 'vit_plugin.data')
HOOKS = _child(root.HOOKS, 'vit_plugin.engine')
OPTIM_WRAPPERS = _child(root.OPTIM_WRAPPERS, 'vit_plugin.engine')
OPTIM_WRAPPER_CONSTRUCTORS = _child(root.OPTIM_WRAPPER_CONSTRUCTORS, 'vit_plugin.engine')
