"""Choose a backbone that wraps another library's module, if no encoder here computes the model.

Projects declare such backbones, see :attr:`vit_plugin.project.Project.wrappers`.
"""

import os
from pathlib import Path
from pkgutil import resolve_name

from vit_plugin.arguments.fields import Section
from vit_plugin.project import declared_rows
from vit_plugin.untrusted.admission import validate_untrusted

from .hub import hub_config, is_of_hub
from .hub_files import HUB_CONFIG, OPEN_CLIP_CONFIG, find_model_folder
from .opening import Checkpoint
from .published_run import as_run
from .saved_settings import read_settings, value_at

# Arguments of a saved backbone that are not taken over, since a new model sets them itself.
RESET_ARGUMENTS = ('out_indices', 'out_type', 'img_size', 'init_cfg', 'frozen_stages', 'with_cp')


def wrapped_model(name: str, checkpoint: Checkpoint | None = None) -> Section:
    """The config of the wrapping backbone, or {} for models that are computed here.

    Args:
        name: the name of a model, such as ``timm://convnext_tiny``, a folder or ``hf://ORG/NAME``
            with a config, or ''.
        checkpoint: the weights, with the configs next to them, or a checkpoint of a training.

    Raises:
        ConfigError: if the config of such a model has an entry that is not supported.
    """
    readers = declared_rows('wrappers')
    if checkpoint:
        # A tower of timm in a folder of OpenCLIP is only known after its config is translated.
        is_open_clip = Path(OPEN_CLIP_CONFIG).stem in checkpoint.hub_configs
        settings = read_settings(as_run(checkpoint) if is_open_clip else checkpoint)
        backbone_type = value_at(settings, 'model.backbone.type')
        if isinstance(backbone_type, str) and backbone_type in readers:
            reduced = dict(settings, model=dict(backbone=settings['model']['backbone']))
            saved = validate_untrusted(reduced, checkpoint.source, 'start')['model']['backbone']
            return {key: value for key, value in saved.items() if key not in RESET_ARGUMENTS}
    config = checkpoint.hub_configs.get('config') if checkpoint else None
    if is_of_hub(name):
        folder = find_model_folder(os.path.expanduser(name))
        has_config = name.startswith('hf://') or Path(folder, HUB_CONFIG).is_file()
        name, config = '', hub_config(name) if has_config else {}  # OpenCLIP's folders have none
    if not (name or config):
        return {}
    for backbone_type, reader in readers.items():
        if arguments := resolve_name(reader)(name, config or {}):
            return dict(type=backbone_type, **arguments)
    return {}
