"""Find the parameters of a model that stay random although its config names weights.

The model is initialized twice, in the framework's own order, with two seeds. A parameter that
differs between them is random; one that is equal was loaded, or set to a constant.
"""

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

from .named_weights import INIT, START_SETTINGS, NamedWeights, leave_out_weights, short_source

# Prefix of the names in checkpoints of DDP. MMEngine's runner strips it.
DDP_PREFIX = r'^module\.'


class InitializedModel(NamedTuple):
    """A model after the framework's own order of initialization: ``init_weights``, ``load_from``.

    Attributes:
        model: the model.
        random_after_init: names of the parameters that are random after ``init_weights``.
        random_after_load: names of the parameters that are still random after ``load_from``.
        reports: loading reports of the sources for modules of this package, by place in the config.
        replaced: for each of these sources, the names of its tensors that ``load_from`` replaced.
        errors: sentences on what could not be loaded, by place in the config.
    """

    model: nn.Module
    random_after_init: frozenset[str]
    random_after_load: frozenset[str]
    reports: Mapping[str, Report]
    replaced: Mapping[str, list[str]]
    errors: Mapping[str, str]


class Initialization(NamedTuple):
    """Initializes a model as a runner does.

    Attributes:
        build: makes the model.
        sources: the weights that its config names.
        build_context: a context that looks up names in the framework's registry.
        errors: collects sentences about sources that could not be loaded, by their place.
    """

    build: Callable[[], nn.Module]
    sources: Sequence[NamedWeights]
    build_context: Callable[[], AbstractContextManager[None]]
    errors: dict[str, str]

    def run(self) -> InitializedModel:
        """Initialize two models with different seeds, and compare them."""
        first, second = self._initialize(0), self._initialize(1)
        random_after_init = _differing(first, second)
        reports = self._reports(second)
        start, replaced = self.sources[-1], {}
        if start.place in START_SETTINGS and start.checkpoint:
            self._call(start.place, _load_start, first, start.name)
            # Only the first model is loaded so far. A parameter that was equal in both and now
            # differs has been replaced.
            changed = _differing(first, second) - random_after_init
            for source in self.sources:
                if report := reports.get(source.place):
                    names = (f'{source.module}.{name}' for name in report.matched)
                    replaced[source.place] = [name for name in names if name in changed]
            self._call(start.place, _load_start, second, start.name)
        random_after_load = _differing(first, second)
        return InitializedModel(
            first, random_after_init, random_after_load, reports, replaced, self.errors
        )

    def _initialize(self, seed: int) -> nn.Module:
        """Build the model and run ``init_weights``, without weights that cannot be read here."""
        torch.manual_seed(seed)
        with self.build_context():
            model = self.build()
        named = [source for source in self.sources if source.place not in START_SETTINGS]
        for source in named:
            if source.place.endswith(INIT) and not source.checkpoint:
                leave_out_weights(model.get_submodule(source.module))
        files = sorted({short_source(source.name) for source in named if source.checkpoint})
        self._call(f'init_weights ({", ".join(files)})', model.init_weights)
        return model

    def _reports(self, model: nn.Module) -> dict[str, Report]:
        """Load the weights of ``init_cfg`` again, to get their loading reports."""
        reports = {}
        for source in self.sources:
            if not source.checkpoint or not source.place.endswith(INIT) or self.errors:
                continue
            module = model.get_submodule(source.module)
            if isinstance(module, LoadableModule):
                with self.build_context():
                    reports[source.place] = module.load_entry(source.entry)
        return reports

    def _call(self, place: str, function: Callable[..., Any], *args: Any) -> None:
        """Call a function, and record its error for a place in the config."""
        try:
            with self.build_context(), offline():
                function(*args)
        except Exception as error:  # noqa: BLE001  of any framework's class
            self.errors[place] = describe_error(error)


def _load_start(model: nn.Module, name: str) -> None:
    """Load a checkpoint as MMEngine's runner does for ``load_from``."""
    load_checkpoint(
        model, name, map_location='cpu', logger='silent', revise_keys=[(DDP_PREFIX, '')]
    )


def _differing(first: nn.Module, second: nn.Module) -> frozenset[str]:
    """The names of the parameters that differ between two instances of a model."""
    second_values = dict(second.named_parameters())
    return frozenset(
        name
        for name, value in first.named_parameters()
        if not torch.equal(value, second_values[name])
    )


def describe_error(error: Exception) -> str:
    """The whole message of a ``ConfigError``, and the first line of any other error."""
    return f'{error}' if isinstance(error, ConfigError) else first_line(error)
