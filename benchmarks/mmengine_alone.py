"""Try what the package can do with MMEngine and none of the other frameworks.

It prints JSON: ``unavailable``, the modules that cannot be imported, with their errors; ``tasks``,
differences of a classifier's logits, see :func:`logit_differences`; and ``classifier``, what the
commands make of a folder of images. With the argument ``all`` the other frameworks stay importable,
for comparison. The status is 1 if a logit differs, or if a resumed training ends differently.

The campaign ``matrix`` runs it, and ``tests/test_mmengine_alone.py``.
"""

import hashlib
import importlib
import json
import os
import pkgutil
import runpy
import shutil
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

warnings.simplefilter('ignore')
FRAMEWORKS = ('mmcv', 'mmpretrain', 'mmdet', 'mmseg')


if 'all' not in sys.argv:
    # Importing a module that is None raises an ImportError, as if it were not installed.
    sys.modules.update(dict.fromkeys(FRAMEWORKS))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from PIL import Image  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

import vit_plugin  # noqa: E402
from vit_plugin import passes  # noqa: E402
from vit_plugin.deploy.deployed import deploy  # noqa: E402
from vit_plugin.deploy.export import export  # noqa: E402
from vit_plugin.weights import export as weights_as  # noqa: E402
from vit_plugin.weights import recognize  # noqa: E402

ARCH = dict(embed_dims=32, num_layers=2, num_heads=2, feedforward_channels=64, patch_size=8)
IMAGES = 255 * torch.rand(2, 3, 32, 32)


