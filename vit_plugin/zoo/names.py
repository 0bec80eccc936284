"""Names of timm's Vision Transformers, and the models with these names on the meta device."""

from functools import lru_cache
from typing import Any

import timm
import torch
from timm.models import is_model, list_models
from torch import nn

from vit_plugin.errors import ConfigError, first_line
from vit_plugin.suggestions import closest

# timm's files whose models are Vision Transformers as our backbone computes them: one encoder of
# one width.
FAMILIES = ('vision_transformer', 'deit', 'vision_transformer_hybrid', 'eva', 'beit', 'vitamin')


def names(pretrained: bool = False) -> list[str]:
    """All names of the models in ``FAMILIES``.

    Args:
        pretrained: whether to list the names of weights, such as
            ``'vit_base_patch16_dinov3.lvd1689m'``.
    """
    return [
        name for family in FAMILIES for name in list_models(module=family, pretrained=pretrained)
    ]


@lru_cache(maxsize=8)  # the stem, encoder, pooling etc. of a name are read one after the other
def build_on_meta(name: str, **options: Any) -> nn.Module:
    """timm's model with this name, on the meta device.

    Args:
        name: the name, with or without the tag of its weights.
        options: arguments of timm's model.

    Raises:
        ConfigError: if timm has no such model, if it is not in ``FAMILIES``, or if it does not take
            an option.
    """
    model_name = name.partition('.')[0]
    if not is_model(model_name):
        raise ConfigError(
            f'arch=timm://{name}: timm {timm.__version__} has no such model; {_nearest(name)}.'
        )
    family = timm.models.model_entrypoint(model_name).__module__.rpartition('.')[2]
    if family not in FAMILIES:
        raise ConfigError(
            f'arch=timm://{name} is of the family {family} of timm, which '
            "vit_plugin.VisionTransformer does not compute; take type='vit_plugin.TimmBackbone' "
            f"with model_name={name!r}, or a CNN as its stem, patch_embed=dict(type='TimmEmbed', "
            'model_name=...).'
        )
    try:
        with torch.device('meta'):
            return timm.create_model(name, **{'num_classes': 0, **options}).eval()
    # A wrong option: timm looks names up in dicts, and divides by numbers.
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
        listed = ', '.join(f'{key}={value!r}' for key, value in options.items())
        raise ConfigError(
            f'timm builds no {name} with {listed} ({first_line(error)}); change them.'
        ) from error
    except RuntimeError as error:  # an unknown tag after the dot
        raise ConfigError(f'arch=timm://{name}: {first_line(error)}; {_nearest(name)}.') from error


def _nearest(name: str) -> str:
    """A clause for a message, with the names that are most similar to an unknown one."""
    known = names(pretrained=True) if '.' in name else names()
    near = closest(name, known, max_names=3, cutoff=0.3)
    return f'the nearest are {", ".join(near)}' if near else 'vit-plugin zoo lists them'
