"""EoMT, and ViT-Adapter with Mask2Former, trained on made scenes: panoptic quality and mIoU over minutes.

    python tests/campaigns/scenes.py {plain,hybrid,adapter} --start FILE.pth [--minutes 4] [--seed 0] [--threads 1]

``plain`` and ``hybrid`` are EoMT on a ViT of six blocks and on the hybrid of the same width with four; ``adapter`` is a
ViT-Adapter on the plain one with Mask2Former. All are made for trained backbones. If FILE.pth is not there, it is made
first: the backbone learns the classes of single patches in as many minutes (``--first``), on scenes of its own. The
number of steps is what fits into the minutes, with a complete cycle of the rate. Prints one line in JSON.
"""

import argparse
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from made_scenes import BACKGROUND, Scenes, made_scenes
from mmengine.config import Config, ConfigDict
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import InstanceData, PixelData
from torch import Tensor, nn

import vit_plugin.detection  # noqa: F401  isort: skip  before MMDetection

import mmdet

from vit_plugin.engine.mask_annealing import MaskAnnealingHook
from vit_plugin.models import VisionTransformer

SIZE, WIDTH, QUERIES, BLOCKS, BATCH = 64, 128, 12, 3, 8
CLASSES = dict(num_things_classes=BACKGROUND, num_stuff_classes=1)
VIT = dict(
    arch=dict(embed_dims=WIDTH, num_layers=6, num_heads=4, feedforward_channels=512, patch_size=8), img_size=SIZE,
    with_cls_token=False)
HYBRID = dict(
    arch=dict(embed_dims=WIDTH, num_layers=4, num_heads=4, feedforward_channels=512), img_size=SIZE,
    with_cls_token=False,
    patch_embed=dict(type='PooledResNetEmbed', channels=(32, 64, 128), patch_size=2),
    numerics=dict(stem_norm_cfg=dict(num_groups=8)))
EOMT = dict(type='vit_plugin.EoMT', num_classes=BACKGROUND + 1, num_queries=QUERIES, num_blocks=BLOCKS)


def theirs() -> ConfigDict:
    """MMDetection's own Mask2Former."""
    return Config.fromfile(Path(mmdet.__file__).with_name('.mim') / 'configs/mask2former' /
                           'mask2former_r50_8xb2-lsj-50e_coco-panoptic.py').model


def mask2former() -> dict:
    """MMDetection's head, as wide as the backbone, with three layers of each transformer, not six and nine."""
    head = theirs().panoptic_head
    head.update(in_channels=[WIDTH] * 4, feat_channels=WIDTH, out_channels=WIDTH, num_queries=QUERIES, **CLASSES)
    head.loss_cls.class_weight = [1.] * (BACKGROUND + 1) + [0.1]
    encoder, decoder = head.pixel_decoder.encoder, head.transformer_decoder
    encoder.num_layers = decoder.num_layers = 3
    encoder.layer_cfg.self_attn_cfg.embed_dims = encoder.layer_cfg.ffn_cfg.embed_dims = WIDTH
    head.pixel_decoder.positional_encoding.num_feats = head.positional_encoding.num_feats = WIDTH // 2
    for part in ('self_attn_cfg', 'cross_attn_cfg', 'ffn_cfg'):
        decoder.layer_cfg[part].embed_dims = WIDTH
    encoder.layer_cfg.ffn_cfg.feedforward_channels = decoder.layer_cfg.ffn_cfg.feedforward_channels = 4 * WIDTH
    return head


def build(kind: str) -> nn.Module:
    backbone, head = dict(EOMT, **(HYBRID if kind == 'hybrid' else VIT)), dict(type='vit_plugin.EoMTHead', **CLASSES)
    if kind == 'adapter':
        backbone = dict(type='vit_plugin.ViTAdapter', backbone=VIT, interactions=3,
                        prior_channels=32)
        head = mask2former()
    train = dict(num_points=1024, oversample_ratio=3., importance_sample_ratio=0.75)
    if kind == 'adapter':
        train.update(assigner=theirs().train_cfg.assigner, sampler=dict(type='MaskPseudoSampler'))
    model = revert_sync_batchnorm(MODELS.build(ConfigDict(
        type='Mask2Former', backbone=backbone, panoptic_head=head, train_cfg=train,
        panoptic_fusion_head=dict(type='MaskFormerFusionHead', **CLASSES, loss_panoptic=None, init_cfg=None),
        test_cfg=dict(panoptic_on=True, semantic_on=False, instance_on=False, iou_thr=0.8, filter_low_score=True,
                      object_mask_thr=0.5, max_per_image=QUERIES))))
    model.init_weights()
    return model


def samples_of(scenes: Scenes, chosen: np.ndarray) -> list:
    from mmdet.structures import DetDataSample
    from mmdet.structures.mask import BitmapMasks
    size, samples = (SIZE, SIZE), []
    for i in chosen:
        sample = DetDataSample(
            metainfo=dict(img_shape=size, ori_shape=size, batch_input_shape=size, pad_shape=size),
            gt_instances=InstanceData(labels=torch.from_numpy(scenes.labels[i]),
                                      masks=BitmapMasks(scenes.masks[i].astype(np.uint8), *size)))
        sample.gt_sem_seg = PixelData(sem_seg=torch.from_numpy(scenes.semantic[i])[None])
        samples.append(sample)
    return samples


