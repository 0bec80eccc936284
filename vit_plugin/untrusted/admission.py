"""Validate the config in a checkpoint, which an unknown person may have written.

Building a config calls any registered class with any arguments, which could open files or run code.
So only the parts that are needed are used: the model, its preprocessing and the class names; a test
also uses the data. Each class, argument and string in them is compared with the
:class:`~vit_plugin.untrusted.table.Place` of :mod:`vit_plugin.untrusted.table` for this part of a
config (a model, a transform, a data set ...); anything that the table lacks is refused. Settings
that no use needs are dropped: other hooks, optimizers, initial weights.

A config given with ``--config`` is a program, and is not validated here.
"""

from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout, suppress
from importlib import import_module
from io import StringIO
from re import Pattern
from typing import Any, NamedTuple

from mmengine.registry import Registry

from vit_plugin.arguments import fits
from vit_plugin.errors import ConfigError

from .table import NOTHING, PATHS, PLACES, SCOPES, USES, Place, Rule

UNTRUSTED_REMEDY = (
    'if you trust it, give its config with --config FILE, or start a training from it with --arch'
)


def validate_untrusted(
    settings: Mapping[str, Any], path: str, use: str = 'predict'
) -> dict[str, Any]:
    """The settings of a checkpoint's config that are used, if the table allows everything in them.

    Args:
        settings: the config, plain values.
        path: where the checkpoint is, for messages.
        use: ``'start'`` (of a training), ``'predict'``, ``'test'`` or ``'probe'``.

    Raises:
        ConfigError: with the first name that the table lacks.
    """
    scope = settings.get('default_scope', 'mmpretrain')
    hooks = settings.get('custom_hooks')
    if isinstance(hooks, list):  # a test needs only the EMAHook, which swaps in the EMA weights
        ema_hooks = [
            hook
            for hook in hooks
            if isinstance(hook, Mapping) and _is_allowed(PLACES['hook'], hook.get('type'), scope)
        ]
        settings = {**settings, 'custom_hooks': ema_hooks}
    return _Admission(path).validate_section(
        settings, USES[use], strings=NOTHING, field='', scope=scope
    )


