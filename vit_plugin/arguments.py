"""Check the arguments of a class before it is built: their names, types and ranges.

The annotations of the constructor are the only source. Every class that is registered in :mod:`vit_plugin.registry` is
checked, whether it is built from a config or in Python. The values are not changed.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, wraps
from reprlib import Repr
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from typing_extensions import NotRequired, Required, TypedDict, Unpack, is_typeddict

from vit_plugin.errors import ConfigError

# Values are not converted. Infinite numbers and NaN are refused.
STRICT = ConfigDict(strict=True, extra='forbid', arbitrary_types_allowed=True, allow_inf_nan=False)
# For a dict with further entries for a class of another library.
OPEN = ConfigDict(STRICT, extra='allow')

WORDS = {int: 'a whole number', float: 'a finite number', bool: 'True or False', str: 'a string', type: 'a class',
         dict: 'a dict', Mapping: 'a dict', type(None): 'None', Callable: 'a function', Any: 'any value'}
# The errors that MMEngine's registries and their classes raise.
REFUSALS = (AssertionError, KeyError, RuntimeError, TypeError, ValueError)
Class = TypeVar('Class', bound=type)
_FITS: dict[int, tuple[Any, Callable]] = {}
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80


def checked(cls: Class) -> Class:
    """Make a class refuse wrong arguments with a ``ConfigError``. Returns the class.

    ``**kwargs`` of the constructor are the arguments of the next constructor in the method resolution order.
    ``**kwargs: Unpack[Options]`` are those of a ``TypedDict``. For base classes in other packages, only the names are
    checked. The attribute ``renamed_arguments`` of a class maps old names to what to write now.
    """
    own, known = vars(cls).get('__init__'), []

    @wraps(cls.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if not known:  # not earlier, because an annotation may name a later part of its file
            known.append(Arguments.of_class(cls))
        check(cls.__name__, known[0], args, kwargs)
        with refusing(cls.__name__, (AssertionError, )):  # OpenMMLab's base classes raise these for a wrong value
            if own is None:
                super(cls, self).__init__(*args, **kwargs)
            else:
                own(self, *args, **kwargs)

    cls.__init__ = __init__
    return cls


@contextmanager
def refusing(owner: str, kinds: tuple[type[Exception], ...] = REFUSALS) -> Iterator[None]:
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
        reason = ' '.join(str(error).split()).strip('"\'').rstrip('.') or 'it refuses the values'
        raise ConfigError(f'{owner}: {reason} ({type(error).__name__}); see its docstring for what may be '
                          'given.') from error


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
        home = ('vit_plugin', built.__module__.partition('.')[0])
        fields, required, positions, renamed = {}, [], [], {}
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
    def of_dict(cls, options: type) -> 'Arguments':
        """The entries of a ``TypedDict``."""
        fields = get_type_hints(options, include_extras=True)
        for name, annotation in fields.items():
            if get_origin(annotation) in (Required, NotRequired):
                fields[name], = get_args(annotation)
        is_open = getattr(options, '__pydantic_config__', {}).get('extra') == 'allow'
        return cls(fields, sorted(options.__required_keys__), is_open=is_open)


def check(owner: str, arguments: Arguments, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the given arguments.

    Raises:
        ConfigError: for the first argument that is unknown, missing, given twice, or of the wrong type or range.
    """
    if len(args) > len(arguments.positions):
        raise ConfigError(f'{owner} takes {len(arguments.positions)} arguments by position, got {len(args)}; give '
                          f'arguments by name.')
    given = dict(zip(arguments.positions, args, strict=False))
    for name in given.keys() & kwargs.keys():
        raise ConfigError(f'{owner}: {name} is given by position and by name; leave one out.')
    values = _plain({**given, **kwargs})
    if values.keys() <= arguments.fields.keys() >= set(arguments.required) <= values.keys() and arguments.fits(values):
        return
    raise ConfigError(f'{owner}{_complaint(arguments, values, "")}')


def _complaint(arguments: Arguments, values: Mapping[str, Any], path: str) -> str:
    """The end of a sentence about the first wrong argument. Its subject is the owner."""
    at = f': {path}' if path else ''
    for name, value in values.items():
        if name in arguments.fields or (arguments.is_open and isinstance(name, str)):
            continue
        if name in arguments.renamed:
            return f'{at} takes no {name} any more; write {arguments.renamed[name]}.'
        near = get_close_matches(str(name), arguments.fields, n=1)
        remedy = f'did you mean {near[0]}?' if near else f'it takes {", ".join(arguments.fields) or "none"}.'
        return f'{at} takes no {name} (given {name}={_short(value)}); {remedy}'
    for name in arguments.required:
        if name not in values:
            return f'{at} needs {name}, which must be {describe(arguments.fields[name])}.'
    for name, value in values.items():
        annotation = arguments.fields.get(name, Any)
        if not _fits(annotation, value):
            return _complaint_on(annotation, value, f'{path}.{name}' if path else name)
    raise AssertionError(f'{path}: each value fits by itself')


def _complaint_on(annotation: Any, value: Any, path: str) -> str:
    """The same for one value. For a valid dict or list, it is about the wrong value inside."""
    for option in _alternatives(annotation):
        if is_typeddict(option) and isinstance(value, Mapping):
            return _complaint(Arguments.of_dict(option), value, path)
        if get_origin(option) is Sequence and isinstance(value, (list, tuple)):
            for i, item in enumerate(value):
                if not _fits(*get_args(option), item):
                    return _complaint_on(*get_args(option), item, f'{path}[{i}]')
    literals = [str(choice) for option in _alternatives(annotation) if get_origin(option) is Literal
                for choice in get_args(option)]
    near = get_close_matches(value, literals, n=1) if isinstance(value, str) else []
    remedy = f'; did you mean {near[0]!r}?' if near else '.'
    return f': {path}={_short(value)} must be {describe(annotation)}{remedy}'


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


def _alternatives(annotation: Any) -> list[Any]:
    """The members of a union, without their metadata."""
    if get_origin(annotation) is Annotated:
        return _alternatives(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return [option for member in get_args(annotation) for option in _alternatives(member)]
    return [annotation]


def _short(value: Any) -> str:
    return ' '.join(_REPR.repr(value).split())


def _hints(init: Callable) -> dict[str, Any]:
    try:
        return get_type_hints(init, include_extras=True)
    except NameError:  # an annotation that only the type checker uses
        return {}


def _fits(annotation: Any, value: Any) -> bool:
    # The key is the id, because not every annotation has a hash. Keeping the annotation keeps its id unique.
    _, fits = _FITS.get(id(annotation)) or _FITS.setdefault(
        id(annotation), (annotation, _validator({'value': annotation}, STRICT)))
    return fits({'value': value})


def _validator(fields: Mapping[str, Any], config: ConfigDict) -> Callable[[Mapping[str, Any]], bool]:
    """A function that checks values. An annotation that pydantic does not know accepts any value."""
    def adapter(fields: Mapping[str, Any]) -> TypeAdapter:
        options = TypedDict('Options', dict(fields), total=False)  # noqa: UP013
        options.__pydantic_config__ = config
        return TypeAdapter(options)

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


def _plain(value: Any) -> Any:
    """Convert configs to plain dicts and lists for pydantic, with the objects that a lazy config imports."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return list(value) if isinstance(value, range) else value
