"""Run the dense probes (dense_probing.py) on 12 models of timm, on drawn scenes.

    python benchmarks dense_probe_scenes [--download] [--num-images 100] [--threads 1]

Prints the mIoU at four depths of each model, and the time this takes. A scene has two to five
bright digits on a darkened crop of a photograph, both of scikit-learn. Validation has digits and
halves of the photographs that do not occur in training. Without ``--download`` the models have
random weights, and their order means little.
"""

import argparse
import time

import cv2
import numpy as np
import torch
from mmengine.config import Config
from mmengine.model import ImgDataPreprocessor
from sklearn.datasets import load_digits, load_sample_images

from benchmarks.dense_probing import (
    DENSE_PROBES,
    Labeled,
    dense_probe,
    rank_correlation,
    table,
)
from vit_plugin.inference.image_transforms import TimmTransform
from vit_plugin.inference.load import load
from vit_plugin.inference.trained_model import TrainedModel
from vit_plugin.models.classifier import create_model
from vit_plugin.zoo.data_config import data_config_of

TIMM_MODELS = (
    'vit_tiny_patch16_224.augreg_in21k',
    'vit_small_patch16_224.augreg_in21k',
    'vit_small_patch32_224.augreg_in21k',
    'deit_tiny_patch16_224.fb_in1k',
    'deit_small_patch16_224.fb_in1k',
    'deit3_small_patch16_224.fb_in1k',
    'vit_small_patch16_224.dino',
    'vit_small_patch14_reg4_dinov2.lvd142m',
    'vit_small_patch16_dinov3.lvd1689m',
    'vit_tiny_r_s16_p8_224.augreg_in21k',
    'vit_small_r26_s32_224.augreg_in21k',
    'eva02_tiny_patch14_224.mim_in22k',
)
SIZE, BACKGROUND = 64, 10  # pixels; the class of everything but the digits 0 to 9


def draw_scenes(number: int, validation: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Draw images (N, SIZE, SIZE, 3) in BGR and the classes of their pixels (N, SIZE, SIZE)."""
    rng, digits = np.random.default_rng(validation), load_digits()
    fifth = np.arange(len(digits.target)) % 5 == 0
    chosen = np.flatnonzero(fifth if validation else ~fifth)
    halves = [
        np.split(photo, [photo.shape[1] // 2], axis=1)[validation]
        for photo in load_sample_images().images
    ]
    images, masks = [], np.full((number, SIZE, SIZE), BACKGROUND)
    for mask in masks:
        photo = halves[rng.integers(2)]
        y, x = (rng.integers(side - SIZE) for side in photo.shape[:2])
        image = 0.5 * photo[y : y + SIZE, x : x + SIZE, ::-1]
        for index in rng.choice(chosen, rng.integers(2, 6)):
            side = int(rng.integers(20, 37))
            ink = cv2.resize(digits.images[index].astype(np.float32) / 16, (side, side)).clip(0, 1)
            top, left = rng.integers(SIZE - side, size=2)
            part = np.s_[top : top + side, left : left + side]
            image[part] += ink[..., None] * (rng.integers(200, 256, 3) - image[part])
            mask[part][ink > 0.4] = digits.target[index]
        images.append(image.round().astype(np.uint8))
    return np.stack(images), masks


def untrained(name: str) -> TrainedModel:
    """A model of timm with random weights and its own preprocessing."""
    torch.manual_seed(0)
    data_config = data_config_of(f'timm://{name}', f'timm://{name}')
    model = create_model(f'timm://{name}', num_classes=0)
    model.data_preprocessor = ImgDataPreprocessor(
        *([255 * x for x in data_config[key]] for key in ('mean', 'std')), bgr_to_rgb=True
    )
    return TrainedModel(
        model,
        Config(dict(default_scope='mmpretrain')),
        {},
        TimmTransform(dict(data_config, input_size=(3, *model.backbone.img_size))),
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--download', action='store_true', help='download the published weights')
    parser.add_argument(
        '--num-images',
        type=int,
        default=100,
        help='scenes for training; half as many for validation',
    )
    parser.add_argument('--threads', type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    train, val = draw_scenes(args.num_images), draw_scenes(args.num_images // 2, validation=True)
    data = Labeled([*train[0], *val[0]], [*train[1], *val[1]], args.num_images, BACKGROUND + 1)
    begin, rows = time.perf_counter(), []
    for name in TIMM_MODELS:
        trained = load(f'timm://{name}', classify=False) if args.download else untrained(name)
        size = None
        if 'dinov' in name:  # their own size is larger than 224 pixels
            stride = trained.model.backbone.patch_embed.stride
            size = 224 // stride * stride
        rows += dense_probe(name, trained, data, size=size)
        print(f'{name}: {time.perf_counter() - begin:.0f} s')
    for probe in DENSE_PROBES:
        print(
            f'\n{probe}\n\n{table(rows, probe)}\n\nrank correlation of three seeds: '
            f'{rank_correlation([row for row in rows if row.probe == probe]):.2f}'
        )


if __name__ == '__main__':
    main()
