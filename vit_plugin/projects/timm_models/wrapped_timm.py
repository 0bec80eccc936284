"""Convert a timm name or folder to arguments of a ``TimmBackbone``.

The project declares the function among its wrappers, through which ``--arch`` and ``--weights``
take such models.
"""

from collections.abc import Mapping
from typing import Any

from timm.models import is_model

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import Section, Size
from vit_plugin.errors import ConfigError
from vit_plugin.weights.published import get_typed
from vit_plugin.zoo import describe

from .timm_kinds import TRAINING_ARGS

SCHEME = 'timm://'
HEAD_ARGUMENTS = ('num_classes', 'global_pool')  # arguments that do not affect feature maps


def timm_arguments(name: str, config: Mapping[str, Any]) -> Section:
    """The arguments of a ``TimmBackbone``; {} for other names, and for models computed here.

    Args:
        name: such as ``timm://convnext_tiny.fb_in22k``, or ''.
        config: the content of a ``config.json``, as timm writes it.

    Raises:
        ConfigError: if the folder's ``model_args`` change more than the image size, the head
            and what only affects training.
    """
    if name and not name.startswith(SCHEME):
        return {}
    model = name.removeprefix(SCHEME) or get_typed(config, 'architecture', str, '')
    if not is_model(model.partition('.')[0]):
        return {}
    try:
        describe(model)  # raises for models that VisionTransformer does not compute
    except ConfigError:
        model_args = get_typed(config, 'model_args', Mapping[str, Any], {})
        harmless = {*HEAD_ARGUMENTS, *TRAINING_ARGS}
        changing = {key: value for key, value in model_args.items() if key not in harmless}
        size = changing.pop('img_size', None)
        is_size = size is None or fits(Size, size)
        if changing.pop('in_chans', 3) != 3 or changing or not is_size:
            raise ConfigError(
                f'config.json: model_args={dict(model_args)!r}: TimmBackbone builds {model} as '
                'timm does by its name and image size alone; give a folder without other '
                'model_args.'
            ) from None
        return dict(model_name=model) if size is None else dict(model_name=model, img_size=size)
    return {}
