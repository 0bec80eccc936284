"""The weights that a config names: in constructors, in ``init_cfg``, and for the runner."""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import ConfigDict
from mmengine.model.weight_init import PretrainedInit
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.hub import offline
from vit_plugin.weights.opening import Checkpoint, may_be_here, open_checkpoint

INIT = 'init_cfg'
# Settings of a runner; the first one that is set counts.
START_SETTINGS = ('load_from', 'begin_from')
OFFLINE = 'offline mode'  # occurs in errors of the hub's client within `offline`


class NamedWeights(NamedTuple):
    """Weights that a config names.

    Attributes:
        at: the place in the config.
        module: the name of their module; '' for the whole model.
        name: their source.
        entry: the section of the config that names them.
        opened: the checkpoint, or None if it is not on this machine.
        error: why it cannot be read, or ''.
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


def named_weights(
    model: nn.Module | None, config: Mapping[str, Any], settings: Mapping[str, Any]
) -> Iterator[NamedWeights]:
    """The weights that a config names, in the order in which they are read.

    Args:
        model: the model without weights. None: only the config is searched.
        config: the section ``model``.
        settings: the whole config.
    """
    for place, section in iter_sections(config, 'model'):
        file = _file_of(section)
        if file or section.get('pretrained') is True:
            name = file or f'timm://{section.get("model_name")}'
            yield _source(place, place.removeprefix('model.'), name, section)
    for name, module in model.named_modules() if model else ():
        for entry in _entries(module):
            place = '.'.join(filter(None, ('model', name, INIT)))
            yield _source(place, name, str(entry['checkpoint']), entry)
    if key := next((key for key in START_SETTINGS if settings.get(key)), None):
        yield _source(key, '', str(settings[key]), {})


def _source(place: str, module: str, name: str, entry: Mapping[str, Any]) -> NamedWeights:
    opened, error = None, ''
    try:
        if may_be_here(name):
            with offline():
                opened = open_checkpoint(name)
    except ConfigError as raised:
        if '://' not in name or OFFLINE not in f'{raised}':
            error = f'{raised}'
    return NamedWeights(place, module, name, entry, opened, error)


def _entries(module: nn.Module) -> list[Mapping[str, Any]]:
    """The entries of a module's ``init_cfg`` that name weights."""
    given = getattr(module, 'init_cfg', None) or []
    entries = [given] if isinstance(given, Mapping) else given
    kinds = ('Pretrained', PretrainedInit)
    return [entry for entry in entries if entry.get('type') in kinds and entry.get('checkpoint')]


def leave_out(module: Any) -> None:
    """Leave out weights of a module that are not on this machine."""
    given = module.init_cfg
    entries = [given] if isinstance(given, Mapping) else given
    named = _entries(module)
    module.init_cfg = [entry for entry in entries if entry not in named]


def iter_sections(value: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All sections in a config, with their places."""
    if isinstance(value, Mapping):
        yield place, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, part in inner:
        if isinstance(part, (Mapping, list, tuple)):
            yield from iter_sections(part, f'{place}.{key}')


def _file_of(section: Mapping[str, Any]) -> str:
    """The file from which timm loads the weights of a model that a section names, if any."""
    kwargs = section.get('model_kwargs')
    overlay = kwargs.get('pretrained_cfg_overlay') if isinstance(kwargs, Mapping) else None
    return str(overlay.get('file') or '') if isinstance(overlay, Mapping) else ''


def without_downloads(model: Mapping[str, Any], keep: Container[str] = ()) -> ConfigDict:
    """A config of a model whose constructors load only the weights at these places."""

    def part(value: Any, place: str) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(part(one, f'{place}.{i}') for i, one in enumerate(value))
        if not isinstance(value, Mapping):
            return value
        changed = {key: part(one, f'{place}.{key}') for key, one in value.items()}
        if changed.get('pretrained') is True and place not in keep:
            changed['pretrained'] = False
        return changed

    return ConfigDict(part(model, 'model'))


def file_name(source: str) -> str:
    """A source of weights, without the folders of this machine."""
    return source if '://' in source else Path(source).name
