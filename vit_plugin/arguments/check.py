"""Check the arguments of a class before it is built: their names, types and ranges.

The annotations of the constructor are the only source. Every class that is registered in
:mod:`vit_plugin.registry` is checked, whether it is built from a config or in Python. The values
are not changed.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import wraps
from reprlib import Repr
from typing import Any, TypeVar

from pydantic import ValidationError

from vit_plugin.errors import ConfigError

from .signature import Signature, names_within

# The errors that MMEngine's registries and their classes raise.
CAUGHT = (AssertionError, KeyError, RuntimeError, TypeError, ValueError)
ORDER = ('extra_forbidden', 'missing')  # pydantic's types of the errors that come first
Class = TypeVar('Class', bound=type)
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80


def checked(cls: Class) -> Class:
    """Make a class reject wrong arguments with a ``ConfigError``. Returns the class.

    ``**kwargs`` of the constructor are the arguments of the next constructor in the method
    resolution order. ``**kwargs: Unpack[Options]`` are those of a ``TypedDict``. For base classes
    in other packages, only the names are checked. The attribute ``renamed_arguments`` of a class
    maps old names to what to write now.
    """
    built: Any = cls
    own: Callable[..., None] | None = vars(cls).get('__init__')
    known: list[Signature] = []

    @wraps(built.__init__)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        if not known:  # not earlier, because an annotation may name a later part of its file
            known.append(Signature.of_class(cls))
        check(cls.__name__, known[0], args, kwargs)
        # Raised by OpenMMLab's base classes.
        with as_config_error(cls.__name__, (AssertionError,)):
            if own is None:
                super(built, self).__init__(*args, **kwargs)
            else:
                own(self, *args, **kwargs)
        if type(self) is cls:  # all layers are built
            _check_layers(self)

    built.__init__ = __init__
    return cls


def _check_layers(built: Any) -> None:
    """Reject a ``layer`` in an ``init_cfg`` that MMEngine would not find and silently skip."""
    given = getattr(built, 'init_cfg', None) or ()
    for cfg in given if isinstance(given, (list, tuple)) else (given,):
        layers = cfg.get('layer') or ()
        if not layers:
            continue
        kinds = {
            base.__name__
            for module in built.modules()
            for base in (type(module), *type(module).__bases__)
        }
        for layer in [layers] if isinstance(layers, str) else layers:
            if layer not in kinds:
                near = get_close_matches(str(layer), kinds, n=1)
                remedy = f'did you mean {near[0]}?' if near else 'give the name of a class in it.'
                raise ConfigError(
                    f'{type(built).__name__}: init_cfg: layer={layer!r} is no layer of it; {remedy}'
                )


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
        reason = ' '.join(str(error).split()).strip('"\'').rstrip('.') or 'it rejects the values'
        raise ConfigError(
            f'{owner}: {reason} ({type(error).__name__}); see its docstring for what may be given.'
        ) from error


def check(owner: str, signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the given arguments.

    Raises:
        ConfigError: for the first argument that is unknown, missing, given twice, or of the wrong
            type or range.
    """
    if len(args) > len(signature.positions):
        raise ConfigError(
            f'{owner} takes {len(signature.positions)} arguments by position, got {len(args)}; '
            'give arguments by name.'
        )
    given = dict(zip(signature.positions, args, strict=False))
    for name in given.keys() & kwargs.keys():
        raise ConfigError(f'{owner}: {name} is given by position and by name; leave one out.')
    values = _plain({**given, **kwargs})
    try:
        signature.adapter.validate_python(values)
    except ValidationError as error:
        raise ConfigError(f'{owner}{_sentence(error, signature, values)}') from None


