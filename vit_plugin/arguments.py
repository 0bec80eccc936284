"""Check the arguments of a class before it is built: their names, types and ranges.

The annotations of the constructor are the only source. Every class that is registered in :mod:`vit_plugin.registry` is
checked, whether it is built from a config or in Python. The values are not changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from reprlib import Repr
from typing import Any, Literal, TypeVar, get_args, get_origin

from typing_extensions import is_typeddict

from vit_plugin.annotations import Arguments, alternatives, describe, fits
from vit_plugin.errors import ConfigError

# The errors that MMEngine's registries and their classes raise.
REFUSALS = (AssertionError, KeyError, RuntimeError, TypeError, ValueError)
Class = TypeVar('Class', bound=type)
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80


def checked(cls: Class) -> Class:
    """Make a class refuse wrong arguments with a ``ConfigError``. Returns the class.

    ``**kwargs`` of the constructor are the arguments of the next constructor in the method resolution order.
    ``**kwargs: Unpack[Options]`` are those of a ``TypedDict``. For base classes in other packages, only the names are
    checked. The attribute ``renamed_arguments`` of a class maps old names to what to write now.
    """
    built: Any = cls
    own: Callable[..., None] | None = vars(cls).get('__init__')
    known: list[Arguments] = []

    @wraps(built.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if not known:  # not earlier, because an annotation may name a later part of its file
            known.append(Arguments.of_class(cls))
        check(cls.__name__, known[0], args, kwargs)
        with refusing(cls.__name__, (AssertionError, )):  # OpenMMLab's base classes raise these for a wrong value
            if own is None:
                super(built, self).__init__(*args, **kwargs)
            else:
                own(self, *args, **kwargs)
        if type(self) is cls:  # all layers are built
            _check_layers(self)

    built.__init__ = __init__
    return cls


def _check_layers(built: Any) -> None:
    """Refuse a ``layer`` in an ``init_cfg`` that MMEngine would not find, and so would leave out without a word."""
    given = getattr(built, 'init_cfg', None) or ()
    for cfg in given if isinstance(given, (list, tuple)) else (given, ):
        layers = cfg.get('layer') or ()
        if not layers:
            continue
        kinds = {base.__name__ for module in built.modules() for base in (type(module), *type(module).__bases__)}
        for layer in [layers] if isinstance(layers, str) else layers:
            if layer not in kinds:
                near = get_close_matches(str(layer), kinds, n=1)
                remedy = f'did you mean {near[0]}?' if near else 'give the name of a class in it.'
                raise ConfigError(f'{type(built).__name__}: init_cfg: layer={layer!r} is no layer of it; {remedy}')


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
        if not fits(annotation, value):
            return _complaint_on(annotation, value, f'{path}.{name}' if path else name)
    raise AssertionError(f'{path}: each value fits by itself')


def _complaint_on(annotation: Any, value: Any, path: str) -> str:
    """The same for one value. For a valid dict or list, it is about the wrong value inside."""
    dicts = [option for option in alternatives(annotation) if is_typeddict(option)]
    if isinstance(value, Mapping) and dicts:
        return _complaint(Arguments.of_dict(_of_type(value.get('type'), dicts)), value, path)
    for option in alternatives(annotation):
        if get_origin(option) is Sequence and isinstance(value, (list, tuple)):
            member, = get_args(option)
            for i, item in enumerate(value):
                if not fits(member, item):
                    return _complaint_on(member, item, f'{path}[{i}]')
    literals = [str(choice) for option in alternatives(annotation) if get_origin(option) is Literal
                for choice in get_args(option)]
    near = get_close_matches(value, literals, n=1) if isinstance(value, str) else []
    remedy = f'; did you mean {near[0]!r}?' if near else '.'
    return f': {path}={_short(value)} must be {describe(annotation)}{remedy}'


def _of_type(kind: Any, options: Sequence[Any]) -> Any:
    """Of several kinds of dicts, the one whose ``type`` may be this; otherwise the first."""
    types = [Arguments.of_dict(option).fields.get('type', Any) for option in options]
    return next((option for option, type_ in zip(options, types, strict=True) if fits(type_, kind)), options[0])


def _short(value: Any) -> str:
    return ' '.join(_REPR.repr(value).split())


def _plain(value: Any) -> Any:
    """Convert configs to plain dicts and lists for pydantic, with the objects that a lazy config imports."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return list(value) if isinstance(value, range) else value
