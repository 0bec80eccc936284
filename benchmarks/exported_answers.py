"""Every family that is exported next to its checkpoint, from image files to answers.

    python benchmarks exported_answers [--only FAMILY ...] [--tests TEST ...]

Tiny models with random weights, by ``vit-plugin export``, ``vit_plugin.load`` and
``ExportedModel``. The 16 images have odd sizes, turns by EXIF, gray, alpha, 16 bits, CMYK, and are
strips or of a few pixels. Prints for each family and test the largest difference of a probability,
the share of a map's pixels, or the shift of boxes in pixels of the image, and the sentence of what
is refused. 20 minutes on one core.
"""

import argparse
import contextlib
import io
import os
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

import vit_plugin
from anyfolder.pixels.image_headers import ORIENTATION_TAG
from anyfolder.pixels.images import read_image
from benchmarks.exported_families import FAMILIES, Test, save
from vit_plugin.__main__ import main as command
from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.errors import ConfigError
from vit_plugin.inference.predictions import Prediction
from vit_plugin.tasks.depth.depth_prediction import DepthPrediction

# Allowed difference of a probability or share of a map's pixels, and of a box in pixels.
MAX_DIFFERENCE, MAX_SHIFT = 1e-3, 0.1
STRETCH = [dict(type='Resize', scale=(96, 64), keep_ratio=False)]
KEEP = [dict(type='Resize', scale=(320, 200), keep_ratio=True)]
TESTS: dict[str, Test] = {
    'stretch': Test(STRETCH),
    'keep_ratio': Test(KEEP),
    'keep_ratio, divisor 16': Test(KEEP, dict(size_divisor=16)),
    'keep_ratio, divisor 32': Test(KEEP, dict(size_divisor=32)),
    'keep_ratio, divisor 20': Test(KEEP, dict(size_divisor=20)),
    'keep_ratio, divisor 320': Test(KEEP, dict(size_divisor=320)),
    'another size than img_size': Test([dict(type='Resize', scale=(77, 90), keep_ratio=False)]),
    'divisor 32, other value, BGR': Test(KEEP, dict(size_divisor=32, pad_val=0.7), rgb=False),
    'float, pillow off': Test(KEEP, dict(size_divisor=32), loader=dict(to_float32=True)),
}
# Tests for classifiers alone, whose pipelines have this form.
CLASSIFIERS_TESTS: dict[str, Test] = {
    'edge and crop': Test(
        [
            dict(type='ResizeEdge', scale=77, edge='short', backend='pillow'),
            dict(type='CenterCrop', crop_size=65),
        ]
    ),
    'long edge and crop': Test(
        [
            dict(type='ResizeEdge', scale=90, edge='long', interpolation='area'),
            dict(type='CenterCrop', crop_size=64),
        ]
    ),
}


def images(folder: Path) -> list[Path]:
    """The 16 image files."""
    random = np.random.default_rng(0)

    def picture(width: int, height: int) -> Image.Image:
        coarse = Image.fromarray(random.integers(0, 256, (5, 6, 3), np.uint8))
        return coarse.resize((width, height), Image.Resampling.BICUBIC)

    def turned(by: int) -> Image.Exif:
        exif = Image.Exif()
        exif[ORIENTATION_TAG] = by
        return exif

    wide = np.asarray(picture(123, 97).convert('L')).astype(np.uint16) * 257
    kinds: list[tuple[str, Image.Image, dict[str, Any]]] = [
        ('odd.jpg', picture(331, 223), {}),
        ('tall.jpg', picture(201, 397), {}),
        ('square.png', picture(64, 64), {}),
        ('large.jpg', picture(640, 480), {}),
        ('turned-6.jpg', picture(301, 150), dict(exif=turned(6))),
        ('turned-3.jpg', picture(160, 121), dict(exif=turned(3))),
        ('mirrored.jpg', picture(160, 121), dict(exif=turned(5))),
        ('gray.jpg', picture(211, 133).convert('L'), {}),
        ('gray-alpha.png', picture(133, 211).convert('LA'), {}),
        ('rgba.png', picture(99, 87).convert('RGBA'), {}),
        ('16-bit.png', Image.fromarray(wide), {}),
        ('cmyk.jpg', picture(150, 111).convert('CMYK'), {}),
        ('palette.png', picture(141, 115).quantize(64), {}),
        ('strip.jpg', picture(611, 37), {}),
        ('upright.jpg', picture(37, 611), {}),
        ('tiny.png', picture(2, 3), {}),
    ]
    for name, image, options in kinds:
        image.save(folder / name, **options)
    return [folder / name for name, *_ in kinds]


