"""Arguments of a class or a dict, by its annotations."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError, with_config
from typing_extensions import Required, TypedDict, Unpack, is_typeddict

from .fields import STRICT


@dataclass
class Signature:
    """The arguments of a class, or the entries of a dict.

    Attributes:
        fields: the annotation of each argument.
        required: the required arguments.
        positions: the arguments that may be given by position, in order.
        renamed: old names -> what to write now.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)

    @cached_property
    def adapter(self) -> TypeAdapter:
        """pydantic's check of the arguments."""
        required: Any = Required
        return _adapter(
            {
                name: required[annotation] if name in self.required else annotation
                for name, annotation in self.fields.items()
            }
        )

    @classmethod
    def of_class(cls, built: type) -> 'Signature':
        """The arguments of a class's constructor, and of its bases' where it passes them on."""
        # Of others, the annotations do not count.
        packages = ('vit_plugin', built.__module__.partition('.')[0])
        found = cls()
        takes_names = takes_positions = is_own = True
        for base in built.__mro__:
            found.renamed = {**vars(base).get('renamed_arguments', {}), **found.renamed}
            init = vars(base).get('__init__')
            if (
                init is None
                or inspect.unwrap(init) is object.__init__
                or not (takes_names or takes_positions)
            ):
                continue
            hints = _hints(init) if init.__module__.partition('.')[0] in packages else {}
            parameters = list(inspect.signature(init).parameters.values())[1:]
            kinds = {parameter.kind: parameter for parameter in parameters}
            for parameter in parameters:
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    continue
                name = parameter.name
                if (
                    takes_positions
                    and parameter.kind is not parameter.KEYWORD_ONLY
                    and name not in found.positions
                ):
                    found.positions.append(name)
                if takes_names and name not in found.fields:
                    found.fields[name] = hints.get(name, Any)
                    # The child may pass an argument of its parent.
                    if is_own and parameter.default is parameter.empty:
                        found.required.append(name)
            rest = kinds.get(inspect.Parameter.VAR_KEYWORD)
            options = hints.get(rest.name) if rest else None
            if takes_names and get_origin(options) is Unpack:
                (entries,) = get_args(options)
                found.fields = {**get_type_hints(entries, include_extras=True), **found.fields}
            takes_names = takes_names and rest is not None and get_origin(options) is not Unpack
            takes_positions = takes_positions and inspect.Parameter.VAR_POSITIONAL in kinds
            is_own = False
        return found


def fits(annotation: Any, value: Any) -> bool:
    """True if an annotation accepts a value."""
    try:
        _adapter({'value': annotation}).validate_python({'value': value})
    except ValidationError:
        return False
    return True


def names_within(annotation: Any, path: Sequence[str | int], name: str | int = '') -> list[str]:
    """The keys of the dicts at a path in an annotation. If one is named ``name``, only its keys."""
    names: list[str] = []
    kinds = _members(annotation)
    for kind in [
        kind for kind in kinds if not path and getattr(kind, '__name__', None) == name
    ] or kinds:
        entries = get_type_hints(kind, include_extras=True) if is_typeddict(kind) else {}
        if not path:
            names += entries
        elif path[0] in entries:
            names += names_within(entries[str(path[0])], path[1:], name)
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


def _hints(init: Callable) -> dict[str, Any]:
    try:
        return get_type_hints(init, include_extras=True)
    except NameError:  # an annotation that only the type checker uses
        return {}


def _adapter(fields: Mapping[str, Any]) -> TypeAdapter:
    make: Any = TypedDict
    return TypeAdapter(with_config(STRICT)(make('Options', dict(fields), total=False)))
