"""Which model of transformers a config describes. No code of a hub is run."""

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from vit_plugin.errors import ConfigError, first_line, naming, needed_by
from vit_plugin.weights.foreign_config import ForeignConfig
from vit_plugin.weights.hub import hub_config
from vit_plugin.weights.transformers_config import STAGE_FIELDS, transformers_kind

from .pooled_kinds import POOLED_KINDS

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

# Parts of other models, and those that build a model of another library by its name.
UNSUPPORTED_BACKBONES = (
    'timm_backbone',
    'maskformer-swin',
    'lw_detr_vit',
    'rf_detr_dinov2',
    'uvdoc_backbone',
)
# Entries that transformers' code adds to a config as it builds the model, from the others.
DERIVED_FIELDS = {'levit': ('down_ops',)}


def kinds_of_maps() -> list[str]:
    """The types of models that transformers has as backbones, which return maps."""
    with needed_by('TransformersBackbone'):
        from transformers.models.auto.modeling_auto import MODEL_FOR_BACKBONE_MAPPING_NAMES
    return [name for name in MODEL_FOR_BACKBONE_MAPPING_NAMES if name not in UNSUPPORTED_BACKBONES]


def backbone_config(source: str | Mapping[str, Any], pooled: bool = False) -> 'PreTrainedConfig':
    """A config of transformers with the fields of its own class, and no others.

    Args:
        source: the entries of a ``config.json``; or where it is, a folder or ``hf://ORG/NAME``.
        pooled: whether its model gives a vector of an image, or else maps.

    Raises:
        ConfigError: if it cannot be read, if its model is no such one, or if it has an entry that
            its class does not know.
        MissingExtraError: if transformers is not installed.
    """
    kinds, what = kinds_of_maps(), 'is no backbone of transformers, which returns maps'
    if pooled:
        kinds, what = [*POOLED_KINDS], 'gives no vector of an image here'
    from transformers import CONFIG_MAPPING, PreTrainedConfig

    if isinstance(source, Mapping):
        content = source
    else:
        with naming('TransformersBackbone'):
            content = hub_config(source)
    kind = content.get('model_type')
    if kind not in kinds:
        raise ConfigError(
            f'TransformersBackbone: model_type={kind!r} {what}; known are {", ".join(kinds)}.'
        )
    config_class = CONFIG_MAPPING[kind]
    # Fields of all classes, such as one that names code for attention, are not the model's.
    shared = {field.name for field in fields(PreTrainedConfig)}
    own = [field.name for field in fields(config_class) if field.name not in shared]
    defaults = {name: None for name in own if not name.startswith('_')}
    known = transformers_kind({**defaults, **STAGE_FIELDS})
    config = ForeignConfig(content, known, 'TransformersBackbone: config')
    # The outputs are an argument of ours, and weights of a classifier are those of its backbone.
    config.leave(*own, *STAGE_FIELDS, 'architectures')
    try:
        built = config_class(**{name: content[name] for name in own if name in content})
    except Exception as error:  # raised by huggingface_hub's strict classes
        raise ConfigError(
            f'TransformersBackbone: transformers builds no {kind} with this config '
            f'({first_line(error)}); change it.'
        ) from error
    config.leave(*(name for name in content if getattr(built, name, config) == content[name]))
    config.leave(*DERIVED_FIELDS.get(kind, ()))
    config.check()  # remaining entries do not follow from the fields
    for name in own:  # transformers adds some of them to lists, and has tuples as defaults
        if isinstance(getattr(built, name), tuple):
            setattr(built, name, [*getattr(built, name)])
    return built


def backbone_entries(content: Mapping[str, Any], pooled: bool = False) -> dict[str, Any]:
    """The entries of a ``config.json`` that describe its backbone, as :func:`backbone_config` does.

    What is left out are classes, files and versions, and what is as in transformers by default.
    """
    changed = backbone_config(content, pooled).to_diff_dict()
    left_out = {'architectures', 'id2label', 'label2id', 'transformers_version', *STAGE_FIELDS}
    left_out |= {*DERIVED_FIELDS.get(content['model_type'], ())}
    kept = {name: value for name, value in content.items() if name in changed.keys() - left_out}
    return dict(kept, model_type=content['model_type'])
