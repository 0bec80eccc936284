"""Replaces ``mmcv._ext``: the ops of this package's modules, with mmcv's names and arguments.

The autograd functions of ``mmcv.ops`` pass tensors by position and numbers by name. They also
allocate the buffers that the ops fill. Any name without an op is a function that raises an error
with the remedy.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from vit_plugin.errors import ConfigError

# Name of an op -> its replacement: the public functions of these modules, without imported ones.
OPS: dict[str, Callable] = {
    name: op
    for file in ('deform', 'focal_loss', 'nms', 'roi')
    for name, op in vars(import_module(f'vit_plugin.detection.{file}')).items()
    if getattr(op, '__module__', '') == f'vit_plugin.detection.{file}' and not name.startswith('_')
}


def get_compiler_version() -> str:
    """MMEngine's runner logs this in its report of the environment."""
    return 'none: vit_plugin.detection'


get_compiling_cuda_version = get_compiler_version


def raise_missing_op(name: str, *args: Any, **kwargs: Any) -> NoReturn:
    """Stand in for an op without a replacement: raise an error that names it."""
    raise ConfigError(
        f"vit_plugin.detection has no replacement for mmcv's op {name!r}: compile mmcv by "
        '`MMCV_WITH_OPS=1 pip install --no-build-isolation --no-deps --no-cache-dir '
        '--force-reinstall onedl-mmcv`, with the compiler set up as docs/detection.md says.'
    )


def __getattr__(name: str) -> Callable:
    # At import, mmcv asserts that every op exists, even if no model calls it.
    if name.startswith('_'):
        raise AttributeError(name)
    return OPS.get(name) or partial(raise_missing_op, name)
