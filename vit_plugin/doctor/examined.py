"""A config with what is built of it once: the model, its weights, its optimizer and its data."""

import copy
import logging
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from functools import cached_property
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import torch
from mmengine.config import Config, ConfigDict
from mmengine.model.weight_init import PretrainedInit
from mmengine.registry import (
    DATASETS,
    MODELS,
    OPTIM_WRAPPER_CONSTRUCTORS,
    OPTIMIZERS,
    Registry,
)
from mmengine.runner import load_checkpoint
from torch import nn

from anyfolder.text import read_text
from vit_plugin.arguments import look_up
from vit_plugin.config import apply_options, read_config, with_pipeline
from vit_plugin.config.data import missing_files
from vit_plugin.config.scope import import_data_sets, in_scope
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.files.shipped import FORMATS, PREFIX
from vit_plugin.importable import import_models, make_importable
from vit_plugin.inference.saved_model import find_checkpoint, saved_config
from vit_plugin.models.loadable_module import LoadableModule
from vit_plugin.untrusted.admission import registered_in
from vit_plugin.weights.for_mmengine import reading_safely
from vit_plugin.weights.hub import offline
from vit_plugin.weights.opening import Checkpoint, may_be_here, open_checkpoint
from vit_plugin.weights.report import Report
from vit_plugin.weights.saved_settings import settings_of

from .optimizer_groups import Group, groups_of

INIT = 'init_cfg'
STARTS = ('load_from', 'begin_from')  # of a runner, the first that is given
WRAPPED = r'^module\.'  # names in a checkpoint of several processes, as MMEngine's runner reads it

OFFLINE = 'offline mode'  # in errors of the hub's library within `offline`


class Source(NamedTuple):
    """Weights that a config names.

    Attributes:
        at: the place in the config.
        module: the name of the module that they are for; of the whole model, ''.
        name: where they are.
        entry: the section that names them.
        opened: the checkpoint, or None if it is not on this machine.
        error: why it cannot be read, or nothing.
    """

    at: str
    module: str
    name: str
    entry: Mapping[str, Any]
    opened: Checkpoint | None
    error: str = ''

    def has(self, parameter: str) -> bool:
        """True for the name of a parameter of this module."""
        return not self.module or parameter.startswith(f'{self.module}.')


class Initialized(NamedTuple):
    """A model after the framework's own order of initialization: ``init_weights``, ``load_from``.

    Attributes:
        model: the model.
        before: names of the parameters with random values after ``init_weights``, that is, with
            other values for another seed.
        after: the same after ``load_from``, too.
        reports: on what was loaded into modules of this package, by the place of its source.
        replaced: names of what ``load_from`` gave other values than such a source, by its place.
        errors: sentences on what could not be loaded, by the place of its source.
    """

    model: nn.Module
    before: frozenset[str]
    after: frozenset[str]
    reports: Mapping[str, Report]
    replaced: Mapping[str, list[str]]
    errors: Mapping[str, str]