def difference(found: Prediction, wanted: Prediction) -> float:
    """The difference of a probability, of the share of a map's pixels, or of boxes in pixels.

    The shift of a box is the distance to the nearest box of its class and score. One box of twenty
    may have no counterpart, where scores tie.
    """
    if isinstance(wanted, DepthPrediction):
        assert isinstance(found, DepthPrediction)
        return float(np.abs(found.depth / wanted.depth - 1).max())
    if wanted.map is not None:
        return float((found.map != wanted.map).mean()) if found.map is not None else 1.0
    if wanted.boxes is None:
        ours, theirs = np.argsort(found.labels), np.argsort(wanted.labels)
        return float(np.abs(found.scores[ours] - wanted.scores[theirs]).max())
    shifts = []
    for one, other in ((wanted, found), (found, wanted)):
        apart = np.abs(one.boxes[:, None] - other.boxes).max(-1)
        same = one.labels[:, None] == other.labels
        same &= np.abs(one.scores[:, None] - other.scores) < MAX_DIFFERENCE
        shifts += np.where(same, apart, np.inf).min(1, initial=np.inf).tolist()
    return float(np.quantile(shifts, 0.95, method='higher')) if shifts else 0.0


@torch.no_grad()
def raw_difference(model: ExportedModel, trained: Any, path: Path) -> float:
    """The difference of the outputs of a file without answers, relative to the largest."""
    placed = model.apply_pipeline(read_image(path))
    given = dict(
        images=model.channels_of(placed.pixels)[None], sizes=np.array([placed.unpadded_size])
    )
    found = model.runtime({name: given[name] for name in model.inputs})
    data = trained.model.data_preprocessor(
        dict(inputs=[trained.sample(str(path))['inputs']], data_samples=None), False
    )
    wanted = trained.model.extract_feat(data['inputs'])[-1]
    return max(
        float(np.abs(one - other.numpy()).max() / other.abs().max())
        for one, other in zip(found, wanted, strict=True)
    )


def compare(family: str, test: Test, paths: list[Path], folder: Path) -> tuple[float, str]:
    """The largest difference of a family's file, and what was said."""
    checkpoint, file = save(family, test, folder / 'epoch_1.pth'), folder / 'model.onnx'
    said = io.StringIO()
    dynamic = ['--dynamic'] if any(step.get('keep_ratio') for step in test.steps) else []
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            status = command(['export', str(checkpoint), '--out', str(file), *dynamic])
        except SystemExit as end:
            status = end.code
    if status:
        return float('nan'), str(status)
    trained, model = vit_plugin.load(str(checkpoint), device='cpu'), ExportedModel(file)
    worst, where, skipped = -1.0, '', []
    for path in paths:
        if not model.outputs_predictions:
            apart = raw_difference(model, trained, path)
        else:
            try:
                wanted = trained(str(path))
            except ConfigError as error:  # both must reject the image
                skipped.append(path.stem)
                with contextlib.suppress(ConfigError):
                    model(read_image(path))
                    return float('inf'), f'{path.name}: {error}'
                continue
            apart = difference(model(read_image(path)), wanted)
        if apart > worst:
            worst, where = apart, path.stem
    return worst, where + (f' (both refuse {", ".join(skipped)})' if skipped else '')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    tests = TESTS | CLASSIFIERS_TESTS
    parser.add_argument('--only', nargs='+', default=FAMILIES, choices=FAMILIES, metavar='FAMILY')
    parser.add_argument('--tests', nargs='+', default=tests, choices=tests, metavar='TEST')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    os.environ['OMP_NUM_THREADS'] = '1'
    torch.set_num_threads(1)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = images(folder)
        for family in args.only:
            scope = FAMILIES[family][0]
            for test in args.tests:
                if test in CLASSIFIERS_TESTS and scope != 'mmpretrain':
                    continue
                start = time.time()
                apart, said = compare(family, tests[test], paths, folder)
                allowed = MAX_SHIFT if scope == 'mmdet' else MAX_DIFFERENCE
                failed += apart > allowed
                worst = 'refused' if np.isnan(apart) else f'{apart:.1e}'
                print(
                    f'{family:24} {test:28} {worst:>8} {"DIFFERS" if apart > allowed else ""} '
                    f'{said} ({time.time() - start:.0f} s)',
                    flush=True,
                )
    print(f'{failed} differ')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
