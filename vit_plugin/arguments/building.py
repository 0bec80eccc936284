"""Look up the classes that a config names, and explain the errors of building them.

MMEngine's registries raise errors of many classes, which name neither the nearest class nor the
argument that is wrong. Here they become one sentence.
"""

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
                if lazy_modules is not None:  # this package's; importing a framework may fail
                    child.import_from_location()
                known = (*child.module_dict, *(lazy_modules or ()))
                names |= {f'{scope}.{name}' for name in known}
        ancestor = ancestor.parent
    return sorted(names)


def describe_unknown_name(name: str, registry: 'Registry') -> str:
    """The end of a sentence about a name that is not in a registry, with the nearest names."""
    remedy = suggestion(
        name, registered_names(registry), cutoff=0.7, key=unscoped, instead_of_list=IMPORT_REMEDY
    )
    return f'there is no {name!r} among the {registry.name.replace("_", " ")}s; {remedy}'


def look_up_class(name_or_class: Any, registry: 'Registry', scope: str | None) -> Any:
    """The class with this name in the scope of a framework, or None.

    A class is returned unchanged.
    """
    if not isinstance(name_or_class, str):
        return name_or_class
    with registry.switch_scope_and_registry(scope) as here:
        try:
            return here.get(name_or_class)
        except RuntimeError:  # raised by some versions of MMEngine
            return None


def find_class(place: str, name_or_class: Any, registry: 'Registry', scope: str | None) -> Any:
    """The class that :func:`look_up_class` finds.

    Raises:
        ConfigError: if there is none. The sentence begins with ``place``.
    """
    found = look_up_class(name_or_class, registry, scope)
    if found is None:
        with registry.switch_scope_and_registry(scope) as here:
            raise ConfigError(f'{place}: {describe_unknown_name(name_or_class, here)}')
    return found


def why_not_built(error: BaseException) -> str | None:
    """The sentence about the component that MMEngine could not build, or None for another error.

    MMEngine's message names the component, but neither the alternatives nor its place in the
    config. The class and its arguments are read from the locals of the frame that raised the error.
    """
    for cause, build_locals in _failed_builds(error):
        # obj_cls, obj_type and args are variables of MMEngine's build_from_cfg.
        component_class: Any = build_locals.get('obj_cls')
        arguments: Any = build_locals.get('args')
        is_missing = component_class is None and isinstance(cause, (KeyError, RuntimeError))
        if is_missing and isinstance(build_locals.get('obj_type'), str):
            return describe_unknown_name(build_locals['obj_type'], build_locals['registry'])
        # There is no class if the type is neither a name nor one, such as a number.
        has_class = component_class is not None and isinstance(arguments, Mapping)
        if has_class and isinstance(cause, TypeError):
            owner = getattr(component_class, '__name__', 'The function')  # a partial has no name
            signature = Signature.of(component_class)
            unknown = arguments.keys() - signature.fields.keys()
            # Another package may take further names by **kwargs, unless the error is about one, or
            # about a missing argument, which may be misspelt.
            about_names = any(text in str(cause) for text in ('missing', *map(repr, unknown)))
            if signature.takes_any and not about_names:
                arguments = {name: arguments[name] for name in arguments if name not in unknown}
            try:
                check(owner, signature, (), arguments)
            except ConfigError as problem:
                return str(problem)
    return None


def _failed_builds(error: BaseException | None) -> Iterator[tuple[BaseException, dict[str, Any]]]:
    """An error and those that led to it, each with the locals of MMEngine's ``build_from_cfg``.

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
        # The text of a KeyError is the repr of its argument.
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        reason = ' '.join(str(text).split()).rstrip('.') or 'it rejects the values'
        raise ConfigError(
            f'{owner}: {reason} ({type(error).__name__}); see its docstring for what may be given.'
        ) from error
