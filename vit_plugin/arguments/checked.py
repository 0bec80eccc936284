"""Classes that check their arguments.

The annotations of the constructor are the only source. Every class that is registered in
:mod:`vit_plugin.registry` is checked, whether it is built from a config or in Python. The values
are not changed.
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
    made: Any = called
    is_class = isinstance(called, type)

    @cache  # deferred to the first call: an annotation may name something later in its file
    def signature() -> Signature:
        return Signature.of(called, own=True)

    if not is_class:

        @wraps(made)
        def call(*args: Any, **kwargs: Any) -> Any:
            check(made.__name__, signature(), args, kwargs)
            return made(*args, **kwargs)

        return cast(Checked, call)

    constructor: Callable[..., None] | None = vars(made).get('__init__')

    @wraps(made.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        check(made.__name__, signature(), args, kwargs)
        # Raised by OpenMMLab's base classes.
        with as_config_error(made.__name__, (AssertionError,)):
            if constructor is None:
                super(made, self).__init__(*args, **kwargs)
            else:
                constructor(self, *args, **kwargs)
        if type(self) is made:  # not in the constructor of a base class: all layers are built
            _check_layers(self)

    made.__init__ = __init__
    return called


def _check_layers(built: Any) -> None:
    """Reject a ``layer`` in an ``init_cfg`` that MMEngine would not find and silently skip."""
    given = getattr(built, 'init_cfg', None) or ()
    for cfg in given if isinstance(given, (list, tuple)) else (given,):
        layers = cfg.get('layer') or ()
        if not layers:
            continue
        kinds = {
            base.__name__
            for module in built.modules()
            for base in (type(module), *type(module).__bases__)
        }
        for layer in [layers] if isinstance(layers, str) else layers:
            if layer not in kinds:
                raise ConfigError(
                    f'{type(built).__name__}: init_cfg: layer={layer!r} is not one of its layers; '
                    f'{suggestion(layer, sorted(kinds))}'
                )
