"""A run's config: read, completed, and checked in a second for errors that would take minutes.

:mod:`.runnable`, which checks the config of a training, imports the training code.
"""

from .channels import check_channels
from .data import LOADER_SECTIONS, with_pipeline
from .options import check_options
from .read import (
    apply_loader_defaults,
    apply_options,
    data_workers,
    entry_for_framework,
    framework_model,
    read_config,
)

__all__ = [
    'LOADER_SECTIONS',
    'apply_loader_defaults',
    'apply_options',
    'check_channels',
    'check_options',
    'data_workers',
    'entry_for_framework',
    'framework_model',
    'read_config',
    'with_pipeline',
]
