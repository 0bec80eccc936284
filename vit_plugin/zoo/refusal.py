"""Refuse a model of timm's that our backbone cannot compute exactly."""

from collections.abc import Iterator
from contextlib import contextmanager

from vit_plugin.errors import ConfigError


@contextmanager
def refuse_if(name: str) -> Iterator[None]:
    """Turn a ``ValueError`` with the reason into one sentence about the model.

    Raises:
        ConfigError: in place of it.
    """
    try:
        yield
    except ValueError as error:
        raise ConfigError(f'arch=timm://{name} cannot be computed exactly by vit_plugin.VisionTransformer: {error}; '
                          'python -m vit_plugin.zoo lists the models that can.') from error