class Examined:
    """A config with what is built of it once.

    Nothing is downloaded: weights and data that are not on this machine are named in ``unseen``.

    Args:
        cfg: the config.
        is_data: whether it comes from the files of a run, so that classes are built by the names
            in :mod:`vit_plugin.untrusted` alone.

    Attributes:
        settings: the config as plain values.
        unseen: what could not be examined, and why.
    """

    def __init__(self, cfg: Config, is_data: bool = False) -> None:
        self.is_data = is_data
        self.settings: dict[str, Any] = cfg.to_dict()
        self.scope: str | None = self.settings.get('default_scope')
        self.unseen: list[str] = []
        make_importable()
        import_models(self.scope)
        import_data_sets(self.scope)

    @cached_property
    def model_config(self) -> dict[str, Any]:
        """The section ``model``, with the preprocessor that may be beside it."""
        beside = self.settings.get('data_preprocessor')
        return {'data_preprocessor': beside, **self.settings['model']}

    @property
    def preprocessor(self) -> Mapping[str, Any]:
        """The config of the preprocessor."""
        return self.model_config.get('data_preprocessor') or {}

    @property
    def backbone(self) -> Mapping[str, Any]:
        """The config of the backbone."""
        return self.model_config.get('backbone') or {}

    @property
    def wrapper(self) -> Mapping[str, Any]:
        """The config of the optimizer and its wrapper."""
        return self.settings.get('optim_wrapper') or {}

    @cached_property
    def model(self) -> nn.Module | None:
        """The model without values, or None if it cannot be built."""
        return self._structure[0]

    @property
    def build_error(self) -> str:
        """Why the model cannot be built, or nothing."""
        return self._structure[1]

    @cached_property
    def _structure(self) -> tuple[nn.Module | None, str]:
        error = ''
        if teacher := self._absent_teacher():
            self.unseen.append(f'the model: its teacher {teacher} is not on this machine')
            return None, error
        for device in ('meta', 'cpu'):  # some layers of the frameworks need values
            try:
                with torch.device(device), self.building(), offline():
                    return MODELS.build(_plain(self.model_config)), ''
            except Exception as found:  # noqa: BLE001  of any framework's class
                error = f'{found}' if isinstance(found, ConfigError) else first_line(found)
        return None, error

    def _absent_teacher(self) -> str:
        """Where the model of which another one learns is, if that is not here, or nothing."""
        teacher = self.model_config.get('teacher')
        source = teacher.get('source') if isinstance(teacher, Mapping) else teacher
        is_here = not isinstance(source, str) or Path(source).exists()
        return '' if is_here else str(source)

    @contextmanager
    def building(self) -> Iterator[None]:
        """A context in which names are the framework's, and its log is not shown."""
        logging.disable(logging.WARNING)
        try:
            with in_scope(self.scope), reading_safely(), redirect_stdout(StringIO()):
                yield
        finally:
            logging.disable(logging.NOTSET)

    @cached_property
    def sources(self) -> list[Source]:
        """The weights that the config names, in the order in which they are read."""
        found = []
        for at, section in sections_of(self.model_config, 'model'):
            if section.get('pretrained') is True or _file_of(section):
                name = _file_of(section) or f'timm://{section.get("model_name")}'
                found.append(self._source(at, at.removeprefix('model.'), name, section))
        for name, module in self.model.named_modules() if self.model else ():
            for entry in _pretrained(module):
                at = '.'.join(filter(None, ('model', name, INIT)))
                found.append(self._source(at, name, entry['checkpoint'], entry))
        key = next((key for key in STARTS if self.settings.get(key)), None)
        if key:
            found.append(self._source(key, '', self.settings[key], {}))
        return found

    def _source(self, at: str, module: str, name: Any, entry: Mapping[str, Any]) -> Source:
        given = str(name)
        try:
            if may_be_here(given):
                with offline():
                    return Source(at, module, given, entry, open_checkpoint(given))
        except ConfigError as error:
            if '://' not in given or OFFLINE not in f'{error}':
                return Source(at, module, given, entry, None, f'{error}')
        self.unseen.append(f'the weights of {at}: {given} is not on this machine')
        return Source(at, module, given, entry, None)

    def sources_of(self, module: str) -> list[Source]:
        """The weights for a module, a part of it or the whole model."""
        return [
            source
            for source in self.sources
            if not source.module or f'{source.module}.'.startswith(f'{module}.')
        ]

    @cached_property
    def initialized(self) -> Initialized | None:
        """The model with its values, or None if none of its weights can be read here."""
        if not any(source.opened for source in self.sources) or self.model is None:
            return None
        errors: dict[str, str] = {}
        first, second = (self._initialize(seed, errors) for seed in (0, 1))
        before = _differing(first, second)
        reports = {}
        for source in self.sources:
            named = source.opened and source.at.endswith(INIT) and not errors
            part = second.get_submodule(source.module) if named else None
            if isinstance(part, LoadableModule):
                with self.building():
                    reports[source.at] = part.load_entry(source.entry)
        start, replaced = self.sources[-1], {}
        if start.at in STARTS and start.opened:
            self._try(errors, start.at, self._start, first, start.name)
            changed = _differing(first, second)
            for at, report in reports.items():
                names = self._in_model(at, report)
                replaced[at] = [name for name in names if name in changed - before]
            self._try(errors, start.at, self._start, second, start.name)
        after = _differing(first, second)
        return Initialized(first, before, after, reports, replaced, errors)

    def _initialize(self, seed: int, errors: dict[str, str]) -> nn.Module:
        torch.manual_seed(seed)
        with self.building():
            here = {source.at for source in self.sources if source.opened}
            model = MODELS.build(_plain(self.model_config, here))
        for source in self.sources:
            if source.at.endswith(INIT) and source.at not in here:
                _leave_out(model.get_submodule(source.module))
        names = {source.name for source in self.sources if source.at in here - {*STARTS}}
        place = f'init_weights ({", ".join(map(file_name, sorted(names)))})'
        self._try(errors, place, model.init_weights)
        return model

    def _start(self, model: nn.Module, name: str) -> None:
        load_checkpoint(model, name, 'cpu', logger='silent', revise_keys=[(WRAPPED, '')])

    def _try(self, errors: dict[str, str], at: str, call: Any, *args: Any) -> None:
        try:
            with self.building(), offline():
                call(*args)
        except Exception as error:  # noqa: BLE001  of any framework's class
            errors[at] = f'{error}' if isinstance(error, ConfigError) else first_line(error)

    def _in_model(self, at: str, report: Report) -> list[str]:
        module = next(source.module for source in self.sources if source.at == at)
        return [f'{module}.{name}' for name in report.matched]

    @cached_property
    def _groups(self) -> tuple[list[Group], str]:
        optimizer, constructor = self.wrapper.get('optimizer'), self.wrapper.get('constructor')
        if self.model is None or not optimizer:
            return [], ''
        known = self._class_of(optimizer.get('type'), OPTIMIZERS) is not None
        if constructor:
            known &= self._class_of(constructor, OPTIM_WRAPPER_CONSTRUCTORS) is not None
        if self.is_data and not known:
            self.unseen.append('the optimizer: its classes are not known without its config')
            return [], ''
        try:
            with self.building():
                return groups_of(self.model, self.wrapper), ''
        except Exception as error:  # noqa: BLE001  of any framework's constructor
            return [], first_line(error) or type(error).__name__

    @property
    def groups(self) -> list[Group]:
        """The trained parameters with their settings; none if the optimizer cannot be built."""
        return self._groups[0]

    @property
    def optimizer_error(self) -> str:
        """Why the optimizer cannot be built for this model, or nothing."""
        return self._groups[1]

    def dataset_config(self, part: str) -> Mapping[str, Any]:
        """The config of a data set, inside its wrappers: of ``'train'``, ``'val'`` or ``'test'``.

        It is empty if there is none, or if there are several.
        """
        dataset = (self.settings.get(f'{part}_dataloader') or {}).get('dataset') or {}
        try:
            return with_pipeline(Config(dict(dataset=dataset)).dataset).to_dict()
        except (ConfigError, AttributeError):
            return {}

    def metainfo(self, part: str) -> Mapping[str, Any]:
        """What is known of a data set's classes without its files."""
        dataset = self.dataset_config(part)
        kind = self._class_of(dataset.get('type'), DATASETS)
        return {**getattr(kind, 'METAINFO', {}), **(dataset.get('metainfo') or {})}

    def _class_of(self, kind: Any, registry: Registry) -> Any:
        """A class by its name, or None. The names of a run's files import nothing."""
        if not isinstance(kind, str):
            return kind
        if self.is_data and not registered_in(registry, kind, str(self.scope))[0]:
            return None
        return look_up(kind, registry, self.scope)

    def pipeline(self, part: str) -> list[Mapping[str, Any]]:
        """The steps of a data set."""
        steps = self.dataset_config(part).get('pipeline') or ()
        return [step for step in steps if isinstance(step, Mapping)]

    @cached_property
    def training_data(self) -> Any:
        """The data set of the training, or None if its files are not here."""
        config = (self.settings.get('train_dataloader') or {}).get('dataset')
        missing = next(missing_files(self.dataset_config('train')), None) if config else None
        if missing or not config or self.is_data:
            why = f'there is no {missing}' if missing else 'its config is read as data'
            if config:
                self.unseen.append(f'the training data: {why}')
            return None
        try:
            with self.building():
                return DATASETS.build(copy.deepcopy(config))
        except Exception as error:  # noqa: BLE001  of any data set
            self.unseen.append(f'the training data: {first_line(error)}')
            return None


