"""Datasets that the framework lacks."""

# isort: off
from vit_plugin import registry  # noqa: F401  first, since it says what to install where MMEngine is missing
# isort: on

from .digits import Digits

__all__ = ['Digits']
