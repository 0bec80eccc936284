"""Check that a config can run: its sections, names and numbers, and the files that it reads."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from mmengine.config import Config
from mmengine.registry import MODELS, RUNNERS

from vit_plugin.arguments import Signature, check, find_class
from vit_plugin.arguments.fields import PositiveInt
from vit_plugin.errors import EXTRAS, ConfigError
from vit_plugin.importable import register_framework_models, register_optimizer
from vit_plugin.suggestions import suggestion
from vit_plugin.weights.reading.folders import check_checkpoint
from vit_plugin.weights.saved_settings import value_at

from .channels import check_channels
from .data import LOADER_SECTIONS
from .scope import in_scope, is_installed
from .sections import check_sections

RUNNABLE_FRAMEWORKS = ('mmpretrain', 'mmdet', 'mmseg', 'mmengine')
# The sections that each data loader of a run needs, besides the model.
SECTIONS_OF_LOADER = {
    'train_dataloader': ('train_cfg', 'optim_wrapper'),
    'val_dataloader': (),
    'test_dataloader': ('test_evaluator',),
}
# Substrings in the names of hooks and schedules that follow the metrics of a validation.
AFTER_VALIDATION = 'EarlyStopping', 'ReduceOnPlateau'
SWITCHES = ('resume', 'resume_changed', 'optimize', 'verbose', 'find_unused_parameters')
# Top-level entries of a config whose values are checked.
TOP_LEVEL_FIELDS = Signature(
    {
        'log_level': Literal['CRITICAL', 'ERROR', 'WARNING', 'INFO', 'DEBUG'],
        'schedule_length': PositiveInt | None,
        'load_from': str | None,
        'begin_from': str | None,
        # A text such as no would count as True.
        **dict.fromkeys(SWITCHES, bool | None),
    }
)


def check_config(cfg: Config, loaders: Sequence[str] = LOADER_SECTIONS) -> None:
    """Check a config before the run starts. Also create the work directory, which must be writable.

    Args:
        cfg: the config.
        loaders: the data loaders that will be used.

    Raises:
        ConfigError: if a section is missing, if a name is unknown, a number out of range or a
            learning rate without effect, if the work directory cannot be written, if the
            checkpoint, a data folder or an annotation file is missing, or if the neck or head does
            not fit its input.
    """
    settings = cfg.to_dict()
    register_framework_models(settings.get('default_scope'))
    register_optimizer(settings.get('optim_wrapper'))
    _check_loader_sections(settings, loaders)
    _check_validation(settings, loaders)
    _check_names(settings)
    if 'train_dataloader' in loaders:
        _check_one_cycle_rate(settings)
    check_sections(settings, loaders)
    _check_work_dir(cfg.work_dir)
    # `begin_from` are the weights of a new run, which a resumed one does not use.
    for name in ('load_from', 'begin_from'):
        path = cfg.get(name)
        if path is not None and '://' not in path:
            path = cfg[name] = os.path.expanduser(path)
        check_checkpoint(path)
    with in_scope(settings.get('default_scope')):
        check_channels(cfg.model)


def _check_loader_sections(settings: Mapping[str, Any], loaders: Sequence[str]) -> None:
    """Check that the data loaders have a data set and all sections that they need."""
    # The first loader is the command's own and required; the others are used if configured.
    used = [loader for loader in loaders if settings.get(loader) or loader == loaders[0]]
    for name in (
        *(name for loader in used for name in (loader, *SECTIONS_OF_LOADER[loader])),
        *(f'{loader}.dataset' for loader in used),
    ):
        value = value_at(settings, name)
        if not isinstance(value, (Mapping, list)) or not value:
            raise ConfigError(f'{name}={value!r} must be a dict with settings.')


def _check_validation(settings: Mapping[str, Any], loaders: Sequence[str]) -> None:
    """Check that a validation has all its sections or none, and no top-k beyond the classes."""
    sections = ['val_dataloader', 'val_cfg', 'val_evaluator']
    absent = [name for name in sections if settings.get(name) is None]
    if 'val_dataloader' in loaders and 0 < len(absent) < len(sections):
        present = [name for name in sections if name not in absent]
        raise ConfigError(
            f'{" and ".join(present)} {"need" if len(present) > 1 else "needs"} '
            f'{" and ".join(absent)}; set it, or validate nothing with --no-validate.'
        )
    if 'train_dataloader' in loaders and len(absent) == len(sections):
        _check_unvalidated(settings)
    classes = value_at(settings, 'model.head.num_classes')
    for name in ('val_evaluator', 'test_evaluator'):
        metrics = settings.get(name)
        for metric in metrics if isinstance(metrics, (list, tuple)) else [metrics]:
            topk = value_at(metric, 'topk')
            ranks = topk if isinstance(topk, (list, tuple)) else [topk]
            if isinstance(classes, int) and any(
                isinstance(rank, int) and rank > classes for rank in ranks
            ):
                raise ConfigError(
                    f'{name}: topk={topk} asks for more than the num_classes={classes} of '
                    'model.head; take smaller numbers.'
                )


def _check_unvalidated(settings: Mapping[str, Any]) -> None:
    """Check that no hook or schedule waits for a validation that the run does not have."""
    schedules = settings.get('param_scheduler')
    for component in (
        *(settings.get('default_hooks') or {}).values(),
        *(settings.get('custom_hooks') or ()),
        *(schedules if isinstance(schedules, (list, tuple)) else [schedules]),
    ):
        type_name = str(value_at(component, 'type'))
        if any(word in type_name for word in AFTER_VALIDATION):
            raise ConfigError(
                f'type={type_name!r} follows the metrics of a validation, and this run has none; '
                'leave it out, or validate.'
            )


def _check_names(settings: Mapping[str, Any]) -> None:
    """Check the framework, the runner and the plain top-level entries."""
    scope = settings.get('default_scope')
    is_known = isinstance(scope, str) and (scope in MODELS.children or is_installed(scope))
    if scope and not is_known:
        if isinstance(scope, str) and scope in EXTRAS:
            remedy = f'pip install {EXTRAS[scope]}.'
        else:
            remedy = suggestion(scope, RUNNABLE_FRAMEWORKS)
        raise ConfigError(f'default_scope={scope!r} is not an installed package; {remedy}')
    # MMEngine builds the runner before it knows the default scope.
    find_class('runner_type', settings.get('runner_type', 'Runner'), RUNNERS, None)
    entries = {name: value for name, value in settings.items() if name in TOP_LEVEL_FIELDS.fields}
    check('The config', TOP_LEVEL_FIELDS, (), entries)


def _check_one_cycle_rate(settings: Mapping[str, Any]) -> None:
    """Check that no other setting of the learning rate is ignored because of a OneCycleLR."""
    schedules = settings.get('param_scheduler')
    rate = value_at(settings, 'optim_wrapper.optimizer.lr')
    for schedule in schedules if isinstance(schedules, (list, tuple)) else [schedules]:
        type_name, highest = str(value_at(schedule, 'type')), value_at(schedule, 'eta_max')
        if 'OneCycle' in type_name and value_at(settings, 'auto_scale_lr.enable'):
            raise ConfigError(
                '--auto-scale-lr does not reach OneCycleLR, which sets the rate by itself: give '
                '--cfg-options param_scheduler.eta_max=RATE.'
            )
        if type_name == 'OneCycleLR' and rate not in (None, highest):
            raise ConfigError(
                f'optim_wrapper.optimizer.lr={rate} has no effect, because OneCycleLR has its own '
                f'eta_max={highest}; set param_scheduler.eta_max, and set lr to the same value or '
                'omit it.'
            )


def _check_work_dir(work_dir: str) -> None:
    """Create the work directory, and try to write in it."""
    try:
        os.makedirs(work_dir, exist_ok=True)
        with tempfile.TemporaryFile(dir=work_dir):
            pass
    except OSError as error:
        raise ConfigError(
            f'work_dir {work_dir!r} cannot be written ({error.strerror}); '
            'give another with --work-dir.'
        ) from error
