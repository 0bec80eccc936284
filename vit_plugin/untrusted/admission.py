"""Validate the config in a checkpoint, which is data of an unknown person, against the table.

Only the model, its preprocessing and the class names of such a config are used, and its data by a
test. Each type, argument and string is compared with :mod:`vit_plugin.untrusted.table`; anything
else is refused. Settings that prediction and test do not need are dropped: hooks, optimizers,
initial weights.

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
    if isinstance(hooks, list):  # the only kind with a part in a test puts the average in place
        averages = [
            hook
            for hook in hooks
            if isinstance(hook, Mapping) and _is_in(PLACES['hook'], hook.get('type'), scope)
        ]
        settings = {**settings, 'custom_hooks': averages}
    return _Admission(path).part(settings, USES[use], NOTHING, '', scope)


class _Admission(NamedTuple):
    """Compares a config with the table. ``path`` is that of the checkpoint."""

    path: str

    def part(
        self, part: Mapping, place: Place, strings: Pattern[str], field: str, scope: str
    ) -> dict[str, Any]:
        """A section of a config without unused settings.

        ``strings`` is the rule for other arguments.
        """
        scope, admitted = part.get('_scope_', scope), {}
        if scope not in SCOPES:
            where = f'{field}._scope_' if field else 'default_scope'
            raise self.refusal(where, f'the package {scope!r}')
        for key, value in part.items():
            if not isinstance(key, (str, int)):
                raise self.refusal(field, repr(part))
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
                value = self.argument(value, rule or strings, place, where, scope)
            admitted[key] = value
        return admitted

    def check_type(self, name: Any, place: Place, field: str, scope: str) -> None:
        """Raise a ``ConfigError`` for a class that is not allowed in this place."""
        argument = next((key for key in field.split('.')[-2::-1] if not key.isdecimal()), '')
        words = place.words.get(argument, '').split()
        # Within classes of this package, a name without a scope is one of ours.
        if name not in words and not any(_is_in(place, name, one) for one in (scope, 'vit_plugin')):
            raise self.refusal(field, f'{name!r} as a {place.what}')

    def argument(self, value: Any, rule: Rule, place: Place, field: str, scope: str) -> Any:
        """Validate the value of an argument by its rule."""
        if isinstance(rule, Pattern):
            return self.value(value, place, rule, field, scope)
        if isinstance(rule, list):
            if value is None or fits(Sequence[str], value):
                return value
            raise self.refusal(field, f'{value!r} in place of a list of names')
        if isinstance(value, str):
            self.check_type(value, PLACES[rule], field, scope)
            return value
        return self.value(value, PLACES[rule], None, field, scope)

    def value(
        self, value: Any, place: Place, strings: Pattern[str] | None, field: str, scope: str
    ) -> Any:
        """A part of a place; or a value of one of its arguments, with strings of this form."""
        if isinstance(value, Mapping):
            if strings is None or place.others == 'taken':
                return self.part(value, place, NOTHING, field, scope)
            return self.part(value, PLACES['values'], strings, field, scope)
        if isinstance(value, (list, tuple)):
            items = (
                self.value(one, place, strings, f'{field}.{i}', scope)
                for i, one in enumerate(value)
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
        """Build the error about a place in the config."""
        return ConfigError(
            f'The config in {self.path!r} names at {field} {what}, which is not in the table of '
            f'what a checkpoint may name; {UNTRUSTED_REMEDY}.'
        )


def _is_in(place: Place, name: Any, scope: str) -> bool:
    """True if a class is allowed in this place."""
    modules = tuple(f'{module}.' for module in place.modules.split())
    for registry in place.registries if isinstance(name, str) else ():
        module, known = find_registered(registry, name, scope)
        if f'{module}.'.startswith(modules):
            return known in (place.names.split() or {known} - {*place.refused.split()})
    return False


def find_registered(registry: Registry, name: str, scope: str) -> tuple[str, str]:
    """The module of the class that is registered under a name, and the name of the class there.

    Both are empty if there is none. ``Registry.get`` would import other modules before it is known
    whether the class is allowed.
    """
    scope, name = name.rpartition('.')[::2] if '.' in name else (scope, name)
    if scope not in SCOPES:
        return '', ''
    with suppress(ImportError):  # a framework may not be installed
        import_module(f'{scope}.registry')
    # Some registries have no child for this framework.
    here: Registry | None = registry.children.get(scope, registry)
    while here is not None:
        # MMDetection's data sets print that OneDL cannot be imported.
        with redirect_stdout(StringIO()):
            here.import_from_location()
        if (registered := here.module_dict.get(name)) is not None:
            return getattr(registered, '__module__', ''), getattr(registered, '__name__', name)
        if later := getattr(here, 'later', {}).get(name):
            return later, name
        here = here.parent
    return '', ''
