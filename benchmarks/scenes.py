"""Compare EoMT with ViT-Adapter and Mask2Former on synthetic scenes, trained from scratch.

    python benchmarks scenes [--seconds 600] [--seeds 3] [--only NAME ...]

A scene has two to four filled shapes (the things), each in one color with noise, on a part of one
of scikit-learn's two photographs (the stuff). Every model is a ViT, or a hybrid, of six blocks of
width 128 with a stride of 8 pixels, trained in MMDetection's Mask2Former. The adapter trains for
``--seconds`` of processor time in one thread, EoMT for half of them; learning rate and mask
annealing follow the time. PQ and mIoU are printed, measured on other parts of the photographs.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Iterator

import cv2
import numpy as np
import torch
from mmengine.config import ConfigDict
from mmengine.hub import get_config
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import InstanceData, PixelData
from sklearn.datasets import load_sample_images
from torch import Tensor, nn

import vit_plugin.detection  # noqa: F401  before MMDetection
from vit_plugin.engine import MaskAnnealingHook

SIZE, QUERIES, BATCH, WIDTH = 64, 16, 16, 128  # SIZE: side of an image in pixels
SHAPES = ('disc', 'square', 'triangle', 'cross', 'star')
CLASSES = dict(num_things_classes=len(SHAPES), num_stuff_classes=2)
PHOTOS = [image[..., ::-1] for image in load_sample_images().images]
OFFSET = 1000  # MMDetection's id of a pixel: class + OFFSET * number of the instance, 0 for stuff


def outline(shape: str) -> np.ndarray:
    """The corners of a shape (N, 2), within 1 of its center."""
    if shape == 'cross':
        x = (-0.3, 0.3, 0.3, 1, 1, 0.3, 0.3, -0.3, -0.3, -1, -1, -0.3)
        y = (-1, -1, -0.3, -0.3, 0.3, 0.3, 1, 1, 0.3, 0.3, -0.3, -0.3)
        return np.stack((x, y), axis=1)
    corners = dict(disc=40, square=4, triangle=3, star=10)[shape]
    angles = 2 * math.pi * np.arange(corners) / corners
    radii = np.where(np.arange(corners) % 2, 0.4, 1) if shape == 'star' else np.ones(corners)
    return np.stack((radii * np.cos(angles), radii * np.sin(angles)), axis=1)


def scene(rng: np.random.Generator, validation: bool) -> tuple[np.ndarray, np.ndarray]:
    """An image (SIZE, SIZE, 3) and the id of each of its pixels (SIZE, SIZE)."""
    photo_number = int(rng.integers(2))
    photo = PHOTOS[photo_number]
    cut = photo.shape[1] * 2 // 3  # training sees the left two thirds, validation the rest
    photo = photo[:, cut:] if validation else photo[:, :cut]
    y, x = (rng.integers(side - SIZE) for side in photo.shape[:2])
    image = photo[y : y + SIZE, x : x + SIZE].astype(np.float32)
    ids = np.full((SIZE, SIZE), len(SHAPES) + photo_number)
    for instance in range(1, rng.integers(3, 6)):
        label, radius, angle = (
            int(rng.integers(len(SHAPES))),
            rng.uniform(9, 18),
            rng.uniform(0, 2 * math.pi),
        )
        rotation = np.array(
            [(math.cos(angle), -math.sin(angle)), (math.sin(angle), math.cos(angle))]
        )
        points = radius * outline(SHAPES[label]) @ rotation + rng.uniform(10, SIZE - 10, 2)
        mask = (
            cv2.fillPoly(np.zeros((SIZE, SIZE), np.uint8), [points.round().astype(np.int32)], 1) > 0
        )
        image[mask] = rng.uniform(0, 256, 3) + rng.normal(0, 12, (mask.sum(), 3))
        ids[mask] = label + OFFSET * instance
    return image.clip(0, 255).astype(np.uint8), ids


def batch(
    rng: np.random.Generator, number: int, validation: bool = False
) -> tuple[Tensor, list, np.ndarray]:
    """Normalized images (N, 3, H, W), MMDetection's samples, and the ids of pixels (N, H, W)."""
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks

    images, maps = (
        np.stack(parts)
        for parts in zip(*(scene(rng, validation) for _ in range(number)), strict=True)
    )
    samples = []
    for ids in maps:
        things = [i for i in np.unique(ids) if i >= OFFSET]
        sample = DetDataSample(
            metainfo=dict(
                img_shape=(SIZE,) * 2,
                ori_shape=(SIZE,) * 2,
                scale_factor=(1.0, 1.0),
                batch_input_shape=(SIZE,) * 2,
                pad_shape=(SIZE,) * 2,
            )
        )
        sample.gt_instances = InstanceData(
            labels=torch.tensor([i % OFFSET for i in things], dtype=torch.long),
            masks=BitmapMasks(np.stack([ids == i for i in things]).astype(np.uint8), SIZE, SIZE),
        )
        stuff = np.where(ids < OFFSET, ids, 255)  # things are ignored in the semantic map
        sample.gt_sem_seg = PixelData(sem_seg=torch.from_numpy(stuff)[None])
        samples.append(sample)
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 64 - 2, samples, maps


