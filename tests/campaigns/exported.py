"""How fast exported detectors and segmentors are in onnxruntime, next to the same models in torch.

    python tests/campaigns/exported.py [--rounds 15]

One image and one thread; random weights. Prints milliseconds and their ratio, medians over the rounds. 3 minutes.
"""

import argparse
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import onnxruntime
import torch
from mmengine.registry import MODELS, init_default_scope

import vit_plugin.detection  # noqa: F401  before MMDetection
from vit_plugin.apps.benchmark.measure import interleaved
from vit_plugin.apps.deployed import deploy
from vit_plugin.apps.export import export
from vit_plugin.config import read_config
from vit_plugin.passes import optimize

DETECTION = 'configs/detection/'
SEGMENTOR = dict(type='EncoderDecoder', train_cfg={}, test_cfg=dict(mode='whole'), data_preprocessor=dict(
    type='SegDataPreProcessor'))
VIT = dict(arch='Ti/16', img_size=256)


def models() -> dict[str, tuple[str, dict, tuple[int, int]]]:
    """The framework, the config and the image size of each."""
    boxes = {name: ('mmdet', read_config(f'{DETECTION}{file}').model, (192, 256)) for name, file in (
        ('LWDETRHead, small hybrid', 'lw-detr_hybrid-vit-d4-w192_1xb4-20e_bccd.py'),
        ('RetinaNet, small hybrid', 'retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd.py'))}
    return boxes | {
        'linear segmentor, Ti/16': ('mmseg', dict(
            SEGMENTOR, backbone=dict(VIT, type='vit_plugin.VisionTransformer', out_type='featmap'), decode_head=dict(
                type='FCNHead', in_channels=192, channels=192, num_convs=0, concat_input=False, num_classes=150)),
            (256, 256)),
        'EoMT, Ti/16': ('mmseg', dict(
            SEGMENTOR, backbone=dict(VIT, type='vit_plugin.EoMT', num_classes=150, num_blocks=3),
            decode_head=dict(type='vit_plugin.EoMTDecodeHead', num_classes=150)), (256, 256))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--rounds', type=int, default=15)
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    os.environ['OMP_NUM_THREADS'] = '1'
    torch.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for name, (scope, cfg, size) in models().items():
        __import__(f'{scope}.models')
        init_default_scope(scope)
        model = MODELS.build(cfg).eval()
        if hasattr(model.backbone, 'queries'):
            model.backbone.queries.set_probs([0.] * 3)  # as after training
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, 'model.onnx')
            difference = export(deploy(model), file, size)
            session = onnxruntime.InferenceSession(file, options, providers=['CPUExecutionProvider'])
        eager, images = optimize(deploy(model)), 255 * torch.rand(1, 3, *size)
        calls: dict[str, Callable] = {'torch': lambda eager=eager, images=images: eager(images),
                                      'onnxruntime': lambda session=session, images=images: session.run(
                                          None, {'images': images.numpy()})}
        with torch.no_grad():
            times = interleaved(calls, args.rounds + 2)
        torch_ms, onnx_ms = (1000 * statistics.median(times[kind][2:]) for kind in calls)
        print(f'{name:<28} torch {torch_ms:7.1f} ms, onnxruntime {onnx_ms:7.1f} ms, ratio {torch_ms / onnx_ms:.2f}, '
              f'difference {difference:.0e}', flush=True)


if __name__ == '__main__':
    main()
