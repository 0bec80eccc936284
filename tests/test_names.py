"""The names in the tables of docs/migration.md exist in this package, timm and MMPretrain."""

import inspect
import re
from collections.abc import Callable
from functools import cache, partial

import pages
import pytest
import torch
from mmpretrain.models.backbones import VisionTransformer as MMPretrainViT
from timm.models.vision_transformer import VisionTransformer as TimmViT
from tiny_models import TINY_SIZES

from vit_plugin.arguments.encoder_options import OPTIONS
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.numerics import NumericsCfg
from vit_plugin.models.layers.pos_embed import PosEmbedCfg
from vit_plugin.models.stems.stem import Stem
from vit_plugin.weights import FORMATS

SIZES = dict(TINY_SIZES, num_layers=1)
NESTED = {  # arguments that are dicts, and the entries that they may have
    'encoder': OPTIONS,
    'numerics': NumericsCfg.__annotations__,
    'pos_embed': PosEmbedCfg.__annotations__,
    'patch_embed': inspect.signature(Stem).parameters,
}


def is_plugin_argument(path: str) -> bool:
    """Whether this package's ViT takes an argument, or ``argument.entry`` of one that is a dict."""
    name, _, entry = path.partition('.')
    return name in inspect.signature(VisionTransformer).parameters and (
        not entry or entry in NESTED[name]
    )


def is_argument(model: type, name: str) -> bool:
    """Whether a class takes an argument, or has a method in place of it."""
    return name in inspect.signature(model).parameters or callable(getattr(model, name, None))


@cache
def states() -> dict[str, set[str]]:
    """The parameter names of a small model of each package, with all that the table names."""
    with torch.device('meta'):
        plugin = VisionTransformer(
            dict(SIZES, patch_size=16), 32, encoder=dict(pre_norm=True, layer_scale_init_value=1e-5)
        ).state_dict()
        plain = VisionTransformer(dict(SIZES, patch_size=16), 32).state_dict()
        mmpretrain = MMPretrainViT(
            SIZES, 32, pre_norm=True, layer_scale_init_value=1e-5
        ).state_dict()
        timm_model = TimmViT(
            32, embed_dim=32, depth=1, num_heads=2, pre_norm=True, init_values=1e-5
        ).state_dict()
    transformers_names = {name.removeprefix('vit.') for name in FORMATS['hf'].export(plain, 2)[0]}
    return {
        'here': {*plugin},
        'timm': {*timm_model},
        'MMPretrain': {*mmpretrain},
        'transformers': {*transformers_names, 'key', 'value'},
    }


def is_parameter(column: str, name: str) -> bool:
    return name in states()[column]


CHECKS: dict[tuple[str, str], Callable[[str], bool]] = {
    ('Arguments of the backbone', 'here'): is_plugin_argument,
    ('Arguments of the backbone', 'timm'): partial(is_argument, TimmViT),
    ('Arguments of the backbone', 'MMPretrain'): partial(is_argument, MMPretrainViT),
    **{
        ('Parameters', column): partial(is_parameter, column)
        for column in ('here', 'timm', 'MMPretrain', 'transformers')
    },
}


def names(heading: str, column: str) -> list[str]:
    """The names in a column of the table under a heading."""
    text = (pages.ROOT / 'docs/migration.md').read_text()
    section = re.search(rf'^### {heading}$(.*?)(?=^### |\Z)', text, re.DOTALL | re.MULTILINE)[1]
    head, _, *rows = (
        line.strip('|').split('|') for line in section.splitlines() if line.startswith('|')
    )
    index = [cell.strip() for cell in head].index(column)
    return re.findall('`([^`]+)`', ' '.join(row[index] for row in rows))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('heading', 'column'), CHECKS, ids=' '.join)
def test_names_exist(heading, column):
    listed = names(heading, column)
    assert listed
    assert not [name for name in listed if not CHECKS[heading, column](name)]


def test_every_argument_of_the_backbone_is_listed():
    listed = names('Arguments of the backbone', 'here')
    assert {name.partition('.')[0] for name in listed} == {
        *inspect.signature(VisionTransformer).parameters
    }
