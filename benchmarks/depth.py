r"""Train depth estimators on rendered scenes: hybrid, pure ViT and CNN, each with two heads.

    python benchmarks depth [--minutes 15] [--seeds 3] [--train 400] [--test 100] \
        [--only 'hybrid, DPT' ...] [--picture FILE]

The scenes are those of :mod:`benchmarks.depth_scenes`, 128 x 96 pixels; test scenes have other
parts of the photographs. The CNN is the hybrid's, with a third stage in place of the blocks.
Minutes are CPU time of one thread, and the learning rate is a function of the elapsed time. For
each model it prints the mean and the standard deviation over seeds of AbsRel, delta1 and boundary
F1. Boundaries are pixels whose depth is more than 5 to 25 % larger than their neighbor's. A
boundary counts as found within one pixel of a true one; Depth Pro (arXiv:2410.02073) counts only
the same pixel. ``--picture`` draws a test scene, its true depth and each model's.
"""

import argparse
import math
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from mmengine.config import ConfigDict
from mmengine.registry import MODELS, init_default_scope
from torch import Tensor, nn

from benchmarks.depth_scenes import HEIGHT, WIDTH, scene
from vit_plugin.inference.predictions import draw_prediction
from vit_plugin.models import DPTDepthHead, LinearDepthHead
from vit_plugin.projects.depth.depth_head import resize_maps
from vit_plugin.projects.depth.depth_metric import DepthMetric
from vit_plugin.tasks.depth.depth_prediction import DepthPrediction

BATCH, RATE = 8, 1e-3
WARM_UP = 0.05  # share of the time
MAX_DEPTH = 12.0  # meters
RATIOS = (1.05, 1.1, 1.15, 1.2, 1.25)  # of neighboring depths at a boundary; F1 is averaged
BLOCKS = dict(embed_dims=192, num_heads=3, feedforward_channels=768)
CNN = dict(type='ResNetEmbed', width=32, patch_size=2)
NUMERICS = dict(stem_norm_cfg=dict(num_groups=8))
BACKBONES: dict[str, dict[str, Any]] = {
    'hybrid': dict(
        arch=dict(BLOCKS, num_layers=4),
        patch_embed=dict(CNN, stage_depths=(2, 3)),
        numerics=NUMERICS,
    ),
    'ViT': dict(arch=dict(BLOCKS, num_layers=8, patch_size=8), out_indices=(1, 3, 5, 7)),
    'CNN': dict(
        arch=dict(BLOCKS, num_layers=0),
        patch_embed=dict(CNN, stage_depths=(2, 3, 4), patch_size=1),
        numerics=NUMERICS,
    ),
}


def models() -> dict[str, tuple[dict[str, Any], type[nn.Module]]]:
    """The backbone and the head of each name."""
    heads = {'DPT': DPTDepthHead, 'linear': LinearDepthHead}
    return {
        f'{backbone}, {head}': (cfg, head_class)
        for backbone, cfg in BACKBONES.items()
        for head, head_class in heads.items()
    }


