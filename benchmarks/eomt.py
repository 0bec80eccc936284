"""Compare the cost of EoMT and of ViT-Adapter with Mask2Former, as segmentors on the same ViT.

    python benchmarks eomt [--arch B/16] [--img-size 512] [--rounds 3] [--threads 1]

For each it prints the parameters, and for a prediction and a training step (losses, backward pass,
AdamW) on one image the peak memory and median time; then the ratios of the adapter to EoMT. About
10 minutes on one quiet core.
"""

import argparse
import os
import statistics
import warnings
from collections.abc import Callable
from typing import Any

import torch
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from mmengine.structures import PixelData
from torch import nn

import vit_plugin.detection  # noqa: F401  must be imported before MMDetection
from benchmarks.measuring.calls import interleaved, peak_memory
from vit_plugin.arch import parse_arch
from vit_plugin.config import read_config

CLASSES = 150  # ADE20K's
QUERY_BLOCKS = 3  # last blocks with queries; EoMT's number for B


def segmentors(arch: Any, size: int) -> dict[str, dict]:
    """The config of each segmentor."""
    mask2former = read_config(
        'configs/segmentation/dinov3-adapter-large-p16_mask2former_8xb2-160k_ade20k-512x512.py'
    )
    head = mask2former.model.decode_head
    head.in_channels = [parse_arch(arch).embed_dims] * 4
    vit = dict(arch=arch, img_size=size)
    return {
        'EoMT': dict(
            backbone=dict(
                vit, type='vit_plugin.EoMT', num_classes=CLASSES, num_blocks=QUERY_BLOCKS
            ),
            decode_head=dict(type='vit_plugin.EoMTDecodeHead', num_classes=CLASSES),
        ),
        'adapter + Mask2Former': dict(
            backbone=dict(type='vit_plugin.ViTAdapter', backbone=dict(vit, with_cls_token=False)),
            decode_head=head,
        ),
    }


def build(cfg: dict) -> nn.Module:
    return revert_sync_batchnorm(
        MODELS.build(dict(cfg, type='EncoderDecoder', train_cfg={}, test_cfg=dict(mode='whole')))
    )


def timed_calls(model: nn.Module, size: int) -> dict[str, Callable[[], None]]:
    """A prediction, and a training step with AdamW, on an image with random labels."""
    from mmseg.structures import SegDataSample

    labels = (
        torch.randint(0, 8, (1, size // 64, size // 64))
        .repeat_interleave(64, 1)
        .repeat_interleave(64, 2)
    )
    sample = SegDataSample(
        metainfo=dict(img_shape=(size, size), ori_shape=(size, size)),
        gt_sem_seg=PixelData(data=labels),
    )
    images, optimizer = torch.randn(1, 3, size, size), torch.optim.AdamW(model.parameters(), 1e-5)
    sample.set_metainfo(dict(batch_input_shape=(size, size)))

    # EoMT's queries mask the attention in training, not in prediction.
    def prediction() -> None:
        if hasattr(model.backbone, 'queries'):
            model.backbone.queries.set_probs([0.0] * QUERY_BLOCKS)
        model.eval()
        with torch.no_grad():
            model.encode_decode(images, [sample.metainfo])

    def training() -> None:
        if hasattr(model.backbone, 'queries'):
            model.backbone.queries.set_probs([1.0] * QUERY_BLOCKS)
        model.train()
        sum(model.loss(images, [sample]).values()).backward()
        optimizer.step()
        optimizer.zero_grad()

    return dict(prediction=prediction, training=training)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--arch', default='B/16')
    parser.add_argument('--img-size', type=int, default=512, help='side of the image in pixels')
    parser.add_argument('--rounds', type=int, default=3, help='timings of each call')
    parser.add_argument('--threads', type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    os.environ.setdefault('KINETO_LOG_LEVEL', '99')  # silences the profiler
    torch.set_num_threads(args.threads)
    torch.manual_seed(0)
    init_default_scope('mmseg')
    rows: dict[str, dict[str, float]] = {}
    timed = {}
    for name, cfg in segmentors(args.arch, args.img_size).items():
        model = build(cfg)
        weight_bytes = sum(parameter.nbytes for parameter in model.parameters())
        rows[name] = {'M parameters': weight_bytes / 4e6}  # float32
        for mode, call in timed_calls(model, args.img_size).items():
            call()  # creates AdamW's moments
            # peak_memory measures above what is held before: weights, and AdamW's two moments.
            held = weight_bytes * (3 if mode == 'training' else 1)
            rows[name][f'{mode} MiB'] = (held + peak_memory(call, torch.device('cpu'))) / 2**20
            timed[name, mode] = call
    for (name, mode), times in interleaved(timed, args.rounds).items():
        rows[name][f'{mode} s'] = statistics.median(times)
    eomt, adapter = rows.values()
    rows['ratio'] = {column: adapter[column] / value for column, value in eomt.items()}
    print(
        f'{args.arch}, one image of {args.img_size} px, {args.threads} threads, {args.rounds} '
        'rounds\n'
    )
    for name, row in rows.items():
        print(f'{name:<22}' + ''.join(f'  {column} {value:.2f}' for column, value in row.items()))


if __name__ == '__main__':
    main()
