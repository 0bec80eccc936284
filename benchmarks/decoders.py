"""Compare TransUNet's decoder with SegFormer's head and UPerNet, on one hybrid, in equal CPU time.

    python benchmarks decoders [--minutes 15] [--seeds 3] [--only NAME ...] [--scenes thin]

The data are the drawn scenes of ``defaults.py``: ``thin`` has small shapes with lines and rings of
two pixels, ``scenes`` larger ones. 240 are for training, 80 for validation, on other parts of the
photographs. The hybrid is that of ``vit-plugin train --data``, from scratch. Decoders get its
feature maps of strides 2 to 16, and TransUNet's also that of the root (the CNN's first
convolution), of stride 1. Time is the CPU time of one thread, and the learning rate is a function
of the elapsed time. The run prints steps, mIoU, mean Dice, and the F1 of boundaries within two
pixels.
"""

import argparse
import logging
import math
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from mmengine.config import ConfigDict
from mmengine.optim import build_optim_wrapper
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import PixelData
from torch import Tensor, nn

from vit_plugin.engine import SurfaceMetric

sys.path.insert(0, str(Path(__file__).parents[1]))
from benchmarks.defaults import SHAPES, SMALL, scene

BATCH, LR = 4, 4e-3
TRAIN, VAL = 240, 80  # numbers of scenes
CHANNELS = (16, 32, 64, 128, 192)
COLUMNS = ('mIoU', 'mDice', 'mBF1')
CE = dict(type='CrossEntropyLoss', avg_non_ignore=True)
CE_AND_DICE = [dict(CE, loss_weight=0.5), dict(type='vit_plugin.SoftDiceLoss', loss_weight=0.5)]
BACKBONE = dict(
    type='vit_plugin.VisionTransformer',
    img_size=(192, 256),
    arch=dict(embed_dims=192, num_layers=2, num_heads=3, feedforward_channels=384),
    patch_embed=dict(
        type='PooledResNetEmbed', channels=CHANNELS[:-1], patch_size=2, with_root=True
    ),
    numerics=dict(stem_norm_cfg=dict(num_groups=8)),
    with_cls_token=False,
    out_type='pyramid',
)
Sample = tuple[Tensor, Tensor]  # an image (3, H, W), and the class of each pixel (H, W)


def decoders() -> dict[str, dict]:
    """The config of each compared head."""
    common = dict(
        in_channels=list(CHANNELS[1:]),
        in_index=[1, 2, 3, 4],
        num_classes=len(SHAPES),
        norm_cfg=dict(type='GN', num_groups=8),
    )
    segformer = dict(common, type='SegformerHead', channels=64, align_corners=False)
    upernet = dict(segformer, type='UPerHead', pool_scales=(1, 2, 3, 6))
    rootless = dict(
        common,
        type='vit_plugin.TransUNetHead',
        strides=[2, 4, 8, 16],
        hidden_channels=128,
        decoder_channels=(96, 64, 32, 16),
    )
    transunet = dict(
        rootless, in_channels=list(CHANNELS), in_index=[0, 1, 2, 3, 4], strides=[1, 2, 4, 8, 16]
    )
    return {
        'SegFormer': dict(segformer, loss_decode=CE),
        'SegFormer, CE and Dice': dict(segformer, loss_decode=CE_AND_DICE),
        'UPerNet': dict(upernet, loss_decode=CE),
        'UPerNet, CE and Dice': dict(upernet, loss_decode=CE_AND_DICE),
        'TransUNet': dict(transunet, loss_decode=CE_AND_DICE),
        'TransUNet, CE': dict(transunet, loss_decode=CE),
        'TransUNet, without the root': dict(rootless, loss_decode=CE_AND_DICE),
    }


def build(head: dict) -> nn.Module:
    import mmseg.models  # noqa: F401

    init_default_scope('mmseg')
    segmentor = dict(type='EncoderDecoder', backbone=BACKBONE, decode_head=head)
    model = MODELS.build(ConfigDict(segmentor, train_cfg={}, test_cfg=dict(mode='whole')))
    model.init_weights()
    return model


def scenes(number: int, validation: bool, **sizes) -> list[Sample]:
    """Drawn scenes as tensors. ``sizes`` are those of :func:`benchmarks.defaults.draw_shape`."""
    rng = np.random.default_rng([validation, 43])
    made = (scene(rng, validation, **sizes) for _ in range(number))
    return [
        (
            torch.from_numpy(np.asarray(image)).permute(2, 0, 1) / 127.5 - 1,
            torch.from_numpy(mask).long(),
        )
        for image, mask, _ in made
    ]


