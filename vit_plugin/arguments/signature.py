"""The arguments that a function, class or dict takes, with their annotations.

pydantic checks given values against them, see :mod:`.check`.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter
from typing_extensions import Required, Unpack, is_typeddict

from .fields import dict_validator
from .foreign import type_by_name


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
        required: Any = Required  # Any, since type checkers reject a variable in Required[...]
        return dict_validator(
            {
                name: required[annotation] if name in self.required else annotation
                for name, annotation in self.fields.items()
            }
        )

    @classmethod
    @cache
    def of(cls, called: Callable, trust_package: bool = False) -> 'Signature':
        """The arguments of a function, or of a class and the bases that it passes arguments to.

        A constructor passes arguments on if it takes ``*args`` or ``**kwargs``.

        Args:
            called: the function or class.
            trust_package: whether to trust the annotations of its package, as those of this one.
                Otherwise arguments are typed by their name, see :mod:`.foreign`.
        """
        trusted = {'vit_plugin', _package(called)} if trust_package else {'vit_plugin'}
        signature = cls(renamed=_renamed(called))
        takes_names = takes_positions = True  # whether arguments can reach this constructor
        for depth, init in enumerate(_constructors(called)):
            if not (takes_names or takes_positions):
                break
            is_trusted = _package(init) in trusted
            hints, kwargs_hint, has_args = _hints(init), None, False
            for parameter in _parameters(init):
                name = parameter.name
                if parameter.kind is parameter.VAR_POSITIONAL:
                    has_args = True
                elif parameter.kind is parameter.VAR_KEYWORD:
                    kwargs_hint = hints.get(name, Any)
                else:
                    hint = hints.get(name, Any)
                    is_positional = parameter.kind is not parameter.KEYWORD_ONLY
                    if takes_positions and is_positional and name not in signature.positions:
                        signature.positions.append(name)
                    if takes_names and name not in {*signature.fields, *signature.renamed}:
                        signature.fields[name] = hint if is_trusted else type_by_name(parameter)
                        # A subclass may itself set a required argument of its base class.
                        if depth == 0 and parameter.default is parameter.empty:
                            signature.required.append(name)
            if takes_names and get_origin(kwargs_hint) is Unpack:
                (options,) = get_args(kwargs_hint)
                signature.fields = {
                    **get_type_hints(options, include_extras=True),
                    **signature.fields,
                }
                kwargs_hint = None  # there are no other names
            takes_names, takes_positions = takes_names and kwargs_hint is not None, has_args
            signature.takes_any |= takes_names and _package(called) not in trusted
        return signature


def names_within(annotation: Any, path: Sequence[str | int], name: str | int = '') -> list[str]:
    """The keys that a dict may have at a path within an argument, to suggest one of them.

    Args:
        annotation: the annotation of the argument.
        path: keys and indices that lead from the argument to the dict.
        name: name of a ``TypedDict``. If the dict may be of this class, only its keys are returned.
    """
    names: list[str] = []
    members = _members(annotation)
    if not path:
        members = [each for each in members if getattr(each, '__name__', None) == name] or members
    for member in members:
        hints = get_type_hints(member, include_extras=True) if is_typeddict(member) else {}
        if not path:
            names += hints
        elif path[0] in hints:
            names += names_within(hints[str(path[0])], path[1:], name)
        elif get_origin(member) is Sequence:
            names += names_within(get_args(member)[0], path[1:], name)
    return names


def _members(annotation: Any) -> list[Any]:
    """The members of a union, or the annotation alone; without ``Annotated`` and ``Required``."""
    if get_origin(annotation) in (Annotated, Required):
        return _members(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [inner for member in get_args(annotation) for inner in _members(member)]
    return [annotation]


def _package(called: Callable) -> str:
    """The top-level package that defines a function or class."""
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
    """The parameters of a function, without ``self``."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a class in C has no signature
        return [inspect.Parameter('kwargs', inspect.Parameter.VAR_KEYWORD)]
    return [parameter for parameter in parameters if parameter.name != 'self']


def _renamed(called: Any) -> dict[str, str]:
    """The renamed arguments of a class and its bases."""
    renamed: dict[str, str] = {}
    for base in getattr(called, '__mro__', ()):
        renamed = {**vars(base).get('renamed_arguments', {}), **renamed}
    return renamed


def _hints(function: Callable) -> dict[str, Any]:
    """The annotations of a function, or {} if they cannot be evaluated."""
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, AttributeError):  # an annotation only for type checkers
        return {}
