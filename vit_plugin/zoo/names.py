"""The names of timm's Vision Transformers."""

from difflib import get_close_matches
from functools import lru_cache

import timm
import torch
from timm.models import is_model, list_models
from torch import nn

from vit_plugin.errors import ConfigError

# timm's files whose models are Vision Transformers in the sense of our backbone: one encoder of one width.
FAMILIES = ('vision_transformer', 'deit', 'vision_transformer_hybrid', 'eva', 'vitamin')

# Why the models of other families are not. The rest are CNNs or have several stages.
UNCOVERED = {
    'beit': 'whose relative positions have entries for the class token',
    'cait': 'which has talking heads and class attention',
    'convit': 'whose attention is gated by positions',
    'crossvit': 'whose models are two encoders',
    'mlp_mixer': 'which has no attention',
    'naflexvit': 'whose images are sequences of any number of patches',
    'sequencer': 'which has recurrent layers in place of attention',
    'tnt': 'which has a second encoder within each patch',
    'vision_transformer_relpos': 'whose relative positions are one table or MLP for both axes',
    'vision_transformer_sam': 'whose encoder ends in convolutions',
    'volo': 'which has outlook attention',
    'xcit': 'whose attention is between channels',
    **dict.fromkeys(('deepseek_vit', 'gemma4_vit', 'qwen3_vit'), 'which belongs to a language model'),
}


def names(pretrained: bool = False) -> list[str]:
    """All names of these families.

    Args:
        pretrained: whether to list the names of weights, such as ``'vit_base_patch16_dinov3.lvd1689m'``.
    """
    return [name for family in FAMILIES for name in list_models(module=family, pretrained=pretrained)]


@lru_cache(maxsize=8)
def find(name: str) -> nn.Module:
    """timm's model with this name, on the meta device.

    Raises:
        ConfigError: if timm has no such model, or if it is of another family, with the reason.
    """
    bare = name.partition('.')[0]
    if not is_model(bare):
        raise ConfigError(f'arch=timm://{name}: timm {timm.__version__} has no such model; {_nearest(name)}.')
    family = timm.models.model_entrypoint(bare).__module__.rpartition('.')[2]
    if family not in FAMILIES:
        reason = UNCOVERED.get(family, 'whose models are CNNs or have several stages')
        raise ConfigError(f"arch=timm://{name} is of timm's family {family}, {reason}; the families of the backbone "
                          f"are {', '.join(FAMILIES)}, and a CNN can be its stem, patch_embed=dict(type='TimmEmbed', "
                          'model_name=...).')
    try:
        with torch.device('meta'):
            return timm.create_model(name, num_classes=0).eval()
    except RuntimeError as error:  # of an unknown tag after the dot
        raise ConfigError(f'arch=timm://{name}: {str(error).splitlines()[0].rstrip(".")}; {_nearest(name)}.') from error


def _nearest(name: str) -> str:
    known = names(pretrained=True) if '.' in name else names()
    near = get_close_matches(name, known, n=3, cutoff=0.3)
    return f'the nearest are {", ".join(near)}' if near else 'python -m vit_plugin.zoo lists them'
