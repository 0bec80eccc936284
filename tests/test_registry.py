"""Classes of this package are built by name in every framework's scope."""

import importlib
import subprocess
import sys
from importlib.util import find_spec

import pytest
from mmengine.config import Config
from mmengine.registry import MODELS, init_default_scope
from tiny_models import TINY

from vit_plugin import registry
from vit_plugin.errors import MissingExtraError
from vit_plugin.models import VisionTransformer

BACKBONE = dict(
    type='vit_plugin.VisionTransformer',
    img_size=32,
    arch=dict(TINY, num_layers=1),
)


@pytest.mark.parametrize('scope', [None, 'mmengine', 'mmpretrain', 'mmdet', 'mmseg'])
@pytest.mark.filterwarnings('ignore')
def test_scoped_name_builds_from_any_host(scope):
    if scope:
        init_default_scope(scope)
    assert type(MODELS.build(BACKBONE)) is VisionTransformer


@pytest.mark.filterwarnings('ignore')
def test_parts_build_from_another_scope():
    init_default_scope('mmpretrain')
    model = MODELS.build(
        dict(BACKBONE, patch_embed=dict(type='ResNetEmbed', stage_depths=(1,), width=32))
    )
    assert type(model.patch_embed).__name__ == 'ResNetEmbed'


def run(code: str) -> str:
    python = [sys.executable, '-W', 'ignore', '-c', code]
    return subprocess.run(python, check=True, capture_output=True, text=True).stdout


@pytest.mark.nightly
def test_the_name_alone_imports_the_plugin():
    assert 'VisionTransformer' in run(
        f'from mmengine.registry import MODELS; print(type(MODELS.build({BACKBONE})))'
    )


def test_custom_imports(tmp_path):
    config = tmp_path / 'config.py'
    config.write_text(
        "custom_imports = dict(imports=['vit_plugin'], allow_failed_imports=False)\n"
        f'model = {BACKBONE}\n'
    )
    assert type(MODELS.build(Config.fromfile(config).model)) is VisionTransformer


@pytest.mark.parametrize(
    ('package', 'registries'),
    [
        ('models', [registry.MODELS]),
        ('data', [registry.TRANSFORMS, registry.DATASETS]),
        ('engine', [registry.HOOKS, registry.METRICS]),
    ],
)
@pytest.mark.filterwarnings('ignore')
def test_lazy_classes_import_or_name_a_missing_framework(package, registries):
    module = importlib.import_module(f'vit_plugin.{package}')
    for name in [name for kind in registries for name in kind.lazy_modules]:
        missing = None
        try:
            assert getattr(module, name).__name__ == name
        except MissingExtraError as error:
            missing = error.name  # a framework that is not installed here
        assert not missing or not find_spec(missing), name
    with pytest.raises(AttributeError, match="has no attribute 'ViTHead'"):
        module.ViTHead  # noqa: B018
