"""Types and ranges that many constructors share, as annotations of their arguments for pydantic."""

from collections.abc import Mapping, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import Required, TypedDict

# Values are not converted. Infinite numbers and NaN are rejected.
STRICT = ConfigDict(strict=True, extra='forbid', arbitrary_types_allowed=True, allow_inf_nan=False)

Section = dict[str, Any]  # a section of a config
Pipeline = list[Section]  # the steps that load an image


@with_config({**STRICT, 'extra': 'allow'})
class OpenDict(TypedDict):
    """A dict that may have further entries: arguments of a class of another library."""


def dict_validator(fields: Mapping[str, Any]) -> TypeAdapter:
    """pydantic's check of a dict with these entries."""
    make: Any = TypedDict  # Any, since type checkers only accept a literal dict
    return TypeAdapter(with_config(STRICT)(make('Options', dict(fields), total=False)))


def fits(annotation: Any, value: Any) -> bool:
    """True if an annotation accepts a value."""
    try:
        _validator_of(annotation).validate_python({'value': value})
    except ValidationError:
        return False
    return True


@cache
def _validator_of(annotation: Any) -> TypeAdapter:
    return dict_validator({'value': annotation})


# No sensible width, side or count is larger. Larger numbers would fail only when memory is full.
MAX_COUNT = 2**24

Count = Annotated[int, Field(ge=0, le=MAX_COUNT)]
Interval = Annotated[int, Field(ge=1)]
OrNever = Annotated[int, Field(ge=-1)]  # an interval, or -1 for never
PositiveInt = Annotated[int, Field(ge=1, le=MAX_COUNT)]
Depth = Annotated[int, Field(ge=1, le=1000)]
Blocks = Annotated[int, Field(ge=0, le=1000)]  # 0: only the stem
Positive = Annotated[float, Field(gt=0)]
Factor = Annotated[float, Field(gt=0, le=100)]  # multiplies a width, a side or a number of blocks
NotNegative = Annotated[float, Field(ge=0)]
Rate = Annotated[float, Field(ge=0, lt=1)]
FrozenStages = Annotated[int, Field(ge=-1)] | Literal['all']  # -1 freezes nothing
Fraction = Annotated[float, Field(ge=0, le=1)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Pair = Annotated[Sequence[PositiveInt], Field(min_length=2, max_length=2)]  # (height, width)
Size = PositiveInt | Pair
Indices = Annotated[Sequence[int], Field(min_length=1)]
PositiveInts = Annotated[Sequence[PositiveInt], Field(min_length=1)]
Eps = Annotated[float, Field(gt=0, lt=1)]
Numbers = Annotated[Sequence[float], Field(min_length=1)]


def _ascending(values: Sequence[float]) -> Sequence[float]:
    if values[0] > values[1]:
        raise ValueError('Values should be (min, max)')
    return values


ASCENDING = AfterValidator(_ascending)  # annotates two numbers (min, max)


class Typed(OpenDict):
    """The config of an object: its ``type``, and its own arguments."""

    type: str | type


class _NormDetails(OpenDict, total=False):
    eps: Eps
    num_groups: PositiveInt
    momentum: Fraction | None
    affine: bool
    elementwise_affine: bool
    bias: bool


class NormChanges(_NormDetails, total=False):
    """Entries of an OpenMMLab ``norm_cfg``."""

    type: str | type


class NormConfig(_NormDetails, total=False):
    """An OpenMMLab ``norm_cfg``."""

    type: Required[str | type]


def _check_backend_args(options: dict | None) -> dict | None:
    """Raise a ``ValueError`` for options that no file backend of MMEngine takes.

    With ``backend``, only the backend of that name may take them. Without it, the prefix of a path
    will select one, so any may.
    """
    from mmengine.fileio.backends import backends

    if options is None:
        return None
    name = options.get('backend')
    # Compared and not looked up, since a wrong name may be unhashable.
    candidates = [backends[key] for key in backends if name in (None, key)]
    for backend in candidates:
        parameters = signature(backend).parameters
        takes_any = name and any(
            parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()
        )
        if takes_any or options.keys() - {'backend'} <= parameters.keys():
            return options
    raise ValueError(
        "Input should be a dict with backend='local', 'http', 'petrel', 'lmdb' or 'memcached' and "
        "the arguments of MMEngine's backend of that name, or None"
    )


# The argument ``backend_args``: options of MMEngine's file backends.
Backend = Annotated[dict | None, AfterValidator(_check_backend_args)]
InitConfig = Typed | Sequence[Typed] | None