def examine(subject: str, options: Mapping[str, Any] | None = None) -> Examined:
    """Read a config, or that of a run.

    Args:
        subject: a config, which is a program, or a recipe's name; or the folder of a run or a
            checkpoint, whose config is data.
        options: settings to change.

    Raises:
        ConfigError: if it cannot be read, or if a model of a run has classes that
            :mod:`vit_plugin.untrusted` does not know.
    """
    if subject.startswith(PREFIX) or Path(subject).suffix in FORMATS:
        return Examined(read_config(subject, options))
    checkpoint = _of_run(subject)
    settings, admitted = settings_of(checkpoint), saved_config(checkpoint).to_dict()
    model = _with_starts(admitted['model'], settings['model'])
    cfg = Config({**settings, **admitted, 'model': model})
    apply_options(cfg, options, subject)
    return Examined(cfg, is_data=True)


def _of_run(subject: str) -> Checkpoint:
    """The newest config in the folder of a run, or a checkpoint with its config."""
    folder = Path(subject)
    configs = [*folder.glob('*/vis_data/config.py'), *folder.glob('*.py')]
    for path in sorted(configs, key=lambda path: path.stat().st_mtime, reverse=True):
        found = Checkpoint(str(path), dict(meta=dict(cfg=read_text(path))))
        if isinstance(settings_of(found).get('model'), Mapping):
            return found
    return open_checkpoint(find_checkpoint(subject), payload=False)