class Model(nn.Module):
    """A backbone and its head: images (B, 3, H, W) -> depths (B, 1, H, W)."""

    def __init__(self, cfg: dict[str, Any], head: type[nn.Module]) -> None:
        super().__init__()
        common = dict(img_size=(HEIGHT, WIDTH), with_cls_token=False, out_type='pyramid')
        self.backbone = MODELS.build(
            ConfigDict(type='vit_plugin.VisionTransformer', **common, **cfg)
        )
        in_channels, strides = self.backbone.channels, self.backbone.strides
        norm: dict[str, Any] = dict(norm_cfg=dict(type='GN', num_groups=16), channels=64)
        # Bins are at a stride of 4, as with DINOv2's patches of 14 pixels, enlarged four times.
        linear = dict(upsample=max(strides[0] // 4, 1))
        options = dict(strides=strides, **norm) if head is DPTDepthHead else linear
        self.head = head(in_channels=in_channels, max_depth=MAX_DEPTH, **options)

    def forward(self, images: Tensor) -> Tensor:
        return resize_maps(self.head(self.backbone(images)), images.shape[2:])


def make_data(number: int, test: bool) -> tuple[Tensor, Tensor]:
    """Scenes of the test or training split: normalized images (N, 3, H, W), depths (N, 1, H, W)."""
    images, depths = zip(*(scene(seed, test) for seed in range(number)), strict=True)
    pixels = torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 64 - 2
    return pixels, torch.from_numpy(np.stack(depths))[:, None]


def train(model: Model, images: Tensor, depths: Tensor, seconds: float, seed: int) -> int:
    """Train for these CPU seconds. Returns the number of steps."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), RATE, weight_decay=0.05)
    begin, steps = time.process_time(), 0
    model.train()
    while (share := (time.process_time() - begin) / seconds) < 1:
        rate = min(share / WARM_UP, 1) * (1 + math.cos(math.pi * share)) / 2
        for group in optimizer.param_groups:
            group['lr'] = RATE * max(rate, 1e-3)
        chosen = torch.randint(len(images), (BATCH,), generator=generator)
        batch, true = images[chosen], depths[chosen]
        if torch.rand((), generator=generator) < 0.5:
            batch, true = batch.flip(3), true.flip(3)
        loss = sum(criterion(model(batch), true) for criterion in model.head.losses)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    return steps


def boundary_pixels(depth: np.ndarray, ratio: float) -> np.ndarray:
    """Pixels whose right or lower neighbor is farther or nearer by this ratio (2, H, W)."""
    logs = np.log(np.maximum(depth, 1e-3))
    is_boundary = np.zeros((2, *depth.shape), np.uint8)
    is_boundary[0, :, :-1] = np.abs(np.diff(logs, axis=1)) > math.log(ratio)
    is_boundary[1, :-1] = np.abs(np.diff(logs, axis=0)) > math.log(ratio)
    return is_boundary


def boundary_f1(predicted: np.ndarray, true: np.ndarray) -> float:
    """The F1 of the boundaries of a predicted depth (H, W), averaged over :data:`RATIOS`.

    NaN if the true depth has no boundary.
    """
    scores = []
    for ratio in RATIOS:
        pair = [boundary_pixels(depth, ratio) for depth in (predicted, true)]
        neighborhood = np.ones((3, 3), np.uint8)
        dilated_pair = [
            np.stack([cv2.dilate(direction, neighborhood) for direction in maps]) for maps in pair
        ]
        if pair[1].any():
            precision, recall = (
                (boundary & dilated).sum() / max(boundary.sum(), 1)
                for boundary, dilated in zip(pair, dilated_pair[::-1], strict=True)
            )
            scores.append(2 * precision * recall / max(precision + recall, 1e-9))
    return float(np.mean(scores)) if scores else math.nan


@torch.no_grad()
def predict(model: Model, images: Tensor) -> Tensor:
    """The depths (N, 1, H, W) of images."""
    model.eval()
    return torch.cat([model(batch) for batch in images.split(BATCH)])


def evaluate(predicted: Tensor, true: Tensor) -> dict[str, float]:
    """AbsRel, delta1 and boundary F1 of predicted depths (N, 1, H, W)."""
    metric = DepthMetric()
    samples = [
        dict(pred_depth_map=dict(data=depth), gt_depth_map=dict(data=true_depth))
        for depth, true_depth in zip(predicted, true, strict=True)
    ]
    metric.process(None, samples)
    scores = metric.evaluate(len(samples))
    pairs = zip(predicted[:, 0].numpy(), true[:, 0].numpy(), strict=True)
    f1 = float(np.nanmean([boundary_f1(*pair) for pair in pairs]))
    return {'AbsRel': scores['AbsRel'], 'delta1': scores['delta1'], 'boundary F1': f1}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--minutes', type=float, default=15.0, help='CPU time of each training')
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--train', type=int, default=400, help='number of training scenes')
    parser.add_argument('--test', type=int, default=100, help='number of test scenes')
    parser.add_argument('--only', nargs='+', default=[], choices=models(), metavar='NAME')
    parser.add_argument('--picture', type=Path, help='the file to draw')
    args = parser.parse_args()
    picture = args.picture  # checked before the trainings, which take hours
    if picture and not (picture.parent.is_dir() and cv2.haveImageWriter(str(picture))):
        parser.error(f'--picture {picture}: give a name like x.png in a folder that exists')
    warnings.simplefilter('ignore')
    torch.set_num_threads(1)
    init_default_scope('vit_plugin')
    images, depths = make_data(args.train, False)
    unseen, true = make_data(args.test, True)
    print('| | M parameters | steps | AbsRel | delta1 | boundary F1 |\n|---|--:|--:|--:|--:|--:|')
    # The inverse of make_data's normalization, in BGR.
    pictures = [((unseen[0].permute(1, 2, 0).numpy() + 2) * 64).astype(np.uint8)[..., ::-1]]
    drawn_depths = [true[0, 0].numpy()]
    for name in args.only or models():
        scores, steps = [], 0
        for seed in range(args.seeds):
            torch.manual_seed(seed)
            model = Model(*models()[name])
            steps = train(model, images, depths, 60 * args.minutes, seed)
            predicted = predict(model, unseen)
            scores.append(evaluate(predicted, true))
        drawn_depths.append(predicted[0, 0].numpy())
        means = (
            f'{statistics.mean(values):.3f} ± {statistics.pstdev(values):.3f}'
            for values in ([score[key] for score in scores] for key in scores[0])
        )
        size = sum(parameter.numel() for parameter in model.parameters()) / 1e6
        print(f'| {name} | {size:.1f} | {steps} | {" | ".join(means)} |', flush=True)
    if args.picture:
        pictures += [
            draw_prediction(pictures[0], DepthPrediction.of_depth(depth, 'depth'), 0)
            for depth in drawn_depths
        ]
        height = max(picture.shape[0] for picture in pictures)
        rows = [cv2.resize(picture, (height * WIDTH // HEIGHT, height)) for picture in pictures]
        cv2.imwrite(str(args.picture), np.concatenate(rows, axis=1))


if __name__ == '__main__':
    main()
