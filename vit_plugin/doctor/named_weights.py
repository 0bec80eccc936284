"""The weights that a config names: in constructors, in ``init_cfg``, and for the runner.

A source is such a file, address or name. It is opened only if it is on this machine.
"""

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
# Sections with the weights of the whole model; the first one that is set counts. MMEngine reads
# `load_from`; the runner of this package also reads `begin_from`, if there is no run to resume.
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

    def covers(self, parameter: str) -> bool:
        """True if a parameter, by its name in the model, belongs to the module of the weights."""
        return not self.module or parameter.startswith(f'{self.module}.')


def find_named_weights(
    model: nn.Module | None, model_cfg: Mapping[str, Any], cfg: Mapping[str, Any]
) -> Iterator[NamedWeights]:
    """The weights that a config names, in the order in which they are read.

    Args:
        model: the model without weights. None: only the config is searched.
        model_cfg: the section ``model``.
        cfg: the whole config.
    """
    for place, section in iter_sections(model_cfg, 'model'):
        # timm reads the file of an overlay only if `pretrained` is True.
        if section.get('pretrained') is True:
            source = _timm_file(section) or f'timm://{section.get("model_name")}'
            # Modules are named like their sections: model.backbone is the module `backbone`. For
            # the section `model` itself, the name is `model`: so TimmClassifier calls its network.
            yield _open_source(place, place.removeprefix('model.'), source, section)
    for module_name, module in model.named_modules() if model else ():
        for entry in _pretrained_entries(module):
            place = '.'.join(filter(None, ('model', module_name, INIT)))
            yield _open_source(place, module_name, str(entry['checkpoint']), entry)
    if key := next((key for key in START_SETTINGS if cfg.get(key)), None):
        yield _open_source(key, module='', name=str(cfg[key]), entry={})


def _open_source(place: str, module: str, name: str, entry: Mapping[str, Any]) -> NamedWeights:
    """Open weights if that needs no download. Otherwise they have neither checkpoint nor error.

    The arguments are fields of :class:`NamedWeights`.
    """
    checkpoint, error = None, ''
    try:
        if may_be_local(name):
            with offline():
                checkpoint = open_checkpoint(name)
    except ConfigError as raised:
        # An address that only lacks a download is no error.
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
    """All dicts in a config, each with its place, such as ``model.neck.0``."""
    if isinstance(value, Mapping):
        yield place, value
    # A section may also be a switch, such as `compile=True`.
    is_list = isinstance(value, (list, tuple))
    inner = value.items() if isinstance(value, Mapping) else enumerate(value if is_list else ())
    for key, item in inner:
        if isinstance(item, (Mapping, list, tuple)):
            yield from iter_sections(item, f'{place}.{key}')


def _timm_file(section: Mapping[str, Any]) -> str:
    """The file that replaces timm's own weights for the model of a section, or ''."""
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


def short_source(source: str) -> str:
    """A source of weights, without the folders of this machine."""
    return source if '://' in source else Path(source).name