def pixels(scenes: Scenes, chosen: np.ndarray) -> Tensor:
    return (torch.from_numpy(scenes.images[chosen]).permute(0, 3, 1, 2) - 120.) / 60


def quality(found: np.ndarray, scenes: Scenes) -> dict[str, float]:
    """PQ (arXiv:1801.00868) and mIoU, in per cent, of maps of ``instance * 1000 + class`` (N, size, size).

    Both are means over the 11 classes.
    """
    hits, overlaps, total = (np.zeros(BACKGROUND + 1) for _ in range(3))
    both, either = np.zeros(BACKGROUND + 1), np.zeros(BACKGROUND + 1)
    for i, (panoptic, semantic) in enumerate(zip(found, scenes.semantic, strict=True)):
        segments = [(panoptic == j, j % 1000) for j in np.unique(panoptic) if j % 1000 <= BACKGROUND]
        truth = [*zip(scenes.masks[i], scenes.labels[i], strict=True), (semantic == BACKGROUND, BACKGROUND)]
        for _, label in (*segments, *truth):
            total[label] += 0.5  # half of each: TP + FP / 2 + FN / 2
        for mask, label in truth:
            for other, its_label in segments:
                overlap = (mask & other).sum() / (mask | other).sum()
                if label == its_label and overlap > 0.5:
                    hits[label] += 1
                    overlaps[label] += overlap
        for label in range(BACKGROUND + 1):
            mine, right = panoptic % 1000 == label, semantic == label
            both[label] += (mine & right).sum()
            either[label] += (mine | right).sum()
    return dict(PQ=100 * (overlaps / total).mean(), mIoU=100 * (both / either).mean())


class Patches(nn.Module):
    """A backbone that learns the class of each patch."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.backbone = VisionTransformer(**(HYBRID if kind == 'hybrid' else VIT), out_type='featmap')
        self.head = nn.Conv2d(WIDTH, BACKGROUND + 1, 1)

    def loss(self, images: Tensor, samples: list) -> dict[str, Tensor]:
        logits = self.head(self.backbone(images)[0])
        maps = torch.stack([sample.gt_sem_seg.sem_seg[0] for sample in samples])
        shares = F.one_hot(maps, BACKGROUND + 1).permute(0, 3, 1, 2).float()
        return dict(loss=F.cross_entropy(logits, F.interpolate(shares, logits.shape[2:], mode='area')))


def train(model: nn.Module, scenes: Scenes, minutes: float, rate: float) -> int:
    """Train for so many minutes. Returns the number of steps."""
    optimizer = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.05)
    queries, annealing = getattr(model.backbone, 'queries', None), MaskAnnealingHook()
    model.train()
    rng, begin, step, position = np.random.default_rng(0), time.perf_counter(), 0, 0.
    while position < 1:
        if queries is not None:
            queries.set_probs(annealing.probs(BLOCKS, position))
        for group in optimizer.param_groups:
            group['lr'] = rate * min(1, position / 0.05) * (0.5 + 0.5 * math.cos(math.pi * position))
        chosen = rng.choice(len(scenes.images), BATCH, replace=False)
        sum(loss for name, loss in model.loss(pixels(scenes, chosen), samples_of(scenes, chosen)).items()
            if 'loss' in name).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.)
        optimizer.step()
        optimizer.zero_grad()
        step, position = step + 1, (time.perf_counter() - begin) / (60 * minutes)
    if queries is not None:
        queries.set_probs([0.] * BLOCKS)
    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('kind', choices=('plain', 'hybrid', 'adapter'))
    parser.add_argument('--start', type=Path, required=True)
    parser.add_argument('--first', type=float, default=4, help='minutes of the first training')
    parser.add_argument('--minutes', type=float, default=4)
    parser.add_argument('--rate', type=float, default=5e-4)
    parser.add_argument('--seed', type=int, default=0)
    parser.add_argument('--threads', type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    torch.set_num_threads(args.threads)
    torch.manual_seed(args.seed)
    init_default_scope('mmdet')
    if not args.start.exists():
        first = Patches(args.kind)
        train(first, made_scenes(4000, SIZE, 1000), args.first, 1e-3)
        torch.save(first.backbone.state_dict(), args.start)
    torch.manual_seed(args.seed)
    model = build(args.kind)
    (model.backbone.backbone if args.kind == 'adapter' else model.backbone).load(torch.load(args.start))
    scenes = made_scenes(2000, SIZE, args.seed)
    steps = train(model, scenes, args.minutes, args.rate)
    tested = made_scenes(200, SIZE, validation=True)
    found = []
    model.eval()
    with torch.no_grad():
        for chosen in np.split(np.arange(200), 25):
            found += [sample.pred_panoptic_seg.sem_seg[0].numpy() for sample in model.predict(
                pixels(tested, chosen), samples_of(tested, chosen))]
    print(json.dumps(dict(
        {**vars(args), 'start': str(args.start)}, steps=steps,
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        **{name: round(value, 1) for name, value in quality(np.stack(found), tested).items()})))


if __name__ == '__main__':
    main()
