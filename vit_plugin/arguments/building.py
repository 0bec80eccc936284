"""Check the types and arguments of the components that MMEngine builds from a config."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from traceback import walk_tb
from typing import TYPE_CHECKING, Any

from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import suggestion, unscoped

from .check import check
from .signature import Signature

if TYPE_CHECKING:
    from mmengine.registry import Registry

IMPORT = 'name the module that registers it in custom_imports=dict(imports=[...]).'
# The errors that MMEngine's registries and their classes raise.
CAUGHT = (AssertionError, KeyError, RuntimeError, TypeError, ValueError)


def registered(registry: 'Registry') -> list[str]:
    """The names in a registry and its parents, and those of sibling registries with their scope."""
    names: set[str] = set()
    above: Any = registry
    while above is not None:
        names |= set(above.module_dict)
        for scope, child in above.children.items():
            if child is not registry:
                later = getattr(child, 'later', None)
                if later is not None:  # the module is ours; importing a framework may fail
                    child.import_from_location()
                names |= {f'{scope}.{name}' for name in (*child.module_dict, *(later or ()))}
        above = above.parent
    return sorted(names)


def unknown(name: str, registry: 'Registry') -> str:
    """The end of a sentence about a name that is not in a registry."""
    remedy = suggestion(name, registered(registry), cutoff=0.7, key=unscoped, otherwise=IMPORT)
    return f'there is no {name!r} among the {registry.name.replace("_", " ")}s; {remedy}'


def look_up(kind: Any, registry: 'Registry', scope: str | None) -> Any:
    """The class with this name in the scope of a framework, or None.

    A class is returned unchanged.
    """
    if not isinstance(kind, str):
        return kind
    with registry.switch_scope_and_registry(scope) as here:
        try:
            return here.get(kind)
        except RuntimeError:  # raised by some versions of MMEngine
            return None


def find_class(place: str, kind: Any, registry: 'Registry', scope: str | None) -> Any:
    """The class that :func:`look_up` finds.

    Raises:
        ConfigError: if there is none. The sentence begins with ``place``.
    """
    kind_class = look_up(kind, registry, scope)
    if kind_class is None:
        with registry.switch_scope_and_registry(scope) as here:
            raise ConfigError(f'{place}: {unknown(kind, here)}')
    return kind_class


def why_not_built(error: BaseException) -> str | None:
    """The sentence about the component that MMEngine could not build, or None for another error.

    MMEngine's message names the component, but not the alternatives nor its place in the config.
    The frame that raised the error has the component itself.
    """
    for cause, part in _failed_parts(error):
        kind: Any = part.get('obj_cls')
        given = part.get('args')
        is_missing = kind is None and isinstance(cause, (KeyError, RuntimeError))
        if is_missing and isinstance(part.get('obj_type'), str):
            return unknown(part['obj_type'], part['registry'])
        if isinstance(cause, TypeError) and isinstance(given, Mapping):
            try:
                check(kind.__name__, Signature.of(kind), (), given)
            except ConfigError as found:
                return str(found)
    return None


def _failed_parts(error: BaseException | None) -> Iterator[tuple[BaseException, dict[str, Any]]]:
    """The chain of errors behind one, each with what MMEngine was building, innermost first."""
    while error is not None:
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        for frame in reversed(frames):
            if frame.f_code.co_name == 'build_from_cfg' and 'args' in frame.f_locals:
                yield error, frame.f_locals
        error = error.__cause__ or error.__context__


@contextmanager
def as_config_error(owner: str, kinds: tuple[type[Exception], ...] = CAUGHT) -> Iterator[None]:
    """Turn another library's error about arguments into one sentence.

    Args:
        owner: subject of the sentence.
        kinds: the exceptions to replace.

    Raises:
        ConfigError: in place of such an exception.
    """
    try:
        yield
    except kinds as error:
        if isinstance(error, ConfigError):
            raise
        if known := why_not_built(error):
            raise ConfigError(f'{owner}: {known}') from error
        reason = ' '.join(str(error).split()).strip('"\'').rstrip('.') or 'it rejects the values'
        raise ConfigError(
            f'{owner}: {reason} ({type(error).__name__}); see its docstring for what may be given.'
        ) from error