def _with_starts(model: Any, settings: Any) -> Any:
    """An admitted model, with the weights that its settings name to begin with."""
    if isinstance(model, (list, tuple)):
        return type(model)(map(_with_starts, model, settings))
    if not isinstance(model, Mapping):
        return model
    found = {key: _with_starts(value, settings.get(key)) for key, value in model.items()}
    init = settings.get('init_cfg')
    if isinstance(init, Mapping) and init.get('type') == 'Pretrained':
        found['init_cfg'] = {'type': 'Pretrained', 'checkpoint': init.get('checkpoint')}
    return found


def _pretrained(module: nn.Module) -> list[Mapping[str, Any]]:
    """The entries of a module's ``init_cfg`` that name weights."""
    given = getattr(module, 'init_cfg', None) or []
    entries = [given] if isinstance(given, Mapping) else given
    kinds = ('Pretrained', PretrainedInit)
    return [one for one in entries if one.get('type') in kinds and one.get('checkpoint')]


def _leave_out(module: Any) -> None:
    """Leave out the weights that a module names, which are not here."""
    given = module.init_cfg
    entries = [given] if isinstance(given, Mapping) else given
    named = _pretrained(module)
    module.init_cfg = [one for one in entries if one not in named]


def sections_of(value: Any, at: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All sections in a config, with their places."""
    if isinstance(value, Mapping):
        yield at, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, part in inner:
        if isinstance(part, (Mapping, list, tuple)):
            yield from sections_of(part, f'{at}.{key}')


def _file_of(section: Mapping[str, Any]) -> str:
    """The file that timm takes the weights of a model from, if a section names one."""
    kwargs = section.get('model_kwargs')
    overlay = kwargs.get('pretrained_cfg_overlay') if isinstance(kwargs, Mapping) else None
    return str(overlay.get('file') or '') if isinstance(overlay, Mapping) else ''


def _plain(model: Mapping[str, Any], keep: Container[str] = ()) -> ConfigDict:
    """A config of a model to build, whose constructors load no weights but at these places."""

    def part(value: Any, at: str) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(part(one, f'{at}.{i}') for i, one in enumerate(value))
        if not isinstance(value, Mapping):
            return value
        changed = {key: part(one, f'{at}.{key}') for key, one in value.items()}
        if changed.get('pretrained') is True and at not in keep:
            changed['pretrained'] = False
        return changed

    return ConfigDict(part(model, 'model'))


def _differing(first: nn.Module, second: nn.Module) -> frozenset[str]:
    """The parameters of a model that have other values than those of the same model."""
    others = dict(second.named_parameters())
    return frozenset(
        name for name, value in first.named_parameters() if not torch.equal(value, others[name])
    )


def file_name(source: str) -> str:
    """A source of weights, without the folders of a machine."""
    return source if '://' in source else Path(source).name
