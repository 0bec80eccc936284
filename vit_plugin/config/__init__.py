"""A run's config: read, completed, and checked in a second for errors that would take minutes."""

from .channels import check_channels
from .data import with_pipeline
from .options import check_options
from .read import (
    apply_loader_defaults,
    apply_options,
    data_workers,
    framework_model,
    of_framework,
    read_config,
)
from .runnable import check_checkpoint, check_config
from .sections import LOADER_SECTIONS

__all__ = [
    'LOADER_SECTIONS',
    'apply_loader_defaults',
    'apply_options',
    'check_channels',
    'check_checkpoint',
    'check_config',
    'check_options',
    'data_workers',
    'framework_model',
    'of_framework',
    'read_config',
    'with_pipeline',
]
