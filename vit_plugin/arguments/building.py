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

IMPORT_REMEDY = 'name the module that registers it in custom_imports=dict(imports=[...]).'
# The errors that MMEngine's registries and their classes raise.
BUILD_ERRORS = (AssertionError, KeyError, RuntimeError, TypeError, ValueError)


def registered_names(registry: 'Registry') -> list[str]:
    """The names in a registry and its parents, and those of sibling registries with their scope."""
    names: set[str] = set()
    ancestor: Any = registry
    while ancestor is not None:
        names |= set(ancestor.module_dict)
        for scope, child in ancestor.children.items():
            if child is not registry:
                lazy_modules = getattr(child, 'lazy_modules', None)
                if lazy_modules is not None:  # a registry of ours; importing a framework may fail
                    child.import_from_location()
                known = (*child.module_dict, *(lazy_modules or ()))
                names |= {f'{scope}.{name}' for name in known}
        ancestor = ancestor.parent
    return sorted(names)


def describe_unknown_name(name: str, registry: 'Registry') -> str:
    """The end of a sentence about a name that is not in a registry."""
    remedy = suggestion(
        name, registered_names(registry), cutoff=0.7, key=unscoped, instead_of_list=IMPORT_REMEDY
    )
    return f'there is no {name!r} among the {registry.name.replace("_", " ")}s; {remedy}'


def look_up_class(kind: Any, registry: 'Registry', scope: str | None) -> Any:
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
    """The class that :func:`look_up_class` finds.

    Raises:
        ConfigError: if there is none. The sentence begins with ``place``.
    """
    kind_class = look_up_class(kind, registry, scope)
    if kind_class is None:
        with registry.switch_scope_and_registry(scope) as here:
            raise ConfigError(f'{place}: {describe_unknown_name(kind, here)}')
    return kind_class


def why_not_built(error: BaseException) -> str | None:
    """The sentence about the component that MMEngine could not build, or None for another error.

    MMEngine's message names the component, but not the alternatives nor its place in the config.
    The frame that raised the error has the component itself.
    """
    for cause, build_locals in _failed_builds(error):
        kind: Any = build_locals.get('obj_cls')
        arguments = build_locals.get('args')
        is_missing = kind is None and isinstance(cause, (KeyError, RuntimeError))
        if is_missing and isinstance(build_locals.get('obj_type'), str):
            return describe_unknown_name(build_locals['obj_type'], build_locals['registry'])
        if isinstance(cause, TypeError) and isinstance(arguments, Mapping):
            try:
                check(kind.__name__, Signature.of(kind), (), arguments)
            except ConfigError as problem:
                return str(problem)
    return None


def _failed_builds(error: BaseException | None) -> Iterator[tuple[BaseException, dict[str, Any]]]:
    """The errors that led to an error, each with the locals of MMEngine's ``build_from_cfg``.

    The error itself comes first. Of nested components, the innermost comes first.
    """
    while error is not None:
        frames = [frame for frame, _ in walk_tb(error.__traceback__)]
        for frame in reversed(frames):
            if frame.f_code.co_name == 'build_from_cfg' and 'args' in frame.f_locals:
                yield error, frame.f_locals
        error = error.__cause__ or error.__context__


@contextmanager
def as_config_error(
    owner: str, kinds: tuple[type[Exception], ...] = BUILD_ERRORS
) -> Iterator[None]:
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