def models() -> dict[str, dict]:
    """The arguments of Mask2Former for each model, by name."""
    arch = dict(num_layers=6, embed_dims=WIDTH, num_heads=4, feedforward_channels=4 * WIDTH)
    vit = dict(arch=arch, img_size=SIZE, patch_embed=dict(patch_size=8))
    hybrid = dict(
        arch=arch,
        img_size=SIZE,
        patch_embed=dict(
            type='ConvEmbed',
            channels=(32, 64, 64, 128),
            strides=(2, 2, 1, 2),
            kernel_sizes=(3, 3, 3, 3),
        ),
    )
    queries = dict(num_queries=QUERIES, num_classes=sum(CLASSES.values()), num_blocks=3)
    head = get_config(
        'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco-panoptic.py'
    ).model.panoptic_head
    head.update(
        in_channels=[WIDTH] * 4,
        feat_channels=WIDTH,
        out_channels=WIDTH,
        num_queries=QUERIES,
        **CLASSES,
    )
    pixels, decoder = head.pixel_decoder, head.transformer_decoder
    for part in (pixels.encoder, decoder):
        part.num_layers = 3  # as many as EoMT has blocks with queries
        for cfg in part.layer_cfg.values():
            cfg.embed_dims = WIDTH
        part.layer_cfg.ffn_cfg.feedforward_channels = 4 * WIDTH
    pixels.positional_encoding.num_feats = head.positional_encoding.num_feats = WIDTH // 2
    head.loss_cls.class_weight = [1.0] * sum(CLASSES.values()) + [0.1]
    adapter = dict(type='vit_plugin.ViTAdapter', conv_inplane=32, interactions=3)
    return {
        'EoMT': dict(backbone=dict(vit, type='vit_plugin.EoMT', **queries)),
        'EoMT, hybrid': dict(backbone=dict(hybrid, type='vit_plugin.EoMT', **queries)),
        'adapter + Mask2Former': dict(
            backbone=dict(adapter, backbone=dict(vit, with_cls_token=False)), panoptic_head=head
        ),
    }


def build(cfg: dict) -> nn.Module:
    """Build a model. Without ``panoptic_head`` it is an EoMT."""
    points = dict(num_points=1024, oversample_ratio=3.0, importance_sample_ratio=0.75)
    mask2former = get_config(
        'mmdet::mask2former/mask2former_r50_8xb2-lsj-50e_coco-panoptic.py'
    ).model
    if 'panoptic_head' in cfg:
        train_cfg = dict(mask2former.train_cfg, **points)
    else:
        train_cfg, cfg = (
            points,
            dict(cfg, panoptic_head=dict(type='vit_plugin.EoMTHead', **CLASSES)),
        )
    model = MODELS.build(
        ConfigDict(
            cfg,
            type='Mask2Former',
            train_cfg=train_cfg,
            panoptic_fusion_head=dict(
                type='MaskFormerFusionHead', loss_panoptic=None, init_cfg=None, **CLASSES
            ),
            test_cfg=dict(mask2former.test_cfg, object_mask_thr=0.5, instance_on=False),
        )
    )
    model.init_weights()
    return revert_sync_batchnorm(model)


