"""Measure exported detectors and segmentors in onnxruntime, next to the same models in torch.

    python benchmarks exported [--rounds 7] [--only RECIPE ...] [--others NAME=FILE.onnx ...]

One image, one thread, random weights. Prints milliseconds and their ratio, as medians over rounds
in which all models are interleaved. ``--others`` are ONNX files of other programs, timed with
random images of their own size. All recipes take 15 minutes. To compare a real-time detector:

    python benchmarks exported --only ecdet-s_ecvit-t_8xb2-12e_coco --others yolo11n=yolo11n.onnx
"""

import argparse
import os
import statistics
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import onnxruntime
import torch
from mmengine.model import revert_sync_batchnorm
from mmengine.registry import MODELS, init_default_scope
from torch import nn

import vit_plugin.detection  # noqa: F401  must be imported before MMDetection
from benchmarks.measuring.calls import interleaved
from benchmarks.runtimes import random_inputs
from vit_plugin.config import read_config
from vit_plugin.deploy.deployed import deploy
from vit_plugin.deploy.export import export
from vit_plugin.passes import optimize

# RF-DETR's nano model is this change of its small one.
NANO = {'bbox_head.decoder.num_layers': 2, 'backbone.img_size': 384}
WARM_UP_ROUNDS = 2  # not counted


class Row(NamedTuple):
    """A measured model.

    Attributes:
        recipe: the name of a file in configs/.
        size: height and width of the image.
        changes: settings to change below ``model``.
    """

    recipe: str
    size: tuple[int, int]
    changes: dict[str, Any] = {}


# One recipe of each family that is exported, and the real-time detectors in their papers' sizes.
ROWS = {
    **{
        recipe: Row(recipe, size)
        for recipe, size in {
            'lw-detr_hybrid-vit-d4-w192_1xb4-20e_bccd': (192, 256),
            'retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd': (192, 256),
            'retinanet_vit-d6-w192-p16_simple-fpn_1xb4-12e_bccd': (192, 256),
            'rf-detr_vit-small-p16_8xb2-12e_coco-512px': (512, 512),
            'ecdet-s_ecvit-t_8xb2-12e_coco': (640, 640),
            'deimv2-s_vit-tiny-p16_8xb2-12e_coco': (640, 640),
            'd-fine-n_hgnetv2-b0_8xb2-12e_coco': (640, 640),
            'vit-base-p16_linear_8xb2-40k_ade20k-512x512': (256, 256),
            'hybrid-vit-base-r50-p16_upernet_8xb2-160k_ade20k-512x512': (256, 256),
            'vit-adapter-base-p16_upernet_8xb2-160k_ade20k-512x512': (256, 256),
            'dinov3-vit-large-p16_pmt_8xb2-20k_ade20k-512x512': (256, 256),
            'dinov3-vit-large-p16_eomt_8xb2-20k_ade20k-512x512': (256, 256),
        }.items()
    },
    'rf-detr-nano': Row('rf-detr_vit-small-p16_8xb2-12e_coco-512px', (384, 384), NANO),
    'retinanet-640px': Row('retinanet_hybrid-vit-d4-w192_fpn_1xb4-12e_bccd', (640, 640)),
}


def build(row: Row) -> nn.Module:
    """The model of a recipe with random weights, in the state after a training."""
    cfg = read_config(str(next(Path('configs').rglob(f'{row.recipe}.py'))))
    cfg.merge_from_dict({f'model.{name}': value for name, value in row.changes.items()})
    __import__(f'{cfg.default_scope}.models')
    init_default_scope(cfg.default_scope)
    # With other seeds, scores of random weights tie, and rounding chooses the queries.
    torch.manual_seed(3)
    model = revert_sync_batchnorm(MODELS.build(cfg.model)).eval()
    model.test_cfg.update(mode='whole')  # a segmentor's sliding windows cannot be exported
    if hasattr(model.backbone, 'queries'):  # EoMT anneals its masked attention to none
        model.backbone.queries.set_probs([0.0] * len(model.backbone.queries.attn_mask_probs))
    return model


def open_session(file: Path) -> onnxruntime.InferenceSession:
    """Open a file in onnxruntime, with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, providers=['CPUExecutionProvider'])


def calls_of(name: str, row: Row, folder: Path) -> tuple[dict[str, Callable], str]:
    """Export a model. Returns the calls to time, and a description for the printed line."""
    deployed, file = deploy(build(row)), folder / f'{name}.onnx'
    millions = sum(parameter.numel() for parameter in deployed.model.parameters()) / 1e6
    difference = export(deployed, file, row.size)
    eager, session = optimize(deployed), open_session(file)
    # Some models take the image alone, others also its size.
    inputs = (255 * torch.rand(1, 3, *row.size), torch.tensor([row.size]))[: len(deployed.inputs)]
    arrays = dict(zip(deployed.inputs, (tensor.numpy() for tensor in inputs), strict=True))
    return {
        f'{name}, torch': lambda: eager(*inputs),
        f'{name}, onnxruntime': lambda: session.run(None, arrays),
    }, f'{row.size[0]} x {row.size[1]} px, {millions:.1f} M parameters, difference {difference:.0e}'


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--rounds', type=int, default=7)
    parser.add_argument(
        '--only', nargs='+', default=ROWS, choices=ROWS, metavar='RECIPE', help='default: all'
    )
    parser.add_argument('--others', nargs='*', default=[], metavar='NAME=FILE')
    args = parser.parse_args()
    others = {name: Path(file) for name, _, file in (other.partition('=') for other in args.others)}
    for name, file in others.items():  # before the recipes, which take minutes
        if not file.is_file():
            parser.error(f'--others {name}={file}: give NAME=FILE, with a file that exists')
    warnings.simplefilter('ignore')
    os.environ['OMP_NUM_THREADS'] = '1'
    torch.set_num_threads(1)
    calls: dict[str, Callable] = {}
    descriptions: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in args.only:
            row_calls, descriptions[name] = calls_of(name, ROWS[name], Path(folder))
            calls |= row_calls
    for name, file in others.items():
        session, inputs = open_session(file), random_inputs(file)
        descriptions[name] = 'file of another program'
        calls[f'{name}, onnxruntime'] = lambda session=session, inputs=inputs: session.run(
            None, inputs
        )
    with torch.no_grad():
        times = interleaved(calls, args.rounds + WARM_UP_ROUNDS)
    medians = {
        name: 1000 * statistics.median(seconds[WARM_UP_ROUNDS:]) for name, seconds in times.items()
    }
    for name, description in descriptions.items():
        onnx = medians[f'{name}, onnxruntime']
        text = f'{name}: onnxruntime {onnx:.1f} ms, {1000 / onnx:.1f} images per second'
        if eager := medians.get(f'{name}, torch'):
            text += f', torch {eager:.1f} ms, ratio {eager / onnx:.2f}'
        print(f'{text}; {description}', flush=True)


if __name__ == '__main__':
    main()
