"""Arguments of a function, of a class or of a dict, by their annotations."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from typing_extensions import Required, Unpack, is_typeddict

from .fields import entries
from .foreign import shared


@dataclass
class Signature:
    """The arguments of a function or class, or the entries of a dict.

    Attributes:
        fields: the annotation of each argument.
        required: the required arguments.
        positions: the arguments that may be given by position, in order.
        renamed: old names -> their replacements.
        takes_any: whether ``**kwargs`` of another package may take further names.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    takes_any: bool = False

    @cached_property
    def adapter(self) -> TypeAdapter:
        """pydantic's check of the arguments."""
        required: Any = Required
        return entries(
            {
                name: required[annotation] if name in self.required else annotation
                for name, annotation in self.fields.items()
            }
        )

    @classmethod
    @cache
    def of(cls, called: Callable, own: bool = False) -> 'Signature':
        """The arguments of a function, or of a class and the bases that it passes arguments to.

        Args:
            called: the function or class.
            own: whether to trust the annotations of its package, as those of this package.
                Otherwise arguments are typed by their name, see :mod:`.foreign`.
        """
        exact = {'vit_plugin', _package(called)} if own else {'vit_plugin'}
        signature = cls(renamed=_renamed(called))
        takes_names = takes_positions = True
        for number, init in enumerate(_constructors(called)):
            if not (takes_names or takes_positions):
                break
            is_exact = _package(init) in exact
            hints, more, spread = _hints(init), None, False
            for parameter in _parameters(init):
                name = parameter.name
                if parameter.kind is parameter.VAR_POSITIONAL:
                    spread = True
                elif parameter.kind is parameter.VAR_KEYWORD:
                    more = hints.get(name, Any)
                else:
                    hint = hints.get(name, Any)
                    if takes_positions and parameter.kind is not parameter.KEYWORD_ONLY:
                        signature.positions += [name] * (name not in signature.positions)
                    if takes_names and name not in {*signature.fields, *signature.renamed}:
                        signature.fields[name] = hint if is_exact else shared(parameter)
                        # A subclass may set an argument of its base class.
                        if number == 0 and parameter.default is parameter.empty:
                            signature.required.append(name)
            if takes_names and get_origin(more) is Unpack:
                (options,) = get_args(more)
                signature.fields = {
                    **get_type_hints(options, include_extras=True),
                    **signature.fields,
                }
                more = None
            takes_names, takes_positions = takes_names and more is not None, spread
            signature.takes_any |= takes_names and _package(called) not in exact
        return signature


def names_within(annotation: Any, path: Sequence[str | int], name: str | int = '') -> list[str]:
    """The keys of the dicts at a path in an annotation.

    If a dict is named ``name``, only its keys.
    """
    names: list[str] = []
    kinds = _members(annotation)
    for kind in [
        kind for kind in kinds if not path and getattr(kind, '__name__', None) == name
    ] or kinds:
        hints = get_type_hints(kind, include_extras=True) if is_typeddict(kind) else {}
        if not path:
            names += hints
        elif path[0] in hints:
            names += names_within(hints[str(path[0])], path[1:], name)
        elif get_origin(kind) is Sequence:
            names += names_within(get_args(kind)[0], path[1:], name)
    return names


def _members(annotation: Any) -> list[Any]:
    """The members of a union, without their metadata."""
    if get_origin(annotation) in (Annotated, Required):
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [kind for member in get_args(annotation) for kind in _members(member)]
    return [annotation]


def _package(called: Callable) -> str:
    return (getattr(called, '__module__', None) or '').partition('.')[0]


def _constructors(called: Any) -> Iterator[Callable]:
    """The function, or the constructors of a class in the order in which they are called."""
    if not inspect.isclass(called):
        yield called
        return
    for base in called.__mro__:
        init = vars(base).get('__init__')
        if init is not None and inspect.unwrap(init) is not object.__init__:
            yield init


def _parameters(function: Callable) -> list[inspect.Parameter]:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a class in C has no signature
        return [inspect.Parameter('kwargs', inspect.Parameter.VAR_KEYWORD)]
    return [parameter for parameter in parameters if parameter.name != 'self']


def _renamed(called: Any) -> dict[str, str]:
    renamed: dict[str, str] = {}
    for base in getattr(called, '__mro__', ()):
        renamed = {**vars(base).get('renamed_arguments', {}), **renamed}
    return renamed


def _hints(function: Callable) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):  # an annotation only for type checkers
        return {}