def train(model: nn.Module, seconds: float, lr: float, seed: int) -> int:
    """Train for this processor time. Returns the number of steps."""
    rng, steps = np.random.default_rng(seed), 0
    queries = getattr(model.backbone, 'queries', None)
    optimizer = torch.optim.AdamW(model.parameters(), lr, weight_decay=0.05)
    annealing, start = MaskAnnealingHook(), time.process_time()
    while (position := (time.process_time() - start) / seconds) < 1:
        for group in optimizer.param_groups:
            group['lr'] = lr * min(position / 0.05, 0.5 + 0.5 * math.cos(math.pi * position))
        if queries is not None:
            queries.set_probs(annealing.probs(3, position))
        images, samples, _ = batch(rng, BATCH)
        losses = model.loss(images, samples)
        sum(
            value
            for values in losses.values()
            for value in (values if isinstance(values, list) else [values])
        ).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        steps += 1
    if queries is not None:
        queries.set_probs([0.0] * 3)
    return steps


def segments(ids: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Class and mask of each segment."""
    for i in np.unique(ids):
        yield int(i % OFFSET), ids == i


@torch.no_grad()
def quality(model: nn.Module) -> tuple[float, float]:
    """PQ (arXiv:1801.00868, Equation 1) and mIoU on 320 scenes, in per cent."""
    number, rng = sum(CLASSES.values()), np.random.default_rng(12345)  # the seed of no training
    # By class: the sum of IoUs and the number of matches, and that of false positives and
    # negatives. The last entry is for pixels without a class.
    iou_sums, matches, errors = (np.zeros(number + 1) for _ in range(3))
    confusion = np.zeros((number, number + 1))
    model.eval()
    for _ in range(10):
        images, samples, truths = batch(rng, 32, validation=True)
        for truth, result in zip(truths, model.predict(images, samples), strict=True):
            predicted = result.pred_panoptic_seg.sem_seg[0].numpy()
            np.add.at(confusion, (truth % OFFSET, predicted % OFFSET), 1)
            unmatched = [segment for segment in segments(predicted) if segment[0] < number]
            for label, mask in segments(truth):
                ious = [
                    (mask & other).sum() / (mask | other).sum() if label == kind else 0
                    for kind, other in unmatched
                ]
                if max(ious, default=0) > 0.5:  # at most one segment can match, since none overlap
                    matches[label] += 1
                    iou_sums[label] += max(ious)
                    del unmatched[int(np.argmax(ious))]
                else:
                    errors[label] += 1
            for label, _ in unmatched:
                errors[label] += 1
    pq = iou_sums / (matches + errors / 2).clip(1)
    union = confusion.sum(1) + confusion.sum(0)[:number] - np.diag(confusion)
    return 100 * pq[:number].mean(), 100 * (np.diag(confusion) / union).mean()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        '--seconds', type=float, default=600, help='time of the adapter; EoMT has half'
    )
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--first-seed', type=int, default=0)
    parser.add_argument('--lr', type=float, default=1e-3)
    parser.add_argument('--only', nargs='+', choices=models(), default=list(models()))
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    init_default_scope('mmdet')
    import mmdet.models  # noqa: F401

    cfgs = {name: models()[name] for name in args.only}
    results: dict[str, list[tuple[float, float]]] = {name: [] for name in cfgs}
    for seed in range(args.first_seed, args.first_seed + args.seeds):
        for name, cfg in cfgs.items():
            torch.manual_seed(seed)
            model = build(cfg)
            seconds = args.seconds / (1 if 'panoptic_head' in cfg else 2)
            steps = train(model, seconds, args.lr, seed)
            results[name].append(quality(model))
            print(
                f'{name}, {sum(p.numel() for p in model.parameters()) / 1e6:.2f} M parameters, '
                f'seed {seed}: {seconds:.0f} s, {steps} steps, PQ {results[name][-1][0]:.1f}, '
                f'mIoU {results[name][-1][1]:.1f}',
                flush=True,
            )
    for name, rows in results.items() if args.seeds > 1 else ():
        print(
            f'{name}: '
            + ', '.join(
                f'{title} {statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}'
                for title, values in zip(('PQ', 'mIoU'), zip(*rows, strict=True), strict=True)
            )
        )


if __name__ == '__main__':
    main()