class _Admission(NamedTuple):
    """Compares a config with the table, and returns what is used of it.

    Attributes:
        path: the path of the checkpoint, for messages.
    """

    path: str

    def validate_section(
        self, section: Mapping, place: Place, strings: Pattern[str], field: str, scope: str
    ) -> dict[str, Any]:
        """Validate a section of a config, and return it without unused settings.

        Args:
            section: the section, such as the dict of one layer.
            place: its place in the table.
            strings: the pattern of strings in arguments for which the table has no rule.
            field: its dotted path in the config, for messages.
            scope: the framework of types without a prefix.
        """
        scope, admitted = section.get('_scope_', scope), {}
        if scope not in SCOPES:
            where = f'{field}._scope_' if field else 'default_scope'
            raise self.refusal(where, f'the package {scope!r}')
        for key, value in section.items():
            if not isinstance(key, (str, int)):
                raise self.refusal(field, repr(section))
            rule, where = place.arguments.get(str(key)), f'{field}.{key}'.removeprefix('.')
            if key == 'type' and place.registries:
                self.check_type(value, place, where, scope)
            elif key in place.unused.split():
                continue
            elif key in place.emptied.split():
                value = None
            elif key != '_scope_':
                if rule is None and place.others == 'left out':
                    continue
                if rule is None and place.others == 'refused':
                    raise self.refusal(where, repr(value))
                value = self.validate_argument(value, rule or strings, place, where, scope)
            admitted[key] = value
        return admitted

    def check_type(self, name: Any, place: Place, field: str, scope: str) -> None:
        """Raise a ``ConfigError`` for a class that is not allowed in this place."""
        # `field` ends with the key of the type; before it is the argument, perhaps with an index.
        argument = next((key for key in field.split('.')[-2::-1] if not key.isdecimal()), '')
        if name in place.plain_types.get(argument, '').split():
            return
        # Within classes of this package, a name without a scope is one of ours.
        if not (_is_allowed(place, name, scope) or _is_allowed(place, name, 'vit_plugin')):
            raise self.refusal(field, f'{name!r} as a {place.what}')

    def validate_argument(
        self, value: Any, rule: Rule, place: Place, field: str, scope: str
    ) -> Any:
        """Validate the value of an argument by its rule, see :data:`.table.Rule`."""
        if isinstance(rule, Pattern):
            return self.validate_value(value, place, rule, field, scope)
        if isinstance(rule, list):  # any list of names, since the only such rule is [ANY]
            if value is None or fits(Sequence[str], value):
                return value
            raise self.refusal(field, f'{value!r} in place of a list of names')
        if isinstance(value, str):
            self.check_type(value, PLACES[rule], field, scope)
            return value
        return self.validate_value(value, PLACES[rule], strings=None, field=field, scope=scope)

    def validate_value(
        self, value: Any, place: Place, strings: Pattern[str] | None, field: str, scope: str
    ) -> Any:
        """Validate a value, and the items and sections in it.

        Args:
            value: the value.
            place: the place of the sections in it if ``strings`` is None, else that of the class
                with this argument.
            strings: the pattern of the argument's strings, or None.
            field, scope: see :meth:`validate_section`.
        """
        if isinstance(value, Mapping):
            if strings is None or place.others == 'taken':
                return self.validate_section(value, place, NOTHING, field, scope)
            return self.validate_section(value, PLACES['values'], strings, field, scope)
        if isinstance(value, (list, tuple)):
            items = (
                self.validate_value(item, place, strings, f'{field}.{i}', scope)
                for i, item in enumerate(value)
            )
            return type(value)(items)
        is_number = isinstance(value, (int, float)) and strings not in (None, *PATHS)
        if (
            value is None
            or is_number
            or (isinstance(value, str) and (strings or NOTHING).fullmatch(value))
        ):
            return value
        raise self.refusal(field, repr(value))

    def refusal(self, field: str, what: str) -> ConfigError:
        """Build the error about a field of the config.

        Args:
            field: the dotted path of the field.
            what: what it names.
        """
        return ConfigError(
            f'The config in {self.path!r} names at {field} {what}, which is not in the table of '
            f'what a checkpoint may name; {UNTRUSTED_REMEDY}.'
        )


def _is_allowed(place: Place, name: Any, scope: str) -> bool:
    """True if a class is allowed in this place."""
    if not isinstance(name, str):
        return False
    # With a dot, so that mmdet.models does not allow mmdet.models_of_others.
    modules = tuple(f'{module}.' for module in place.modules.split())
    for registry in place.registries:
        module, class_name = find_registered(registry, name, scope)
        if f'{module}.'.startswith(modules):
            if place.names:
                return class_name in place.names.split()
            return class_name not in place.refused.split()
    return False


def find_registered(registry: Registry, name: str, scope: str) -> tuple[str, str]:
    """The module of the class that is registered under a name, and the name of the class there.

    Both are empty if there is none. Unlike ``Registry.get``, it does not import the modules of
    lazily registered classes, before it is known whether the class is allowed.
    """
    scope, name = name.rpartition('.')[::2] if '.' in name else (scope, name)
    if scope not in SCOPES:
        return '', ''
    with suppress(ImportError):  # a framework may not be installed
        import_module(f'{scope}.registry')
    # Some registries have no child for this framework.
    level: Registry | None = registry.children.get(scope, registry)
    while level is not None:
        # MMDetection's data sets print that OneDL cannot be imported.
        with redirect_stdout(StringIO()):
            level.import_from_location()
        if (registered := level.module_dict.get(name)) is not None:
            return getattr(registered, '__module__', ''), getattr(registered, '__name__', name)
        # Our registries know the modules of classes that are registered lazily.
        if module := getattr(level, 'lazy_modules', {}).get(name):
            return module, name
        level = level.parent
    return '', ''
