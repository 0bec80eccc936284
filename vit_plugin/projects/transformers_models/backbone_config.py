"""Turn a ``config.json`` into a config of transformers, without running code from a hub.

transformers ignores entries that its class does not know, and so might build another model. Here
they are errors, see :class:`~vit_plugin.weights.foreign_config.ForeignConfig`.
"""

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

# Model types that are components of other models, or name a model of another library to build.
UNSUPPORTED_BACKBONES = (
    'timm_backbone',
    'maskformer-swin',
    'lw_detr_vit',
    'rf_detr_dinov2',
    'uvdoc_backbone',
)
# Entries that transformers derives from others while it builds a model. Saved configs have them.
DERIVED_FIELDS = {'levit': ('down_ops',)}


def list_backbone_types() -> list[str]:
    """The model types that transformers provides as backbones, which return maps."""
    with needed_by('TransformersBackbone'):
        from transformers.models.auto.modeling_auto import MODEL_FOR_BACKBONE_MAPPING_NAMES
    return [name for name in MODEL_FOR_BACKBONE_MAPPING_NAMES if name not in UNSUPPORTED_BACKBONES]


def backbone_config(source: str | Mapping[str, Any], pooled: bool = False) -> 'PreTrainedConfig':
    """A config of transformers, restricted to the fields of its class.

    Args:
        source: the entries of a ``config.json``, a folder, or ``hf://ORG/NAME``.
        pooled: whether the model should return a pooled vector instead of maps.

    Raises:
        ConfigError: if it cannot be read, if the model cannot return such an output, or if its
            class does not know an entry.
        MissingExtraError: if transformers is not installed.
    """
    supported, fault = list_backbone_types(), 'is not a transformers backbone with feature maps'
    if pooled:
        supported, fault = [*POOLED_KINDS], 'has no pooled output here'
    from transformers import CONFIG_MAPPING, PreTrainedConfig

    if isinstance(source, Mapping):
        content = source
    else:
        with naming('TransformersBackbone'):
            content = hub_config(source)
    model_type = content.get('model_type')
    if model_type not in supported:
        raise ConfigError(
            f'TransformersBackbone: model_type={model_type!r} {fault}; choose from '
            f'{", ".join(supported)}.'
        )
    config_class = CONFIG_MAPPING[model_type]
    # Common fields, such as the attention implementation, do not describe the model.
    shared = {field.name for field in fields(PreTrainedConfig)}
    field_names = [field.name for field in fields(config_class) if field.name not in shared]
    defaults = {name: None for name in field_names if not name.startswith('_')}
    known = transformers_kind({**defaults, **STAGE_FIELDS})
    config = ForeignConfig(content, known, 'TransformersBackbone: config')
    # STAGE_FIELDS: we choose the outputs ourselves. architectures: may name a classifier, whose
    # backbone we take.
    config.ignore(*field_names, *STAGE_FIELDS, 'architectures')
    try:
        built = config_class(**{name: content[name] for name in field_names if name in content})
    except Exception as error:  # raised by huggingface_hub's strict classes
        raise ConfigError(
            f'TransformersBackbone: transformers cannot build {model_type} from this config '
            f'({first_line(error)}); change it.'
        ) from error
    missing = object()  # unequal to any value
    # The class may also accept further entries, which it then stores unchanged.
    config.ignore(*(name for name in content if getattr(built, name, missing) == content[name]))
    config.ignore(*DERIVED_FIELDS.get(model_type, ()))
    config.check()  # rejects all other entries
    # transformers appends to some of these fields, whose defaults are tuples.
    for name in field_names:
        if isinstance(getattr(built, name), tuple):
            setattr(built, name, [*getattr(built, name)])
    return built


def backbone_entries(content: Mapping[str, Any], pooled: bool = False) -> dict[str, Any]:
    """The entries of a ``config.json`` that describe its backbone, without default values.

    Entries about classes, files and versions are left out. ``pooled`` and errors are those of
    :func:`backbone_config`.
    """
    changed = backbone_config(content, pooled).to_diff_dict()
    left_out = {'architectures', 'id2label', 'label2id', 'transformers_version', *STAGE_FIELDS}
    left_out |= {*DERIVED_FIELDS.get(content['model_type'], ())}
    kept = {name: value for name, value in content.items() if name in changed.keys() - left_out}
    return dict(kept, model_type=content['model_type'])
