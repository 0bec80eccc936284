"""The decorator of classes and functions that check their own arguments.

The annotations are the only source of types and ranges. Every class that is registered in
:mod:`vit_plugin.registry` is decorated, and so checked whether it is built from a config or in
Python. The values are not changed.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, TypeVar, cast

from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import suggestion

from .building import as_config_error
from .check import check
from .signature import Signature

Checked = TypeVar('Checked', bound=Callable)


def checked(called: Checked) -> Checked:
    """Make a class or a function reject wrong arguments with a ``ConfigError``.

    ``**kwargs`` of the constructor are the arguments of the next constructor in the method
    resolution order. ``**kwargs: Unpack[Options]`` are those of a ``TypedDict``. Arguments of base
    classes in other packages are typed by their name, see :mod:`.foreign`. The attribute
    ``renamed_arguments`` of a class maps old names to their replacements.
    """
    target: Any = called  # untyped, since a class has other attributes than a function
    is_class = isinstance(called, type)

    @cache  # deferred to the first call: an annotation may name something later in its file
    def signature() -> Signature:
        return Signature.of(called, trust_package=True)

    if not is_class:

        @wraps(target)
        def call(*args: Any, **kwargs: Any) -> Any:
            check(target.__name__, signature(), args, kwargs)
            return target(*args, **kwargs)

        return cast(Checked, call)

    constructor: Callable[..., None] | None = vars(target).get('__init__')

    @wraps(target.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        check(target.__name__, signature(), args, kwargs)
        # OpenMMLab's base classes raise an AssertionError for a wrong argument.
        with as_config_error(target.__name__, (AssertionError,)):
            if constructor is None:
                super(target, self).__init__(*args, **kwargs)
            else:
                constructor(self, *args, **kwargs)
        if type(self) is target:  # not in the constructor of a base class: all layers are built
            _check_layers(self)

    target.__init__ = __init__
    return called


def _check_layers(built: Any) -> None:
    """Reject a ``layer`` in an ``init_cfg`` that MMEngine would not find and silently skip."""
    init_cfg = getattr(built, 'init_cfg', None) or ()
    for cfg in init_cfg if isinstance(init_cfg, (list, tuple)) else (init_cfg,):
        layers = cfg.get('layer') or ()
        if not layers:
            continue
        layer_names = {
            base.__name__
            for module in built.modules()
            for base in (type(module), *type(module).__bases__)
        }
        for layer in [layers] if isinstance(layers, str) else layers:
            if layer not in layer_names:
                raise ConfigError(
                    f'{type(built).__name__}: init_cfg: layer={layer!r} is not one of its layers; '
                    f'{suggestion(layer, sorted(layer_names))}'
                )
