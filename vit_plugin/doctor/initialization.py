"""Initialize a model in the framework's own order, and compare two seeds."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import torch
from mmengine.runner import load_checkpoint
from torch import nn

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.models.loadable_module import LoadableModule
from vit_plugin.weights.hub import offline
from vit_plugin.weights.report import Report

from .named_weights import INIT, START_SETTINGS, NamedWeights, file_name, leave_out

WRAPPED = r'^module\.'  # prefix in checkpoints of DDP, which MMEngine's runner strips


class Initialized(NamedTuple):
    """A model after the framework's own order of initialization: ``init_weights``, ``load_from``.

    Attributes:
        model: the model.
        before: names of the parameters that are random after ``init_weights``, that is, differ
            between seeds.
        after: names of the parameters that are random after ``load_from``, too.
        reports: loading reports of modules of this package, by the place of the source.
        replaced: names of tensors that ``load_from`` replaced after such a source, by its place.
        errors: sentences on what could not be loaded, by the place of its source.
    """

    model: nn.Module
    before: frozenset[str]
    after: frozenset[str]
    reports: Mapping[str, Report]
    replaced: Mapping[str, list[str]]
    errors: Mapping[str, str]


class Initialization(NamedTuple):
    """Initializes a model as a runner does.

    Attributes:
        build: makes the model.
        sources: the weights that its config names.
        building: a context in which names are those of the framework.
        errors: collects sentences about sources that could not be loaded, by their place.
    """

    build: Callable[[], nn.Module]
    sources: Sequence[NamedWeights]
    building: Callable[[], AbstractContextManager[None]]
    errors: dict[str, str]

    def run(self) -> Initialized:
        """Initialize two models with different seeds, and compare them."""
        first, second = self._initialize(0), self._initialize(1)
        before = _differing(first, second)
        reports = self._reports(second)
        start, replaced = self.sources[-1], {}
        if start.at in START_SETTINGS and start.opened:
            self._try(start.at, _start, first, start.name)
            changed = _differing(first, second) - before
            for source in self.sources:
                if report := reports.get(source.at):
                    names = (f'{source.module}.{name}' for name in report.matched)
                    replaced[source.at] = [name for name in names if name in changed]
            self._try(start.at, _start, second, start.name)
        after = _differing(first, second)
        return Initialized(first, before, after, reports, replaced, self.errors)

    def _initialize(self, seed: int) -> nn.Module:
        torch.manual_seed(seed)
        with self.building():
            model = self.build()
        named = [source for source in self.sources if source.at not in START_SETTINGS]
        for source in named:
            if source.at.endswith(INIT) and not source.opened:
                leave_out(model.get_submodule(source.module))
        files = sorted({file_name(source.name) for source in named if source.opened})
        self._try(f'init_weights ({", ".join(files)})', model.init_weights)
        return model

    def _reports(self, model: nn.Module) -> dict[str, Report]:
        """Load the weights of ``init_cfg`` again, to get their loading reports."""
        reports = {}
        for source in self.sources:
            named = source.opened and source.at.endswith(INIT) and not self.errors
            part = model.get_submodule(source.module) if named else None
            if isinstance(part, LoadableModule):
                with self.building():
                    reports[source.at] = part.load_entry(source.entry)
        return reports

    def _try(self, place: str, call: Callable[..., Any], *args: Any) -> None:
        try:
            with self.building(), offline():
                call(*args)
        except Exception as error:  # noqa: BLE001  of any framework's class
            self.errors[place] = f'{error}' if isinstance(error, ConfigError) else first_line(error)


def _start(model: nn.Module, name: str) -> None:
    """Load a checkpoint as MMEngine's runner does for ``load_from``."""
    load_checkpoint(model, name, 'cpu', logger='silent', revise_keys=[(WRAPPED, '')])


def _differing(first: nn.Module, second: nn.Module) -> frozenset[str]:
    """The parameters that differ between two instances of a model."""
    others = dict(second.named_parameters())
    return frozenset(
        name for name, value in first.named_parameters() if not torch.equal(value, others[name])
    )