@contextmanager
def chdir(folder: str) -> Iterator[None]:
    """Change to a folder within this context."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def unavailable() -> dict[str, str]:
    """The modules of the package that cannot be imported, and the error."""
    errors: dict[str, str] = {}
    for module in pkgutil.walk_packages(
        vit_plugin.__path__, 'vit_plugin.', onerror=lambda name: None
    ):
        if not module.name.endswith('__main__'):
            try:
                importlib.import_module(module.name)
            except ImportError as error:
                errors[module.name] = f'{type(error).__name__}: {error}'
    return errors


def command(*arguments: str | Path) -> None:
    """Run ``vit-plugin`` in this process.

    Raises:
        RuntimeError: if it ends with an error.
    """
    sys.argv = ['vit-plugin', *map(str, arguments)]
    try:
        runpy.run_module('vit_plugin', run_name='__main__')
    except SystemExit as status:
        if status.code:
            raise RuntimeError(f'{arguments}: {status.code}') from status


def logit_differences(folder: Path) -> dict[str, float]:
    """The largest difference of a classifier's logits after each way through the package.

    The ways are its passes, its weights in files of timm's format and of its own, and its exported
    graphs. ``zoo`` is the difference of a named model's width from the right one.
    """
    torch.manual_seed(0)
    model = vit_plugin.create_model(ARCH, 3, img_size=32).eval()
    torch.nn.init.normal_(model.head.layers.head.weight)
    deployed, differences = deploy(model), {}
    with torch.no_grad():
        logits = deployed(IMAGES)
        passes.optimize(model)
        differences['passes'] = deploy(model)(IMAGES) - logits
        passes.restore(model)
        weights, _, _ = weights_as(recognize(model.state_dict()), 'timm', heads=2)
        save_file(weights, folder / 'timm.safetensors')
        ours = folder / 'ours.pth'
        command('convert', folder / 'timm.safetensors', '--out', ours, '--to', 'vit_plugin')
        for name in ('timm.safetensors', 'ours.pth'):
            again = vit_plugin.create_model(ARCH, 3, folder / name, img_size=32).eval()
            differences[name] = deploy(again)(IMAGES) - logits
    for suffix in ('.onnx', '.pt2'):
        if suffix == '.pt2' or importlib.util.find_spec('onnxruntime'):
            differences[suffix] = torch.tensor(
                export(deployed, folder / f'model{suffix}', (32, 32))
            )
    command('zoo', 'vit_tiny*')
    named = vit_plugin.create_model('timm://vit_tiny_patch16_224', 0, img_size=32)
    differences['zoo'] = torch.tensor(named(IMAGES).shape[1] - 192.0)
    return {name: value.abs().max().item() for name, value in differences.items()}


CONFIG = """
_base_ = 'vit_plugin::_base_/default_runtime.py'
train_pipeline = [
    dict(type='vit_plugin.LoadImage'),
    dict(type='RandomResizedCrop', scale=32, interpolation='bicubic', backend='pillow'),
    dict(type='RandomFlip', prob=0.5, direction='horizontal'),
    dict(type='Rotate', magnitude_range=(0, 15), magnitude_std='inf', prob=1.0),
    dict(type='PackInputs'),
]
test_pipeline = [
    dict(type='LoadImageFromFile'),
    dict(type='ResizeEdge', scale=36, edge='short'),
    dict(type='CenterCrop', crop_size=32),
    dict(type='PackInputs'),
]
data = dict(type='CustomDataset', data_root='data', data_prefix='', pipeline=train_pipeline)
train_dataloader = dict(
    batch_size=4,
    num_workers=1,
    dataset=data,
    sampler=dict(type='vit_plugin.DefaultSampler', shuffle=True),
)
val_dataloader = dict(
    batch_size=4,
    num_workers=0,
    dataset={**data, 'pipeline': test_pipeline},
    sampler=dict(type='DefaultSampler', shuffle=False),
)
test_dataloader = val_dataloader
val_evaluator = test_evaluator = dict(type='Accuracy', topk=(1, 2))
data_preprocessor = dict(num_classes=3, mean=[127.5] * 3, std=[64.0] * 3, to_rgb=True)
model = dict(
    type='ImageClassifier',
    backbone=dict(type='vit_plugin.VisionTransformer', arch=ARCH, img_size=32),
    head=dict(
        type='vit_plugin.ViTClsHead',
        num_classes=3,
        in_channels=32,
        loss=dict(type='LabelSmoothLoss', label_smooth_val=0.1, mode='original'),
    ),
    train_cfg=dict(augments=[dict(type='Mixup', alpha=0.2)]),
)
optim_wrapper = dict(optimizer=dict(type='AdamW', lr=0.01))
train_cfg = dict(by_epoch=True, max_epochs=2)
val_cfg = test_cfg = dict()
work_dir = 'run'
"""


def run_commands() -> dict[str, str]:
    """Train a classifier in the current folder, and use it by each command.

    Returns:
        Digests of the weights of a training (``run``) and of one that resumed its first epoch
        (``again``), and the results of the commands, as text.
    """
    rng = np.random.default_rng(0)
    for i in range(24):
        path = Path('data', 'abc'[i % 3], f'{i}.png')
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = 80 * (i % 3) + rng.integers(0, 85, (40, 48, 3))
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    Path('config.py').write_text(f'ARCH = {ARCH}\n{CONFIG}')
    results = {}
    command('train', 'config.py')
    Path('again').mkdir()
    shutil.copy('run/epoch_1.pth', 'again')
    command('train', 'config.py', '--work-dir', 'again', '--resume', 'again/epoch_1.pth')
    for folder in ('run', 'again'):
        state = torch.load(f'{folder}/epoch_2.pth', weights_only=False)['state_dict']
        digest = hashlib.sha256()
        for value in state.values():
            digest.update(value.numpy().tobytes())
        results[folder] = digest.hexdigest()
    command('infer', 'run', 'data', '--checkpoint', 'last', '--out', 'infer.json')
    command('test', 'run', '--checkpoint', 'last', '--out', 'test.json', '--out-item', 'metrics')
    command('embed', 'run', 'data', '--checkpoint', 'last', '--out', 'embed.npz')
    command('export', 'run', 'export.pt2', '--checkpoint', 'last')
    results['embed'] = str(np.load('embed.npz')['features'].tolist())
    results['infer'] = Path('infer.json').read_text()
    results['test'] = str(json.loads(Path('test.json').read_text())['accuracy/top1'])
    if importlib.util.find_spec('sklearn'):
        command('probe', 'run', '--probes', 'linear', '--out', 'probe.json')
        results['probe'] = Path('probe.json').read_text()
    return results


with TemporaryDirectory() as folder:
    differences = logit_differences(Path(folder))
    missing = unavailable()
    with chdir(folder):
        result = dict(unavailable=missing, tasks=differences, classifier=run_commands())
print(json.dumps(result))
resumed = result['classifier']['again'] == result['classifier']['run']
# Written so that a NaN fails.
sys.exit(not (resumed and all(difference <= 1e-4 for difference in result['tasks'].values())))
