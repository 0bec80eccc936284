"""Types and ranges that many constructors share, see :mod:`vit_plugin.arguments`."""

from collections.abc import Sequence
from inspect import Parameter, signature
from typing import Annotated

from pydantic import AfterValidator, Field, with_config
from typing_extensions import Required, TypedDict

from vit_plugin.annotations import OPEN

LIMIT = 2**24  # no sensible width, side or count is larger. Larger numbers would fail only when memory is full

Count = Annotated[int, Field(ge=0, le=LIMIT, description=f'a whole number from 0 to {LIMIT}')]
PositiveInt = Annotated[int, Field(ge=1, le=LIMIT, description=f'a whole number from 1 to {LIMIT}')]
Depth = Annotated[int, Field(ge=1, le=1000, description='a whole number from 1 to 1000')]
Positive = Annotated[float, Field(gt=0, description='a finite number above 0')]
NotNegative = Annotated[float, Field(ge=0, description='a finite number from 0')]
Rate = Annotated[float, Field(ge=0, lt=1, description='a number from 0 to below 1')]
Fraction = Annotated[float, Field(ge=0, le=1, description='a number from 0 to 1')]
Seed = Annotated[int, Field(ge=0, lt=2**32, description='a whole number from 0 to 2**32 - 1')]
Pair = Annotated[Sequence[PositiveInt], Field(min_length=2, max_length=2,
                                              description='two positive whole numbers (height, width)')]
Size = PositiveInt | Pair
Indices = Annotated[Sequence[int], Field(min_length=1)]
PositiveInts = Annotated[Sequence[PositiveInt], Field(min_length=1)]
Eps = Annotated[float, Field(gt=0, lt=1, description='a number above 0 and below 1')]
Numbers = Annotated[Sequence[float], Field(min_length=1)]


def _ascending(values: Sequence[float]) -> Sequence[float]:
    if values[0] > values[1]:
        raise ValueError
    return values


ASCENDING = AfterValidator(_ascending)  # of an annotation for two numbers (min, max)


@with_config(OPEN)
class Typed(TypedDict):
    """The config of an object: its ``type``, and its own arguments."""
    type: str | type


@with_config(OPEN)
class _NormDetails(TypedDict, total=False):
    eps: Eps
    num_groups: PositiveInt
    momentum: Fraction | None
    affine: bool
    elementwise_affine: bool
    bias: bool


@with_config(OPEN)
class NormChanges(_NormDetails, total=False):
    """Entries of an OpenMMLab ``norm_cfg``."""
    type: str | type


@with_config(OPEN)
class NormConfig(_NormDetails, total=False):
    """An OpenMMLab ``norm_cfg``."""
    type: Required[str | type]


def _of_a_backend(options: dict | None) -> dict | None:
    """Refuse what no file backend of MMEngine takes. Where none is named, the files' address chooses one."""
    from mmengine.fileio.backends import backends
    if options is not None:
        name = options.get('backend')
        if name is not None and name not in list(backends):  # a name that has no hash, too
            raise ValueError
        for kind in [backends[name]] if name else backends.values():
            taken = signature(kind).parameters
            if name and any(parameter.kind is Parameter.VAR_KEYWORD for parameter in taken.values()):
                return options
            if options.keys() - {'backend'} <= taken.keys():
                return options
        raise ValueError
    return options


# Arguments of MMEngine's file backends.
Backend = Annotated[dict | None, AfterValidator(_of_a_backend), Field(
    description="a dict with backend='local', 'http', 'petrel', 'lmdb' or 'memcached' and the arguments of MMEngine's "
                'backend of that name, or None')]

InitConfig = Typed | Sequence[Typed] | None
