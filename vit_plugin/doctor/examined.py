"""A config with its components, built once: model, weights, optimizer and data."""

import copy
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from mmengine.config import Config
from mmengine.registry import (
    DATASETS,
    MODELS,
    OPTIM_WRAPPER_CONSTRUCTORS,
    OPTIMIZERS,
    Registry,
)
from torch import nn

from vit_plugin.arguments import look_up_class
from vit_plugin.config import with_pipeline
from vit_plugin.config.data import missing_files
from vit_plugin.config.metainfo import stated_metainfo
from vit_plugin.config.scope import import_data_sets, in_scope
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.importable import make_importable, register_framework_models
from vit_plugin.untrusted.admission import find_registered
from vit_plugin.weights.for_mmengine import reading_safely
from vit_plugin.weights.hub import offline

from .initialization import Initialization, InitializedModel, describe_error
from .named_weights import NamedWeights, find_named_weights, without_downloads
from .optimizer_groups import ParameterSettings, read_parameter_settings

# The yield of a check: pairs of a fault and its cure. The cure is empty if the description of the
# fault has it.
Faults = Iterator[tuple[str, str]]


class ExaminedConfig:
    """A config with its components, built once.

    Nothing is downloaded: weights and data that are not on this machine are named in ``unseen``.

    Args:
        cfg: the config.
        is_untrusted: whether the config comes from the files of a run, so that only classes in the
            table of :mod:`vit_plugin.untrusted` are built.

    Attributes:
        cfg: the whole config as plain dicts and lists.
        scope: the framework, ``default_scope``.
        unseen: what could not be examined, and why. Checks add to it.
    """

    def __init__(self, cfg: Config, is_untrusted: bool = False) -> None:
        self.is_untrusted = is_untrusted
        self.cfg: dict[str, Any] = cfg.to_dict()
        self.scope: str | None = self.cfg.get('default_scope')
        self.unseen: list[str] = []
        make_importable()
        register_framework_models(self.scope)
        import_data_sets(self.scope)

    @cached_property
    def model_config(self) -> dict[str, Any]:
        """The section ``model``, with the preprocessor next to it unless it has its own."""
        preprocessor = self.cfg.get('data_preprocessor')
        return {'data_preprocessor': preprocessor, **self.cfg['model']}

    @property
    def preprocessor(self) -> Mapping[str, Any]:
        """The config of the preprocessor."""
        return self.model_config.get('data_preprocessor') or {}

    @property
    def backbone(self) -> Mapping[str, Any]:
        """The config of the backbone."""
        return self.model_config.get('backbone') or {}

    @property
    def optim_wrapper(self) -> Mapping[str, Any]:
        """The config of the optimizer and its wrapper."""
        return self.cfg.get('optim_wrapper') or {}

    @property
    def optimizer(self) -> Mapping[str, Any]:
        """The config of the optimizer; {} if there is none, or if it is no section."""
        optimizer = self.optim_wrapper.get('optimizer')
        return optimizer if isinstance(optimizer, Mapping) else {}

    @cached_property
    def model(self) -> nn.Module | None:
        """The model without weights, or None if it cannot be built."""
        return self._model_and_error[0]

    @property
    def build_error(self) -> str:
        """Why the model cannot be built, or ''."""
        return self._model_and_error[1]

    @cached_property
    def _model_and_error(self) -> tuple[nn.Module | None, str]:
        """The model without weights, and why it cannot be built."""
        error = ''
        if teacher := self._absent_teacher():
            self.unseen.append(f'the model: its teacher {teacher} is not on this machine')
            return None, error
        for device in ('meta', 'cpu'):  # some layers of the frameworks cannot be built on meta
            try:
                with torch.device(device), self.build_context(), offline():
                    return MODELS.build(without_downloads(self.model_config)), ''
            except Exception as raised:  # noqa: BLE001  of any framework's class
                error = describe_error(raised)
        return None, error

    def _absent_teacher(self) -> str:
        """The source of a distillation teacher if it is not on this machine, or ''."""
        teacher = self.model_config.get('teacher')
        source = teacher.get('source') if isinstance(teacher, Mapping) else teacher
        is_here = not isinstance(source, str) or Path(source).exists()
        return '' if is_here else str(source)

    @contextmanager
    def build_context(self) -> Iterator[None]:
        """A context that looks up names in the framework's registry, and silences its log."""
        disabled = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            with in_scope(self.scope), reading_safely(), redirect_stdout(StringIO()):
                yield
        finally:
            logging.disable(disabled)

    @cached_property
    def sources(self) -> list[NamedWeights]:
        """The weights that the config names, in the order of loading."""
        sources = [*find_named_weights(self.model, self.model_config, self.cfg)]
        for source in sources:
            if not (source.checkpoint or source.error):
                self.unseen.append(
                    f'the weights of {source.place}: {source.name} is not on this machine'
                )
        return sources

    def find_sources(self, module: str) -> list[NamedWeights]:
        """The named weights of a module, of one of its submodules, or of the whole model."""
        return [
            source
            for source in self.sources
            if not source.module or f'{source.module}.'.startswith(f'{module}.')
        ]

    @cached_property
    def initialized(self) -> InitializedModel | None:
        """The model with its weights, or None if none of them can be read on this machine."""
        available = {source.place for source in self.sources if source.checkpoint}
        if not available or self.model is None:
            return None

        def build() -> nn.Module:
            return MODELS.build(without_downloads(self.model_config, available))

        errors: dict[str, str] = {}
        try:
            return Initialization(build, self.sources, self.build_context, errors).run()
        except Exception as raised:  # noqa: BLE001  of any framework's class
            # The model can be built without weights, so a constructor rejects those that it reads.
            places = [source.place for source in self.sources if source.entry.get('pretrained')]
            errors[', '.join(places) or 'model'] = describe_error(raised)
            return InitializedModel(self.model, frozenset(), frozenset(), {}, {}, errors)

    @cached_property
    def _parameter_settings_and_error(self) -> tuple[list[ParameterSettings], str]:
        """The parameters with their optimizer settings, and why the optimizer cannot be built."""
        optimizer = self.optim_wrapper.get('optimizer')
        constructor = self.optim_wrapper.get('constructor')
        if self.model is None or not optimizer:
            return [], ''
        if not self.optimizer:
            return [], f'optimizer={optimizer!r} is not a dict with settings'
        classes = [self._class_of(self.optimizer.get('type'), OPTIMIZERS)]
        if constructor:
            classes.append(self._class_of(constructor, OPTIM_WRAPPER_CONSTRUCTORS))
        if self.is_untrusted and None in classes:
            self.unseen.append('the optimizer: its classes are not known without its config')
            return [], ''
        try:
            with self.build_context():
                return read_parameter_settings(self.model, self.optim_wrapper), ''
        except Exception as error:  # noqa: BLE001  of any framework's constructor
            return [], first_line(error) or type(error).__name__

    @property
    def parameter_settings(self) -> list[ParameterSettings]:
        """The parameters with their optimizer settings; empty if the optimizer cannot be built."""
        return self._parameter_settings_and_error[0]

    @property
    def optimizer_error(self) -> str:
        """Why the optimizer cannot be built for this model, or ''."""
        return self._parameter_settings_and_error[1]

    def dataset_config(self, split: str) -> Mapping[str, Any]:
        """The config of a data set, inside its wrappers: of ``'train'``, ``'val'`` or ``'test'``.

        Its pipeline is followed by that of a wrapper with transforms of its own. It is empty if
        there is none, or if there are several.
        """
        dataset = (self.cfg.get(f'{split}_dataloader') or {}).get('dataset') or {}
        try:
            found = with_pipeline(Config(dict(dataset=dataset)).dataset)
            pipeline = [*(found.to_dict()['pipeline'] or ())]
            # MMDetection's MultiImageMixDataset has further steps for the samples of another one.
            while isinstance(found.get('dataset'), Mapping):
                found = with_pipeline(found.dataset)
                pipeline = [*(found.to_dict()['pipeline'] or ()), *pipeline]
            return {**found.to_dict(), 'pipeline': pipeline}
        except ConfigError:  # several data sets, or one with the default pipeline of its class
            why = f'{dataset.get("type")} states no single pipeline'
            self.unseen.append(f'the images of {split}_dataloader: {why}')
            return {}
        except AttributeError:  # no data set
            return {}

    def metainfo(self, split: str) -> Mapping[str, Any]:
        """The facts about a data set that its class and config state, such as its classes."""
        dataset = self.dataset_config(split)
        dataset_class = self._class_of(dataset.get('type'), DATASETS)
        # A file that a run names is not opened.
        return stated_metainfo(
            dataset, getattr(dataset_class, 'METAINFO', {}), opens_files=not self.is_untrusted
        )

    def _class_of(self, name: Any, registry: Registry) -> Any:
        """The class of a ``type`` in a config, or None. Names in a run's files import nothing."""
        if not isinstance(name, str):
            return name
        if self.is_untrusted and not find_registered(registry, name, str(self.scope))[0]:
            return None
        return look_up_class(name, registry, self.scope)

    def pipeline(self, split: str) -> list[Mapping[str, Any]]:
        """The steps of a data set's pipeline."""
        steps = self.dataset_config(split).get('pipeline') or ()
        return [step for step in steps if isinstance(step, Mapping)]

    @cached_property
    def training_data(self) -> Any:
        """The training data set, or None if it cannot be built here."""
        config = (self.cfg.get('train_dataloader') or {}).get('dataset')
        if not config:
            return None
        missing = next(missing_files(self.dataset_config('train')), None)
        if missing or self.is_untrusted:
            why = f'there is no {missing}' if missing else 'its config is read as data'
            self.unseen.append(f'the training data: {why}')
            return None
        try:
            with self.build_context():
                return DATASETS.build(copy.deepcopy(config))
        except Exception as error:  # noqa: BLE001  of any data set
            self.unseen.append(f'the training data: {first_line(error)}')
            return None
