"""docs/migration.md: the names in its tables exist, ours and those of the packages that the tests install."""

import inspect
import re
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from pathlib import Path

import mmpretrain
import pages
import pytest
import timm
import torch
from mmpretrain.models.backbones import VisionTransformer as TheirViT
from timm.models.vision_transformer import VisionTransformer as TimmViT

from vit_plugin import registry
from vit_plugin.arguments.encoder import OPTIONS
from vit_plugin.files.shipped import shipped
from vit_plugin.models import VisionTransformer
from vit_plugin.models.layers.numerics import NumericsCfg
from vit_plugin.models.layers.pos_embed import PosEmbedCfg
from vit_plugin.models.stems.stem import Stem
from vit_plugin.weights import FORMATS

SIZES = dict(embed_dims=32, num_layers=1, num_heads=2, feedforward_channels=64)
NESTED = {'encoder': OPTIONS, 'numerics': NumericsCfg.__annotations__,
          'pos_embed': PosEmbedCfg.__annotations__, 'patch_embed': inspect.signature(Stem).parameters}
TIMM = ('timm', 'timm.layers', 'timm.data', 'timm.data.auto_augment', 'timm.data.random_erasing', 'timm.models',
        'timm.models.deit', 'timm.models.vision_transformer_hybrid', 'timm.optim', 'timm.utils')
MMPRETRAIN = ('mmpretrain', 'mmpretrain.apis.model', 'mmpretrain.models', 'mmpretrain.models.heads',
              'mmpretrain.models.utils', 'mmpretrain.datasets.transforms', 'mmpretrain.engine', 'mmengine.hooks',
              'mmengine.runner')
THEIR_FILES = Path(mmpretrain.__file__).parent / '.mim'


def is_ours(path: str) -> bool:
    module, _, name = path.rpartition('.')
    for kind in vars(registry).values():
        if module == registry.SCOPE and isinstance(kind, registry.Registry):
            kind.import_from_location()
            if name in {*kind.module_dict, *kind.later}:
                return True
    return hasattr(import_module(module), name)


def is_in(modules: tuple[str, ...], name: str) -> bool:
    return any(hasattr(import_module(module), name) for module in modules)


def is_our_argument(path: str) -> bool:
    name, _, entry = path.partition('.')
    return name in inspect.signature(VisionTransformer).parameters and (not entry or entry in NESTED[name])


def is_argument(model: type, name: str) -> bool:
    return name in inspect.signature(model).parameters or callable(getattr(model, name, None))


@cache
def states() -> dict[str, set[str]]:
    """The parameters of a small model of each package, with the parts that the table has."""
    with torch.device('meta'):
        ours = VisionTransformer(dict(SIZES, patch_size=16), 32, encoder=dict(
            pre_norm=True, layer_scale_init_value=1e-5)).state_dict()
        plain = VisionTransformer(dict(SIZES, patch_size=16), 32).state_dict()
        theirs = TheirViT(SIZES, 32, pre_norm=True, layer_scale_init_value=1e-5).state_dict()
        timms = TimmViT(32, embed_dim=32, depth=1, num_heads=2, pre_norm=True, init_values=1e-5).state_dict()
    written = {name.removeprefix('vit.') for name in FORMATS['hf'].export(plain, 2)[0]}
    return {'here': {*ours}, 'timm': {*timms}, 'MMPretrain': {*theirs}, 'transformers': {*written, 'key', 'value'}}


def is_parameter(column: str, name: str) -> bool:
    return name in states()[column]


def is_flag(tools: Path, flag: str) -> bool:
    """Whether train.py or test.py has a flag, or the module with those that both have."""
    launch = inspect.getsource(import_module('vit_plugin.apps.flags')) if tools == shipped('tools') else ''
    return f"'{flag}'" in launch + ''.join((tools / f'{name}.py').read_text() for name in ('train', 'test'))


def is_file(folder: Path, name: str) -> bool:
    return (folder / name).is_file()


CHECKS: dict[tuple[str, str], Callable[[str], bool]] = {
    ('Classes and functions', 'here'): is_ours,
    ('Classes and functions', 'timm'): partial(is_in, TIMM),
    ('Classes and functions', 'MMPretrain'): partial(is_in, MMPRETRAIN),
    ('Arguments of the backbone', 'here'): is_our_argument,
    ('Arguments of the backbone', 'timm'): partial(is_argument, TimmViT),
    ('Arguments of the backbone', 'MMPretrain'): partial(is_argument, TheirViT),
    **{('Parameters', column): partial(is_parameter, column)
       for column in ('here', 'timm', 'MMPretrain', 'transformers')},
    ('Flags', 'here'): partial(is_flag, shipped('tools')),
    ('Flags', 'MMPretrain'): partial(is_flag, THEIR_FILES / 'tools'),
    ('Configs', 'here'): partial(is_file, shipped('configs')),
    ('Configs', 'timm'): lambda name: name in timm.list_pretrained(),
    ('Configs', 'MMPretrain'): partial(is_file, THEIR_FILES / 'configs'),
}


def names(heading: str, column: str) -> list[str]:
    """The names in a column of the table under a heading."""
    text = (pages.ROOT / 'docs/migration.md').read_text()
    section = re.search(rf'^### {heading}$(.*?)(?=^### |\Z)', text, re.DOTALL | re.MULTILINE)[1]
    head, _, *rows = (line.strip('|').split('|') for line in section.splitlines() if line.startswith('|'))
    index = [cell.strip() for cell in head].index(column)
    return re.findall('`([^`]+)`', ' '.join(row[index] for row in rows))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize(('heading', 'column'), CHECKS, ids=' '.join)
def test_names_exist(heading, column):
    found = names(heading, column)
    assert found
    assert not [name for name in found if not CHECKS[heading, column](name)]


def test_every_argument_of_the_backbone_is_listed():
    listed = names('Arguments of the backbone', 'here')
    assert {name.partition('.')[0] for name in listed} == {*inspect.signature(VisionTransformer).parameters}
