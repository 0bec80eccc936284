"""The registries of this package: children of MMEngine's root registries, scope ``vit_plugin``.

For a name such as ``type='vit_plugin.VisionTransformer'``, MMEngine imports this file, and the
registry imports its ``locations``. This works in MMPretrain, MMDetection and MMSegmentation,
without ``custom_imports``. The parents are MMEngine's roots, because the other frameworks would not
find a child of MMPretrain's registries.
"""

import inspect
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from pkgutil import resolve_name
from typing import Any

from vit_plugin.errors import EXTRAS, ConfigError, MissingExtraError, needed_by
from vit_plugin.importable import make_importable
from vit_plugin.project import declared_rows, projects
from vit_plugin.suggestions import did_you_mean, suggestion, unscoped
from vit_plugin.task import task_declarations

with needed_by('vit_plugin'):
    from mmengine import registry as root

from vit_plugin.arguments import checked

SCOPE = 'vit_plugin'
CLASSIFIER_SCOPE = 'mmpretrain'  # the scope of classifier configs


class Registry(root.Registry):
    """A registry whose classes check their arguments. Its errors suggest the nearest known name."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # The name of a class that is imported on demand -> its module.
        self.lazy_modules: dict[str, str] = {}
        # The name of a known but unavailable class -> the error that says why.
        self.unavailable: dict[str, ConfigError] = {}

    def _register_module(self, module: Any, *args: Any, **kwargs: Any) -> None:
        super()._register_module(module, *args, **kwargs)
        if inspect.isclass(module):
            checked(module)

    def register_lazily(self, modules: Mapping[str, str]) -> None:
        """Import classes on demand, since their modules import another framework or an extra.

        Args:
            modules: the module of each class, by the name of the class. The module does not have to
                register the class itself.
        """
        self.lazy_modules.update(modules)

    def get(self, key: str) -> Any:
        """The class with this name.

        Raises:
            MissingExtraError: if the class needs an extra that is not installed.
            ConfigError: if there is no such class, or if it is unavailable.
        """
        name = key.removeprefix(f'{self.scope}.')
        self.import_from_location()
        if name in self.lazy_modules:
            module = import_module(self.lazy_modules[name])
            if name not in self._module_dict:
                self.register_module(name, module=getattr(module, name))
        try:
            registered = super().get(key)
        except RuntimeError:  # some versions of MMEngine raise it for an unknown name
            registered = None
        if registered is not None:
            return registered
        if name in self.unavailable:
            raise self.unavailable[name]
        names = sorted({*self._module_dict, *self.lazy_modules})
        if self.scope == SCOPE:
            known = [f'{SCOPE}.{other}' for other in names]
            remedy = suggestion(name, known, key=unscoped)
            raise ConfigError(f'type={key!r} is not in vit_plugin; {remedy}')
        # A registry of `stand_in`.
        raise MissingExtraError(
            f'type={key!r} needs {CLASSIFIER_SCOPE}, which is not installed: pip install '
            f'{EXTRAS[CLASSIFIER_SCOPE]}{did_you_mean(name, names) or "."}'
        )


def lazy_getattr(package: str, *registries: Registry) -> Callable[[str], type]:
    """The ``__getattr__`` of a package for classes that its registries import on demand."""

    def attribute(name: str) -> type:
        for registry in registries:
            registry.import_from_location()
            if name in registry.lazy_modules:
                return getattr(import_module(registry.lazy_modules[name]), name)
        raise AttributeError(f'module {package!r} has no attribute {name!r}')

    return attribute


def _child(parent: root.Registry, *locations: str) -> Registry:
    """A child of a root registry. The modules in ``locations`` register its classes."""
    return Registry(parent.name, parent=parent, scope=SCOPE, locations=[*locations])


MODELS = _child(root.MODELS, 'vit_plugin.models')
DATASETS = _child(root.DATASETS, 'vit_plugin.data')
DATA_SAMPLERS = _child(root.DATA_SAMPLERS, 'vit_plugin.data')
TRANSFORMS = _child(root.TRANSFORMS, 'vit_plugin.data')
HOOKS = _child(root.HOOKS, 'vit_plugin.engine', 'vit_plugin.report')
OPTIMIZERS = _child(root.OPTIMIZERS, 'vit_plugin.engine')
OPTIM_WRAPPERS = _child(root.OPTIM_WRAPPERS, 'vit_plugin.engine')
OPTIM_WRAPPER_CONSTRUCTORS = _child(root.OPTIM_WRAPPER_CONSTRUCTORS, 'vit_plugin.engine')
FUNCTIONS = _child(root.FUNCTIONS, 'vit_plugin.engine')
RUNNERS = _child(root.RUNNERS, 'vit_plugin.engine')
METRICS = _child(root.METRICS, 'vit_plugin.engine')
# MMEngine warns about a registry without locations, so this module stands for them.
LOOPS = _child(root.LOOPS, __name__)
LOOPS.register_lazily(
    dict.fromkeys(('SlicedTestLoop', 'SlicedValLoop'), 'vit_plugin.inference.sliced_loops')
)


def stand_in(scope: str) -> None:
    """Fill a scope with the classes that projects declare in place of MMPretrain's.

    MMEngine imports the module ``scope.registry`` of an unknown scope, and warns at every component
    that it builds if there is none, so this module takes its place.
    """
    for name, parent in vars(root).items():
        if isinstance(parent, root.Registry):
            child = Registry(parent.name, parent=parent, scope=scope, locations=[__name__])
            child.register_lazily(declared_rows('stand_ins').get(name, {}))
    sys.modules[f'{scope}.registry'] = sys.modules[__name__]


def needed_class(feature: str, place: str) -> Any:
    """A class of MMPretrain or mmcv, or if these are missing, its replacement from a project.

    Args:
        feature: what needs the class.
        place: the class as ``'module:name'``.

    Raises:
        MissingExtraError: if the package is not installed, and there is no replacement.
    """
    module, _, name = place.partition(':')
    if not find_spec(module.partition('.')[0]):
        replacements = {
            class_name: replacement_module
            for stand_ins in declared_rows('stand_ins').values()
            for class_name, replacement_module in stand_ins.items()
        }
        place = f'{replacements.get(name, module)}:{name}'
    with needed_by(feature):
        make_importable()
        return resolve_name(place)


if not find_spec(CLASSIFIER_SCOPE):
    stand_in(CLASSIFIER_SCOPE)
for _registered in (
    *(project.registered for project in projects()),
    *task_declarations('registered').values(),
):
    for _registry, _modules in _registered.items():
        globals()[_registry].register_lazily(_modules)
MODELS.unavailable.update(
    {name: ConfigError(reason) for name, reason in declared_rows('unavailable').items()}
)
