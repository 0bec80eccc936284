"""Check arguments before a class is built: their names, types and ranges, in one sentence."""

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from reprlib import Repr
from typing import Any

from pydantic import ValidationError

from anyfolder.wording import counted
from vit_plugin.errors import ConfigError
from vit_plugin.suggestions import closest, suggestion

from .signature import Signature, names_within

# pydantic's error types that are reported first: an unknown argument, and a missing one.
FIRST_ERRORS = ('extra_forbidden', 'missing')
_REPR = Repr()
_REPR.maxstring = _REPR.maxother = 80


def check(owner: str, signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Check the arguments of a call.

    Args:
        owner: name of the function or class, the subject of the sentence.
        signature: the arguments that it takes.
        args, kwargs: the given arguments.

    Raises:
        ConfigError: for the first argument that is unknown, missing, given twice, or of the wrong
            type or range.
    """
    if len(args) > len(signature.positions):
        raise ConfigError(
            f'{owner} takes {len(signature.positions)} arguments by position, got {len(args)}; '
            'give arguments by name.'
        )
    by_position = dict(zip(signature.positions, args, strict=False))
    for name in by_position:
        if name in kwargs:
            raise ConfigError(f'{owner}: {name} is given by position and by name; leave one out.')
    values = _plain({**by_position, **kwargs})
    for path, value in _exact_numbers(values):
        raise ConfigError(
            f'{owner}: {_path_text(path)}={value!r} must be a plain number: {float(value):.6g}.'
        )
    try:
        signature.adapter.validate_python(values)
    except ValidationError as error:
        raise ConfigError(f'{owner}{_sentence(error, signature, values)}') from None


def _sentence(error: ValidationError, signature: Signature, values: Mapping[str, Any]) -> str:
    """The end of a sentence about the first wrong argument. The owner, its subject, comes before.

    For a union, the sentence is about the member that fits best.
    """
    problems_by_path = [
        (_path(values, problem), problem) for problem in error.errors(include_url=False)
    ]
    argument = min(problems_by_path, key=_order)[0][:1]
    # Pydantic lists the problems of every member. The one that fits best fails at the deepest path.
    depth = max(len(path) for path, _ in problems_by_path if path[:1] == argument)
    problems_by_path = _without_other_dicts(
        [pair for pair in problems_by_path if pair[0][:1] == argument and len(pair[0]) == depth]
    )
    path = min(problems_by_path, key=_order)[0]
    problems = [problem for other, problem in problems_by_path if other == path]
    error_type, value = problems[0]['type'], problems[0]['input']
    *outer, name = path
    place = f': {_path_text(outer)}' if outer else ''
    if error_type == 'missing' and isinstance(name, int):  # an item of a tuple
        return f': {_path_text(outer)} has {counted(name, "item")}; give more.'
    if error_type == 'missing':
        return f'{place} needs {name}; give it.'
    if error_type == 'extra_forbidden':
        if not outer and name in signature.renamed:
            return f' takes no {name} any more; write {signature.renamed[name]}.'
        known = list(signature.fields)
        if outer:  # in pydantic's path, the TypedDict's name comes before the key, at index -2
            known = names_within(signature.fields[str(outer[0])], outer[1:], problems[0]['loc'][-2])
        remedy = suggestion(name, known, list_start='it takes')
        # The other arguments may be left over from a base config with another class.
        if len([key for key in values if key not in signature.fields]) > 1:
            remedy += (
                ' To drop the arguments that a base config has for another class, add '
                '_delete_=True.'
            )
        return f'{place} takes no {name} (given {name}={_short(value)}); {remedy}'
    demands = dict.fromkeys(_demand(problem) for problem in problems)
    choices = [
        choice
        for problem in problems
        if problem['type'] == 'literal_error'
        for choice in re.findall("'(.*?)'", problem['ctx']['expected'])
    ]
    near = closest(value, choices) if isinstance(value, str) else []
    remedy = f'; did you mean {near[0]!r}?' if near else '.'
    return f': {_path_text(path)}={_short(value)} must {" or ".join(demands)}{remedy}'


def _order(pair: tuple[Any, Any]) -> tuple[bool, int]:
    """The order of problems, given as (path, problem).

    First come unknown and missing arguments, then unknown and missing names within arguments, then
    wrong values.
    """
    path, error_type = pair[0], pair[1]['type']
    is_first = error_type in FIRST_ERRORS
    rank = FIRST_ERRORS.index(error_type) if is_first else len(FIRST_ERRORS)
    return len(path) > 1 or not is_first, rank


def _without_other_dicts(problems: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Drop the problems of dicts with another ``type``, in a union of dicts that it distinguishes.

    If no dict of the union has the given ``type``, only the problems of ``type`` are left.
    """
    type_problems = [
        pair
        for pair in problems
        if pair[0][-1] == 'type' and pair[1]['type'] in ('literal_error', 'missing')
    ]
    other_dicts = {problem['loc'][:-1] for _, problem in type_problems}
    return [pair for pair in problems if pair[1]['loc'][:-1] not in other_dicts] or type_problems


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


def _path_text(path: Sequence[str | int]) -> str:
    """A path as it is written in Python, such as ``a.b[0]``."""
    return ''.join(
        f'[{step}]' if isinstance(step, int) else f'.{step}' for step in path
    ).removeprefix('.')


def _demand(problem: Any) -> str:
    """The required type, from a pydantic message such as ``Input should be a valid integer``."""
    if problem['type'] == 'sequence_str' or problem.get('ctx', {}).get('class') == 'Sequence':
        return 'be a list'
    return re.sub(r'^(Value error, )?\w+ should ', '', problem['msg'])


def _short(value: Any) -> str:
    """A value as one line of limited length."""
    return ' '.join(_REPR.repr(value).split())


def _exact_numbers(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """Numbers that pydantic accepts as floats but torch does not, with their paths."""
    if isinstance(value, (Decimal, Fraction)):
        yield path, value
    items = value.items() if isinstance(value, dict) else ()
    for name, item in enumerate(value) if isinstance(value, (list, tuple)) else items:
        yield from _exact_numbers(item, (*path, name))


def _plain(value: Any) -> Any:
    """Convert configs to plain dicts and lists for pydantic, with lazy imports resolved."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    return list(value) if isinstance(value, range) else value
