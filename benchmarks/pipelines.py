"""Compare the speed of input pipelines, from a JPEG file to the input of a training step.

    python benchmarks pipelines FOLDER [--img-size 224] [--rounds 10]

It prints how many of the JPEGs in FOLDER one core processes in a second, by the pipelines of this
package, MMPretrain, timm and torchvision.
"""

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmcv.transforms import Compose
from mmengine.registry import TRANSFORMS

from benchmarks.measuring.calls import interleaved

Pipeline = Callable[[str], Any]

MEAN, STD = [103.53, 116.28, 123.675], [57.375, 57.12, 58.395]  # ImageNet's, BGR
LOAD = dict(type='LoadImageFromFile')
FLIP = dict(type='RandomFlip', prob=0.5, direction='horizontal')
AUGMENT = dict(
    policies='timm_increasing',
    num_policies=2,
    total_level=10,
    magnitude_level=9,
    magnitude_std=0.5,
    hparams=dict(pad_val=[round(value) for value in MEAN], interpolation='bicubic'),
)
ERASE = dict(
    erase_prob=0.25,
    mode='rand',
    min_area_ratio=0.02,
    max_area_ratio=1 / 3,
    fill_color=MEAN,
    fill_std=STD,
)
PACK = dict(type='PackInputs')
SUFFIXES = {'.jpg', '.jpeg'}


def _mmpretrain(*steps: Mapping[str, Any]) -> Pipeline:
    """A pipeline of transforms that MMPretrain's registry finds, also those of this package."""
    with TRANSFORMS.switch_scope_and_registry('mmpretrain') as registry:
        pipeline = Compose([registry.build(step) for step in steps])
    return lambda path: pipeline(dict(img_path=path, gt_label=0))


def _timm(size: int) -> Pipeline:
    from PIL import Image
    from timm.data import create_transform

    # No deviation of the magnitude: it may posterize to 0 bits, which Pillow rejects since version
    # 13.
    transform = create_transform(
        size,
        is_training=True,
        auto_augment='rand-m9-inc1',
        re_prob=0.25,
        re_mode='pixel',
        interpolation='bicubic',
    )
    return lambda path: transform(Image.open(path).convert('RGB'))


def _torchvision(size: int, complete: bool) -> Pipeline:
    from torchvision.io import ImageReadMode, decode_image
    from torchvision.transforms import v2

    steps: list[Any] = [
        v2.RandomResizedCrop(size, interpolation=v2.InterpolationMode.BICUBIC, antialias=True)
    ]
    if complete:
        steps += [
            v2.RandomHorizontalFlip(),
            v2.RandAugment(num_ops=2, magnitude=9),
            v2.ToDtype(torch.float32, scale=True),
            v2.RandomErasing(0.25),
        ]
    transform = v2.Compose(steps)
    return lambda path: transform(decode_image(path, ImageReadMode.RGB))


def build_pipelines(size: int) -> dict[str, Pipeline]:
    """Build the pipelines, by name.

    The first only decodes. Those of a ``worker`` decode and crop; they suffice if the device
    augments. The ``complete`` ones have a bicubic crop, a flip, RandAugment (magnitude 9, two
    operations) and random erasing.
    """
    crop = dict(scale=size, interpolation='bicubic')
    load_and_crop = dict(type='vit_plugin.LoadRandomResizedCrop', **crop)
    crop_loaded = dict(type='RandomResizedCrop', **crop)
    augment, erase = dict(type='RandAugment', **AUGMENT), dict(type='RandomErasing', **ERASE)
    return {
        'decoding alone': lambda path: cv2.imdecode(np.fromfile(path, np.uint8), cv2.IMREAD_COLOR),
        'worker: vit_plugin': _mmpretrain(load_and_crop, PACK),
        'worker: mmpretrain': _mmpretrain(LOAD, crop_loaded, PACK),
        'worker: torchvision': _torchvision(size, complete=False),
        'complete: vit_plugin': _mmpretrain(load_and_crop, FLIP, augment, erase, PACK),
        'complete: mmpretrain, cv2': _mmpretrain(LOAD, crop_loaded, FLIP, augment, erase, PACK),
        'complete: mmpretrain, pillow': _mmpretrain(
            LOAD, dict(crop_loaded, backend='pillow'), FLIP, augment, erase, PACK
        ),
        'complete: timm': _timm(size),
        'complete: torchvision': _torchvision(size, complete=True),
    }


def compare_pipelines(folder: Path, size: int, rounds: int) -> dict[str, dict[str, float]]:
    """Measure how many images one core processes in a second.

    The pipelines are interleaved on the same files. Processor time is measured, so other work on
    the machine matters less.

    Returns:
        For each pipeline ``images_per_core_s``, the median of the rounds, and ``iqr``, the range
        between the quartiles.

    Raises:
        SystemExit: if the folder has no JPEG.
    """
    paths = sorted(str(path) for path in folder.rglob('*') if path.suffix.lower() in SUFFIXES)
    if not paths:
        raise SystemExit(f'There are no JPEG files in {str(folder)!r}.')
    threads = torch.get_num_threads(), cv2.getNumThreads()
    torch.set_num_threads(1)
    cv2.setNumThreads(0)
    try:
        calls = {
            name: partial(_run_all, pipeline, paths)
            for name, pipeline in build_pipelines(size).items()
        }
        # The first round is the warm-up.
        times = interleaved(calls, rounds + 1, clock=time.process_time)
    finally:
        torch.set_num_threads(threads[0])
        cv2.setNumThreads(threads[1])
    quartiles = {
        name: np.quantile(np.divide(len(paths), seconds[1:]), (0.25, 0.5, 0.75))
        for name, seconds in times.items()
    }
    return {
        name: dict(images_per_core_s=float(median), iqr=float(high - low))
        for name, (low, median, high) in quartiles.items()
    }


def _run_all(pipeline: Pipeline, paths: Sequence[str]) -> None:
    for path in paths:
        pipeline(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0])
    parser.add_argument('folder', type=Path)
    parser.add_argument('--img-size', type=int, default=224)
    parser.add_argument('--rounds', type=int, default=10)
    args = parser.parse_args()
    print(f'{"images per second and core":<28}{"median":>9}{"iqr":>8}')
    for name, rate in compare_pipelines(args.folder, args.img_size, args.rounds).items():
        print(f'{name:<28}{rate["images_per_core_s"]:>9.1f}{rate["iqr"]:>8.1f}')


if __name__ == '__main__':
    main()