def _sentence(error: ValidationError, signature: Signature, values: Mapping[str, Any]) -> str:
    """The end of a sentence about the first wrong argument. Its subject is the owner.

    Of the members of a union, it is about the one in which the check came farthest.
    """
    found = [(_path(values, problem), problem) for problem in error.errors(include_url=False)]
    found.sort(
        key=lambda one: ORDER.index(one[1]['type']) if one[1]['type'] in ORDER else len(ORDER)
    )
    argument = next(
        (path for path, problem in found if len(path) == 1 and problem['type'] in ORDER),
        found[0][0],
    )[:1]
    depth = max(len(path) for path, _ in found if path[:1] == argument)
    found = _of_the_type([one for one in found if one[0][:1] == argument and len(one[0]) == depth])
    path = found[0][0]
    problems = [problem for other, problem in found if other == path]
    kind, value, (*outer, name) = problems[0]['type'], problems[0]['input'], path
    at = f': {_text(outer)}' if outer else ''
    if kind == 'missing' and isinstance(name, int):
        return f': {_text(outer)} has {name} item{"s" * (name != 1)}; give more.'
    if kind == 'missing':
        return f'{at} needs {name}; give it.'
    if kind == 'extra_forbidden':
        if not outer and name in signature.renamed:
            return f' takes no {name} any more; write {signature.renamed[name]}.'
        known = list(signature.fields)
        if outer:
            known = names_within(signature.fields[str(outer[0])], outer[1:], problems[0]['loc'][-2])
        near = get_close_matches(str(name), known, n=1)
        remedy = f'did you mean {near[0]}?' if near else f'it takes {", ".join(known) or "none"}.'
        # As of a base config's other class.
        if len([path for path in values if path not in signature.fields]) > 1:
            remedy += (
                ' To drop the arguments that a base config has for another class, add '
                '_delete_=True.'
            )
        return f'{at} takes no {name} (given {name}={_short(value)}); {remedy}'
    demands = dict.fromkeys(_demand(problem) for problem in problems)
    choices = [
        choice
        for problem in problems
        if problem['type'] == 'literal_error'
        for choice in re.findall("'(.*?)'", problem['ctx']['expected'])
    ]
    near = get_close_matches(value, choices, n=1) if isinstance(value, str) else []
    remedy = f'; did you mean {near[0]!r}?' if near else '.'
    return f': {_text(path)}={_short(value)} must {" or ".join(demands)}{remedy}'


def _of_the_type(found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """The problems of the given type, among dicts that are distinguished by ``type``."""
    of_type = [
        one
        for one in found
        if one[0][-1] == 'type' and one[1]['type'] in ('literal_error', 'missing')
    ]
    others = {problem['loc'][:-1] for _, problem in of_type}
    return [one for one in found if one[1]['loc'][:-1] not in others] or of_type


def _path(value: Any, problem: Any) -> tuple[str | int, ...]:
    """The keys and indices in pydantic's path to a value, without the names of union members."""
    steps, path = problem['loc'], list[str | int]()
    for i, step in enumerate(steps):
        is_inside = (isinstance(value, Mapping) and step in value) or (
            isinstance(value, (list, tuple)) and isinstance(step, int) and step < len(value)
        )
        if is_inside:
            value = value[step]
        if is_inside or (problem['type'] == 'missing' and i == len(steps) - 1):
            path.append(step)
    return tuple(path)


def _text(path: Sequence[str | int]) -> str:
    return ''.join(
        f'[{step}]' if isinstance(step, int) else f'.{step}' for step in path
    ).removeprefix('.')


def _demand(problem: Any) -> str:
    """The required type, from a pydantic message such as ``Input should be a valid integer``."""
    if problem['type'] == 'sequence_str' or problem.get('ctx', {}).get('class') == 'Sequence':
        return 'be a list'
    return re.sub(r'^(Value error, )?\w+ should ', '', problem['msg'])


def _short(value: Any) -> str:
    return ' '.join(_REPR.repr(value).split())


def _plain(value: Any) -> Any:
    """Convert configs to plain dicts and lists for pydantic, with lazy imports resolved."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return list(value) if isinstance(value, range) else value