def batches(data: list[Sample], seed: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Random batches, flipped at random along each axis."""
    rng = np.random.default_rng(seed)
    while True:
        chosen = rng.choice(len(data), BATCH, replace=False)
        axes = [[axis for axis in (-2, -1) if rng.random() < 0.5] for _ in chosen]
        yield tuple(
            torch.stack([part.flip(flips) for part, flips in zip(parts, axes, strict=True)])
            for parts in zip(*(data[i] for i in chosen), strict=True)
        )


def train(model: nn.Module, data: list[Sample], seconds: float, seed: int) -> int:
    """Train for these CPU seconds. Returns the number of steps."""
    from mmseg.structures import SegDataSample

    wrapper = build_optim_wrapper(
        model,
        dict(
            type='vit_plugin.OptimWrapper',
            optimizer=dict(type='vit_plugin.Muon', lr=LR, weight_decay=0.05),
            paramwise_cfg=dict(flat_decay_mult=0.0),
            clip_grad=dict(max_norm=1.0),
        ),
    )
    base_lrs = [group['lr'] for group in wrapper.param_groups]
    start = time.process_time()
    for steps, (images, masks) in enumerate(batches(data, seed)):
        share = (time.process_time() - start) / seconds
        if share >= 1:
            return steps
        factor = min(share / 0.05 + 0.01, (1 + math.cos(math.pi * share)) / 2)  # warm-up, cosine
        for group, lr in zip(wrapper.param_groups, base_lrs, strict=True):
            group['lr'] = lr * factor
        samples = [SegDataSample(gt_sem_seg=PixelData(data=mask[None])) for mask in masks]
        loss, _ = model.train().parse_losses(model(images, samples, mode='loss'))
        wrapper.update_params(loss)
    raise AssertionError('batches never end')


@torch.no_grad()
def quality(model: nn.Module, data: list[Sample]) -> tuple[float, ...]:
    """The scores of :data:`COLUMNS` in percent."""
    num_classes = len(SHAPES)
    confusion = torch.zeros(num_classes, num_classes, dtype=torch.long)
    metric = SurfaceMetric(tolerance=2.0)
    metric.dataset_meta = dict(classes=SHAPES)
    for image, mask in data:
        logits = model.eval()(image[None], mode='tensor')
        predicted = F.interpolate(logits, size=mask.shape, mode='bilinear').argmax(1)[0]
        pairs = mask.flatten() * num_classes + predicted.flatten()
        confusion += torch.bincount(pairs, minlength=num_classes**2).view(confusion.shape)
        sample = dict(pred_sem_seg=dict(data=predicted[None]), gt_sem_seg=dict(data=mask[None]))
        metric.process({}, [sample])
    correct = confusion.diag()
    union = confusion.sum(0) + confusion.sum(1) - correct
    miou = 100 * (correct / union.clamp_min(1)).mean().item()
    scores = metric.evaluate(len(data))
    return miou, scores['mDice'], scores['mBF1']


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--minutes', type=float, default=15, help='CPU time of each training')
    parser.add_argument('--seeds', type=int, default=3, help='number of trainings')
    parser.add_argument('--first-seed', type=int, default=0)
    parser.add_argument('--only', nargs='+', choices=decoders(), default=list(decoders()))
    parser.add_argument('--scenes', choices=('thin', 'scenes'), default='thin')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    logging.disable(logging.INFO)
    torch.set_num_threads(1)
    sizes = SMALL if args.scenes == 'thin' else {}
    training, validation = scenes(TRAIN, False, **sizes), scenes(VAL, True, **sizes)
    results: dict[str, list[tuple[float, ...]]] = {name: [] for name in args.only}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for name, rows in results.items():
            torch.manual_seed(seed)
            model = build(decoders()[name])
            steps = train(model, training, 60 * args.minutes, seed)
            rows.append(quality(model, validation))
            parameters = sum(p.numel() for p in model.parameters()) / 1e6
            print(
                f'{name}, {parameters:.2f} M parameters, seed {seed}: {args.minutes:g} min, '
                f'{steps} steps, {format_scores(rows[-1:])}',
                flush=True,
            )
    for name, rows in results.items() if args.seeds > 1 else ():
        print(f'{name}: {format_scores(rows)}')


def format_scores(rows: list[tuple[float, ...]]) -> str:
    """The mean of each column, and its standard deviation if there are several rows."""
    return ', '.join(
        f'{title} {statistics.mean(values):.1f}'
        + (f' ± {statistics.stdev(values):.1f}' if len(values) > 1 else '')
        for title, values in zip(COLUMNS, zip(*rows, strict=True), strict=True)
    )


if __name__ == '__main__':
    main()
