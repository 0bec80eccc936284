"""Compare exported models of each family with their checkpoints, from image files to predictions.

    python benchmarks exported_answers [--only FAMILY ...] [--tests TEST ...]

Tiny models with random weights (``exported_families.py``) go through ``vit-plugin export``, and
their predictions by ``vit_plugin.load`` and by ``ExportedModel`` are compared. A test is a
preprocessing: steps of the pipeline, and padding. The 16 images have odd sizes, EXIF orientations,
gray, alpha, 16 bits or CMYK; some are strips or have few pixels. Prints for each family and test
the largest difference (see :func:`difference`) and its image, or the message if the export rejects
the model. 20 minutes on one core.
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
from benchmarks.exported_families import FAMILIES, TestSettings, save
from benchmarks.measuring.differences import nan_as_inf
from vit_plugin.__main__ import main as run_vit_plugin
from vit_plugin.deploy.exported_model import ExportedModel
from vit_plugin.errors import ConfigError
from vit_plugin.inference.predictions import Prediction
from vit_plugin.tasks.depth.depth_prediction import DepthPrediction

# Allowed differences: of a probability or a share of pixels, and of boxes in pixels.
MAX_DIFFERENCE, MAX_SHIFT = 1e-3, 0.1
STRETCH = [dict(type='Resize', scale=(96, 64), keep_ratio=False)]
KEEP = [dict(type='Resize', scale=(320, 200), keep_ratio=True)]
TESTS: dict[str, TestSettings] = {
    'stretch': TestSettings(STRETCH),
    'keep_ratio': TestSettings(KEEP),
    'keep_ratio, divisor 16': TestSettings(KEEP, dict(size_divisor=16)),
    'keep_ratio, divisor 32': TestSettings(KEEP, dict(size_divisor=32)),
    'keep_ratio, divisor 20': TestSettings(KEEP, dict(size_divisor=20)),
    'keep_ratio, divisor 320': TestSettings(KEEP, dict(size_divisor=320)),
    'another size than img_size': TestSettings(
        [dict(type='Resize', scale=(77, 90), keep_ratio=False)]
    ),
    'divisor 32, other value, BGR': TestSettings(
        KEEP, dict(size_divisor=32, pad_val=0.7), rgb=False
    ),
    'float, pillow off': TestSettings(KEEP, dict(size_divisor=32), loader=dict(to_float32=True)),
}
# Tests for classifiers alone: other pipelines do not resize an edge and crop.
CLASSIFIERS_TESTS: dict[str, TestSettings] = {
    'edge and crop': TestSettings(
        [
            dict(type='ResizeEdge', scale=77, edge='short', backend='pillow'),
            dict(type='CenterCrop', crop_size=65),
        ]
    ),
    'long edge and crop': TestSettings(
        [
            dict(type='ResizeEdge', scale=90, edge='long', interpolation='area'),
            dict(type='CenterCrop', crop_size=64),
        ]
    ),
}


def write_images(folder: Path) -> list[Path]:
    """Write the 16 image files."""
    rng = np.random.default_rng(0)

    def picture(width: int, height: int) -> Image.Image:
        coarse = Image.fromarray(rng.integers(0, 256, (5, 6, 3), np.uint8))
        return coarse.resize((width, height), Image.Resampling.BICUBIC)

    def oriented(orientation: int) -> Image.Exif:
        exif = Image.Exif()
        exif[ORIENTATION_TAG] = orientation
        return exif

    sixteen_bits = np.asarray(picture(123, 97).convert('L')).astype(np.uint16) * 257
    images: list[tuple[str, Image.Image, dict[str, Any]]] = [
        ('odd.jpg', picture(331, 223), {}),
        ('tall.jpg', picture(201, 397), {}),
        ('square.png', picture(64, 64), {}),
        ('large.jpg', picture(640, 480), {}),
        ('rotated-6.jpg', picture(301, 150), dict(exif=oriented(6))),
        ('rotated-3.jpg', picture(160, 121), dict(exif=oriented(3))),
        ('mirrored.jpg', picture(160, 121), dict(exif=oriented(5))),
        ('gray.jpg', picture(211, 133).convert('L'), {}),
        ('gray-alpha.png', picture(133, 211).convert('LA'), {}),
        ('rgba.png', picture(99, 87).convert('RGBA'), {}),
        ('16-bit.png', Image.fromarray(sixteen_bits), {}),
        ('cmyk.jpg', picture(150, 111).convert('CMYK'), {}),
        ('palette.png', picture(141, 115).quantize(64), {}),
        ('strip.jpg', picture(611, 37), {}),
        ('upright.jpg', picture(37, 611), {}),
        ('tiny.png', picture(2, 3), {}),
    ]
    for name, image, options in images:
        image.save(folder / name, **options)
    return [folder / name for name, *_ in images]


def difference(actual: Prediction, expected: Prediction) -> float:
    """How two predictions of an image differ; the unit depends on the task.

    The largest relative difference of a depth, the share of pixels with another class, the largest
    difference of a class's probability, or the shift of boxes in pixels. The shift of a box is the
    distance to the nearest box of its class and score. One box of twenty may have no counterpart,
    since scores may tie.
    """
    if isinstance(expected, DepthPrediction):
        assert isinstance(actual, DepthPrediction)
        return float(np.abs(actual.depth / expected.depth - 1).max())
    if expected.map is not None:
        return float((actual.map != expected.map).mean()) if actual.map is not None else 1.0
    if expected.boxes is None:
        by_label, expected_by_label = np.argsort(actual.labels), np.argsort(expected.labels)
        return float(np.abs(actual.scores[by_label] - expected.scores[expected_by_label]).max())
    shifts = []
    for one, other in ((expected, actual), (actual, expected)):
        distances = np.abs(one.boxes[:, None] - other.boxes).max(-1)
        same = one.labels[:, None] == other.labels
        same &= np.abs(one.scores[:, None] - other.scores) < MAX_DIFFERENCE
        shifts += np.where(same, distances, np.inf).min(1, initial=np.inf).tolist()
    return float(np.quantile(shifts, 0.95, method='higher')) if shifts else 0.0


def allowed_difference(family: str) -> float:
    """The limit of :func:`difference`: a panoptic prediction has no boxes, but a map."""
    scope, model = FAMILIES[family]
    has_boxes = scope == 'mmdet' and not model['test_cfg'].get('panoptic_on')
    return MAX_SHIFT if has_boxes else MAX_DIFFERENCE


@torch.no_grad()
def raw_difference(model: ExportedModel, trained: Any, path: Path) -> float:
    """The difference of the outputs of an exported backbone, relative to the largest value."""
    preprocessed = model.apply_pipeline(read_image(path))
    inputs = dict(
        images=model.channels_of(preprocessed.pixels)[None],
        sizes=np.array([preprocessed.unpadded_size]),
    )
    actual = model.runtime({name: inputs[name] for name in model.inputs})
    data = trained.model.data_preprocessor(
        dict(inputs=[trained.sample(str(path))['inputs']], data_samples=None), False
    )
    expected = trained.model.extract_feat(data['inputs'])[-1]
    return max(
        nan_as_inf(float(np.abs(one - other.numpy()).max() / other.abs().max()))
        for one, other in zip(actual, expected, strict=True)
    )


def compare(family: str, test: TestSettings, paths: list[Path], folder: Path) -> tuple[float, str]:
    """The largest difference of a family's file, and the image that has it.

    NaN and the message if the export rejects the model.
    """
    checkpoint, file = save(family, test, folder / 'epoch_1.pth'), folder / 'model.onnx'
    output = io.StringIO()
    dynamic = ['--dynamic'] if any(step.get('keep_ratio') for step in test.steps) else []
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            status = run_vit_plugin(['export', str(checkpoint), '--out', str(file), *dynamic])
        except SystemExit as end:
            status = end.code
    if status:
        return float('nan'), str(status)
    trained, model = vit_plugin.load(str(checkpoint), device='cpu'), ExportedModel(file)
    worst, where, skipped = -1.0, '', []
    for path in paths:
        if not model.outputs_predictions:
            image_difference = raw_difference(model, trained, path)
        else:
            try:
                expected = trained(str(path))
            except ConfigError as error:  # the exported model must reject the image too
                skipped.append(path.stem)
                with contextlib.suppress(ConfigError):
                    model(read_image(path))
                    return float('inf'), f'{path.name}: {error}'
                continue
            image_difference = nan_as_inf(difference(model(read_image(path)), expected))
        if image_difference > worst:
            worst, where = image_difference, path.stem
    return worst, where + (f' (both reject {", ".join(skipped)})' if skipped else '')


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
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
        paths = write_images(folder)
        for family in args.only:
            scope = FAMILIES[family][0]
            for test in args.tests:
                if test in CLASSIFIERS_TESTS and scope != 'mmpretrain':
                    continue
                start = time.time()
                largest, where = compare(family, tests[test], paths, folder)
                allowed = allowed_difference(family)
                failed += largest > allowed
                worst = 'rejected' if np.isnan(largest) else f'{largest:.1e}'
                print(
                    f'{family:24} {test:28} {worst:>8} {"DIFFERS" if largest > allowed else ""} '
                    f'{where} ({time.time() - start:.0f} s)',
                    flush=True,
                )
    print(f'{failed} differ')
    return int(failed > 0)


if __name__ == '__main__':
    sys.exit(main())
