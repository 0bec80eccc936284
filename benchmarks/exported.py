"""How fast exported detectors and segmentors are in onnxruntime, next to the same models in torch.

    python benchmarks exported [--rounds 7] [--only RECIPE ...]

One image and one thread; random weights. Prints milliseconds and their ratio, medians over the
rounds. 15 minutes.
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
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope

import vit_plugin.detection  # noqa: F401  before MMDetection
from vit_plugin.config import read_config
from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export
from vit_plugin.measure.benchmark.measure import interleaved
from vit_plugin.passes import optimize

# One recipe of each family that is exported, with the height and the width of the image.
RECIPES = {
    'lw-detr_hybrid-vit-d4-w192_1xb4-20e_bccd': (192, 256),
    'retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd': (192, 256),
    'retinanet_vit-d6-w192-p16_simple-fpn_1xb4-12e_bccd': (192, 256),
    'rf-detr_vit-small-p16_8xb2-12e_coco-512px': (512, 512),
    'vit-base-p16_linear_8xb2-40k_ade20k-512x512': (256, 256),
    'hybrid-vit-base-r50-p16_upernet_8xb2-160k_ade20k-512x512': (256, 256),
    'vit-adapter-base-p16_upernet_8xb2-160k_ade20k-512x512': (256, 256),
    'dinov3-vit-large-p16_pmt_8xb2-20k_ade20k-512x512': (256, 256),
    'dinov3-vit-large-p16_eomt_8xb2-20k_ade20k-512x512': (256, 256),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument(
        '--only', nargs='+', default=RECIPES, choices=RECIPES, metavar='RECIPE', help='default: all'
    )
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    os.environ['OMP_NUM_THREADS'] = '1'
    torch.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    for recipe in args.only:
        size = RECIPES[recipe]
        cfg = read_config(str(next(Path('configs').rglob(f'{recipe}.py'))))
        __import__(f'{cfg.default_scope}.models')
        init_default_scope(cfg.default_scope)
        # With others, scores of random weights tie, and rounding chooses the queries.
        torch.manual_seed(3)
        model = revert_sync_batchnorm(MODELS.build(cfg.model)).eval()
        model.test_cfg.update(mode='whole')  # a segmentor's windows are not a graph
        if hasattr(model.backbone, 'queries'):
            # The state after training.
            model.backbone.queries.set_probs([0.0] * len(model.backbone.queries.attn_mask_probs))
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, 'model.onnx')
            difference = export(deploy(model), file, size)
            session = onnxruntime.InferenceSession(
                file, options, providers=['CPUExecutionProvider']
            )
        eager, images = optimize(deploy(model)), 255 * torch.rand(1, 3, *size)
        calls: dict[str, Callable] = {
            'torch': lambda eager=eager, images=images: eager(images),
            'onnxruntime': lambda session=session, images=images: session.run(
                None, {'images': images.numpy()}
            ),
        }
        with torch.no_grad():
            times = interleaved(calls, args.rounds + 2)
        torch_ms, onnx_ms = (1000 * statistics.median(times[kind][2:]) for kind in calls)
        print(
            f'{recipe}: torch {torch_ms:7.1f} ms, onnxruntime {onnx_ms:7.1f} ms, ratio '
            f'{torch_ms / onnx_ms:.2f}, difference {difference:.0e}',
            flush=True,
        )


if __name__ == '__main__':
    main()
