"""The annotations of a constructor or a ``TypedDict``: what they accept, and in words."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config
from pydantic.errors import PydanticUserError
from typing_extensions import NotRequired, Required, TypedDict, Unpack, is_typeddict

# Values are not converted. Infinite numbers and NaN are refused.
STRICT = ConfigDict(strict=True, extra='forbid', arbitrary_types_allowed=True, allow_inf_nan=False)
# For a dict with further entries for a class of another library.
OPEN = ConfigDict(strict=True, extra='allow', arbitrary_types_allowed=True, allow_inf_nan=False)

WORDS = {int: 'a whole number', float: 'a finite number', bool: 'True or False', str: 'a string', type: 'a class',
         dict: 'a dict', Mapping: 'a dict', type(None): 'None', Callable: 'a function', Any: 'any value'}
_FITS: dict[int, tuple[Any, Callable]] = {}


@dataclass
class Arguments:
    """The arguments of a class, or the entries of a dict.

    Attributes:
        fields: the annotation of each argument.
        required: the required arguments.
        positions: the arguments that may be given by position, in order.
        is_open: whether any other argument is accepted too.
        renamed: old names -> what to write now.
    """
    fields: dict[str, Any] = field(default_factory=dict)
    required: list[str] = field(default_factory=list)
    positions: list[str] = field(default_factory=list)
    is_open: bool = False
    renamed: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.fits = _validator(self.fields, OPEN if self.is_open else STRICT)

    @classmethod
    def of_class(cls, built: type) -> 'Arguments':
        """What the constructors of a class and of its bases accept, as far as they hand arguments on."""
        home = ('vit_plugin', built.__module__.partition('.')[0])
        fields: dict[str, Any] = {}
        required: list[str] = []
        positions: list[str] = []
        renamed: dict[str, str] = {}
        takes_names = takes_positions = is_own = True
        for base in built.__mro__:
            renamed = {**vars(base).get('renamed_arguments', {}), **renamed}
            init = vars(base).get('__init__')
            if init is None or inspect.unwrap(init) is object.__init__ or not (takes_names or takes_positions):
                continue
            hints = _hints(init) if init.__module__.partition('.')[0] in home else {}
            parameters = list(inspect.signature(init).parameters.values())[1:]
            kinds = {parameter.kind: parameter for parameter in parameters}
            for parameter in parameters:
                if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                    continue
                if takes_positions and parameter.kind is not parameter.KEYWORD_ONLY and parameter.name not in positions:
                    positions.append(parameter.name)
                if takes_names and parameter.name not in fields:
                    fields[parameter.name] = hints.get(parameter.name, Any)
                    if is_own and parameter.default is parameter.empty:  # the child may pass an argument of its parent
                        required.append(parameter.name)
            rest = kinds.get(inspect.Parameter.VAR_KEYWORD)
            options = hints.get(rest.name) if rest else None
            if takes_names and get_origin(options) is Unpack:
                inherited = cls.of_dict(*get_args(options))
                fields = {**inherited.fields, **fields}
                required += inherited.required
            takes_names = takes_names and rest is not None and get_origin(options) is not Unpack
            takes_positions = takes_positions and inspect.Parameter.VAR_POSITIONAL in kinds
            is_own = False
        return cls(fields, required, positions, renamed=renamed)

    @classmethod
    @cache
    def of_dict(cls, options: Any) -> 'Arguments':
        """The entries of a ``TypedDict``."""
        fields = get_type_hints(options, include_extras=True)
        for name, annotation in fields.items():
            if get_origin(annotation) in (Required, NotRequired):
                fields[name], = get_args(annotation)
        is_open = getattr(options, '__pydantic_config__', {}).get('extra') == 'allow'
        return cls(fields, sorted(options.__required_keys__), is_open=is_open)


def fits(annotation: Any, value: Any) -> bool:
    """Whether an annotation accepts a value."""
    # The key is the id, because not every annotation has a hash. Keeping the annotation keeps its id unique.
    _, validate = _FITS.get(id(annotation)) or _FITS.setdefault(
        id(annotation), (annotation, _validator({'value': annotation}, STRICT)))
    return validate({'value': value})


def describe(annotation: Any) -> str:
    """Describe an annotation in words."""
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        descriptions = [info.description for info in args[1:] if getattr(info, 'description', None)]
        lengths = [f' ({bound} {getattr(limit, name)} of them)' for info in args[1:]
                   for limit in getattr(info, 'metadata', ())
                   for name, bound in (('min_length', 'at least'), ('max_length', 'at most')) if hasattr(limit, name)]
        return descriptions[0] if descriptions else describe(args[0]) + ''.join(lengths)
    if origin in (Union, UnionType):
        return ' or '.join(describe(option) for option in args)
    if origin is Literal:
        return ('one of ' if len(args) > 1 else '') + ', '.join(map(repr, args))
    if is_typeddict(annotation):
        return f'a dict of {", ".join(get_type_hints(annotation))}'
    if origin is Sequence:
        return f'a list, each item {describe(args[0])}'
    if origin is tuple:
        return f'({", ".join(describe(item) for item in args)})'
    return WORDS.get(origin or annotation) or f'a {getattr(annotation, "__name__", annotation)}'


def alternatives(annotation: Any) -> list[Any]:
    """The members of a union, without their metadata."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [option for member in get_args(annotation) for option in alternatives(member)]
    return [annotation]


def _hints(init: Callable) -> dict[str, Any]:
    try:
        return get_type_hints(init, include_extras=True)
    except NameError:  # an annotation that only the type checker uses
        return {}


def _validator(fields: Mapping[str, Any], config: ConfigDict) -> Callable[[Mapping[str, Any]], bool]:
    """A function that checks values. An annotation that pydantic does not know accepts any value."""
    def adapter(fields: Mapping[str, Any]) -> TypeAdapter:
        make: Any = TypedDict
        return TypeAdapter(with_config(config)(make('Options', dict(fields), total=False)))

    def known(annotation: Any) -> Any:
        try:
            adapter({'value': annotation})
        except PydanticUserError:
            return Any
        return annotation

    try:
        validate = adapter(fields).validate_python
    except PydanticUserError:
        validate = adapter({name: known(annotation) for name, annotation in fields.items()}).validate_python

    def fits(values: Mapping[str, Any]) -> bool:
        try:
            validate(values)
        except ValidationError:
            return False
        return True

    return fits
