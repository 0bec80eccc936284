"""Refuse a timm model that our backbone cannot compute exactly."""

from collections.abc import Iterator
from contextlib import contextmanager

import timm

from vit_plugin.errors import ConfigError


@contextmanager
def refuse_if(name: str) -> Iterator[None]:
    """Turn a ``ValueError`` with the reason, or an attribute that a module lacks, into one sentence about the model.

    Raises:
        ConfigError: in place of it.
    """
    try:
        yield
    except (AttributeError, ValueError) as error:
        reason = f'{error} in timm {timm.__version__}' if isinstance(error, AttributeError) else str(error)
        raise ConfigError(f'arch=timm://{name} cannot be computed exactly by vit_plugin.VisionTransformer: {reason}; '
                          f"take type='vit_plugin.TimmBackbone' with name={name!r}. python -m vit_plugin.zoo lists the "
                          'models that VisionTransformer computes.') from error
