"""Run by test_mmengine_alone.py: what is there with MMEngine and none of the other frameworks, as
JSON: the modules that cannot be imported, with the reason, and what each task gave.
"""

import importlib
import json
import pkgutil
import runpy
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import TemporaryDirectory

warnings.simplefilter('ignore')
FRAMEWORKS = ('mmcv', 'mmpretrain', 'mmdet', 'mmseg')


class Absent:
    """A finder for which the frameworks are not installed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: object = None
    ) -> ModuleSpec | None:
        if name.partition('.')[0] in FRAMEWORKS:
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
        return None


sys.meta_path.insert(0, Absent())

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import vit_plugin  # noqa: E402
from vit_plugin import passes  # noqa: E402
from vit_plugin.deploy.deployed import deploy  # noqa: E402
from vit_plugin.deploy.export import export  # noqa: E402
from vit_plugin.weights import export as weights_as  # noqa: E402
from vit_plugin.weights import recognize  # noqa: E402

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64, patch_size=8)
IMAGES = 255 * torch.rand(2, 3, 32, 32)


def unavailable() -> dict[str, str]:
    """The modules of the package that cannot be imported, and the error."""
    found: dict[str, str] = {}
    for module in pkgutil.walk_packages(
        vit_plugin.__path__, 'vit_plugin.', onerror=lambda name: None
    ):
        if not module.name.endswith('__main__'):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                found[module.name] = f'{type(error).__name__}: {error}'
    return found


def command(*arguments: str | Path) -> None:
    """Run ``vit-plugin``."""
    sys.argv = ['vit-plugin', *map(str, arguments)]
    try:
        runpy.run_module('vit_plugin', run_name='__main__')
    except SystemExit as status:
        if status.code:
            raise RuntimeError(f'{arguments}: {status.code}') from status


def tasks(folder: Path) -> dict[str, float]:
    """The largest difference that each way through the package leaves of a classifier's logits."""
    torch.manual_seed(0)
    model = vit_plugin.create_model(ARCH, 3, img_size=32).eval()
    torch.nn.init.normal_(model.head.layers.head.weight)
    deployed, found = deploy(model), {}
    with torch.no_grad():
        logits = deployed(IMAGES)
        passes.optimize(model)
        found['passes'] = deploy(model)(IMAGES) - logits
        passes.restore(model)
        weights, _, _ = weights_as(recognize(model.state_dict()), 'timm', heads=2)
        save_file(weights, folder / 'timm.safetensors')
        ours = folder / 'ours.pth'
        command('convert', folder / 'timm.safetensors', '--out', ours, '--to', 'vit_plugin')
        for name in ('timm.safetensors', 'ours.pth'):
            again = vit_plugin.create_model(ARCH, 3, folder / name, img_size=32).eval()
            found[name] = deploy(again)(IMAGES) - logits
    for suffix in ('.onnx', '.pt2'):
        if suffix == '.pt2' or importlib.util.find_spec('onnxruntime'):
            found[suffix] = torch.tensor(export(deployed, folder / f'model{suffix}', (32, 32)))
    command('zoo', 'vit_tiny*')
    once = ['--img-size', '32', '--batch-size', '1', '--rounds', '1']
    command('benchmark', '--arch', 'Ti/16', '--peers', 'timm', *once)
    named = vit_plugin.create_model('timm://vit_tiny_patch16_224', 0, img_size=32)
    found['zoo'] = torch.tensor(named(IMAGES).shape[1] - 192.0)
    return {name: value.abs().max().item() for name, value in found.items()}


with TemporaryDirectory() as folder:
    result = dict(unavailable=unavailable(), tasks=tasks(Path(folder)))
print(json.dumps(result))
sys.exit(any(difference > 1e-4 for difference in result['tasks'].values()))
