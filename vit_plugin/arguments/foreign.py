"""Types of the arguments of other packages' classes, by the names of the arguments.

Annotations of other packages are not read: many are missing or too wide, and some too narrow.
Arguments of names that are not in the table may have any value.
"""

import os
from collections.abc import Mapping, Sequence
from inspect import Parameter
from multiprocessing import get_all_start_methods
from types import NoneType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from .fields import (
    Backend,
    Fraction,
    InitConfig,
    Interval,
    NotNegative,
    Numbers,
    OrNever,
    Positive,
    PositiveInt,
    PositiveInts,
    Seed,
    fits,
)

MAX_WORKERS_PER_CORE = 64
Workers = Annotated[int, Field(ge=0, le=MAX_WORKERS_PER_CORE * (os.cpu_count() or 1))]


def _reject_plain_value(value: Any) -> Any:
    """Raise a ``ValueError`` for a value that is neither a config, a list of them nor a module."""
    if isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
        return value
    if isinstance(value, (bool, int, float, str, bytes, list, tuple, set, NoneType)):
        raise ValueError('Input should be a valid dictionary')
    return value


# The config of a module, a list of configs that MMEngine builds in sequence, or the module itself.
Part = Annotated[Any, AfterValidator(_reject_plain_value)]

Rule = Literal['greater', 'less']  # the direction in which a metric improves

# The types of arguments whose name means the same everywhere.
SHARED_ARGUMENTS: dict[str, Any] = {
    'accumulative_counts': PositiveInt,
    'backend_args': Backend,
    'backbone': Part,
    'base_batch_size': PositiveInt,
    'batch_size': PositiveInt,
    'color_type': Literal[
        'color',
        'grayscale',
        'unchanged',
        'color_ignore_orientation',
        'grayscale_ignore_orientation',
    ],
    'head': Part,
    'imdecode_backend': Literal['cv2', 'turbojpeg', 'pillow', 'tifffile'],
    'init_cfg': InitConfig,
    'interval': Interval,
    'loss': Part,
    'lr': NotNegative,
    'max_epochs': PositiveInt,
    'max_iters': PositiveInt,
    'max_keep_ckpts': OrNever,
    'mean': Numbers,
    'mp_start_method': Literal[tuple(get_all_start_methods())],
    'neck': Part,
    'num_classes': PositiveInt,
    'num_workers': Workers,
    'pad_size_divisor': PositiveInt,
    'pad_value': Annotated[float, Field(ge=-255, le=255)],
    'probs': Annotated[Sequence[Fraction], Field(min_length=1)],
    'rule': Rule | Sequence[Rule | None],
    'seed': Seed | None,
    'std': Annotated[Sequence[Positive], Field(min_length=1)],
    'topk': PositiveInt | PositiveInts,
    'val_interval': Interval,
    'weight_decay': NotNegative,
}


def type_by_name(parameter: Parameter) -> Any:
    """The type of an argument by its name, or Any if that is unknown or does not fit the default.

    An argument whose default is True or False is a bool, whatever its name.
    """
    default = parameter.default
    if isinstance(default, bool):
        return bool
    annotation = SHARED_ARGUMENTS.get(parameter.name, Any)
    if default is None and annotation is not Any:
        annotation = annotation | None
    return annotation if default is Parameter.empty or fits(annotation, default) else Any
