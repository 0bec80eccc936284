"""Check the values of weights: finite, and floating point where the model's are."""

from collections.abc import Iterable
from typing import Any

from torch import Tensor, nn
from torch.distributed.tensor import DTensor

from vit_plugin.errors import ConfigError
from vit_plugin.weights.reading.lazy import Weights
from vit_plugin.weights.rules import check_real


def check_finite(
    weights: Iterable[tuple[str, Any]],
    source: str,
    remedy: str = 'give one that was saved before its training failed',
) -> None:
    """Raise a ``ConfigError`` for weights that are infinite or NaN.

    Args:
        weights: names and tensors.
        source: their source, for the message.
        remedy: the end of the message.
    """
    for name, value in weights:
        value = value.to_local() if isinstance(value, DTensor) else value
        # Check the sum first, which is faster.
        if not isinstance(value, Tensor) or value.is_meta or value.sum().isfinite():
            continue
        if not value.isfinite().all():
            file = f' {source!r}' if source else ''
            raise ConfigError(
                f'The checkpoint{file} has infinite values or NaN in {name!r}; {remedy}.'
            )


def overflow_remedy(dtype: str | None) -> str:
    """The end of the message of :func:`check_finite` if a conversion to ``dtype`` overflowed."""
    return f'--dtype {dtype} cannot hold its values: give bfloat16 or float32'


def check_floating_point(model: nn.Module, weights: Weights) -> None:
    """Check that weights with the model's own names are floating point where the model's are.

    Raises:
        ConfigError: if one is not.
    """
    for name, target in model.state_dict().items():
        value = weights.get(name)
        if isinstance(value, Tensor) and isinstance(target, Tensor) and target.is_floating_point():
            check_real(name, value)
