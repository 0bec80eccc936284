"""The weights that a config names: in constructors, in ``init_cfg``, and for the runner."""

from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from mmengine.config import ConfigDict
from mmengine.model.weight_init import PretrainedInit
from torch import nn

from vit_plugin.errors import ConfigError
from vit_plugin.weights.hub import offline
from vit_plugin.weights.opening import Checkpoint, may_be_local, open_checkpoint

INIT = 'init_cfg'
# Settings of a runner; the first one that is set counts.
START_SETTINGS = ('load_from', 'begin_from')
OFFLINE = 'offline mode'  # occurs in errors of the hub's client within `offline`


class NamedWeights(NamedTuple):
    """Weights that a config names.

    Attributes:
        place: the place in the config.
        module: the name of their module; '' for the whole model.
        name: their source: a path, an address or a name, as the config has it.
        entry: the section of the config that names them.
        checkpoint: the opened checkpoint, or None if it is not on this machine.
        error: why it cannot be read, or ''.
    """

    place: str
    module: str
    name: str
    entry: Mapping[str, Any]
    checkpoint: Checkpoint | None
    error: str = ''

    def has(self, parameter: str) -> bool:
        """True if a parameter, by its name in the model, belongs to the module of the weights."""
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
            yield _open_source(place, place.removeprefix('model.'), name, section)
    for name, module in model.named_modules() if model else ():
        for entry in _pretrained_entries(module):
            place = '.'.join(filter(None, ('model', name, INIT)))
            yield _open_source(place, name, str(entry['checkpoint']), entry)
    if key := next((key for key in START_SETTINGS if settings.get(key)), None):
        yield _open_source(key, module='', name=str(settings[key]), entry={})


def _open_source(place: str, module: str, name: str, entry: Mapping[str, Any]) -> NamedWeights:
    """Open weights if that needs no download. Otherwise they have neither checkpoint nor error."""
    checkpoint, error = None, ''
    try:
        if may_be_local(name):
            with offline():
                checkpoint = open_checkpoint(name)
    except ConfigError as raised:
        if '://' not in name or OFFLINE not in f'{raised}':
            error = f'{raised}'
    return NamedWeights(place, module, name, entry, checkpoint, error)


def _pretrained_entries(module: nn.Module) -> list[Mapping[str, Any]]:
    """The entries of a module's ``init_cfg`` that name weights."""
    init_cfg = getattr(module, 'init_cfg', None) or []
    entries = [init_cfg] if isinstance(init_cfg, Mapping) else init_cfg
    types = ('Pretrained', PretrainedInit)
    return [entry for entry in entries if entry.get('type') in types and entry.get('checkpoint')]


def leave_out_weights(module: Any) -> None:
    """Remove the entries that name weights from a module's ``init_cfg``."""
    init_cfg = module.init_cfg
    entries = [init_cfg] if isinstance(init_cfg, Mapping) else init_cfg
    pretrained = _pretrained_entries(module)
    module.init_cfg = [entry for entry in entries if entry not in pretrained]


def iter_sections(value: Any, place: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All sections in a config, with their places."""
    if isinstance(value, Mapping):
        yield place, value
    inner = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in inner:
        if isinstance(item, (Mapping, list, tuple)):
            yield from iter_sections(item, f'{place}.{key}')


def _file_of(section: Mapping[str, Any]) -> str:
    """The file from which timm loads the weights of a model that a section names, if any."""
    kwargs = section.get('model_kwargs')
    overlay = kwargs.get('pretrained_cfg_overlay') if isinstance(kwargs, Mapping) else None
    return str(overlay.get('file') or '') if isinstance(overlay, Mapping) else ''


def without_downloads(model: Mapping[str, Any], kept_places: Container[str] = ()) -> ConfigDict:
    """A model's config with ``pretrained=True`` set to False, except at ``kept_places``."""

    def change(value: Any, place: str) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)(change(item, f'{place}.{i}') for i, item in enumerate(value))
        if not isinstance(value, Mapping):
            return value
        changed = {key: change(item, f'{place}.{key}') for key, item in value.items()}
        if changed.get('pretrained') is True and place not in kept_places:
            changed['pretrained'] = False
        return changed

    return ConfigDict(change(model, 'model'))


def file_name(source: str) -> str:
    """A source of weights, without the folders of this machine."""
    return source if '://' in source else Path(source).name
