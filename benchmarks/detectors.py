"""Check RF-DETR, LW-DETR and DETRs against their authors' code, in float64, with random weights.

    python benchmarks detectors PYTHON [--only NAME ...]

``PYTHON`` is the interpreter of an environment with ``rfdetr`` (with ``rfdetr-plus`` for XL and
2XL), ``transformers`` and ``torch``. There ``detectors_reference.py`` saves each model as its
library does, and computes logits, boxes and masks with the library's model. This package reads the
file as ``infer`` does. Outputs are compared on a square image and, for models without masks, two
rectangles. For RF-DETR and DETR the predictions on six photographs of scikit-image are compared
too. The exit status is 1 if an output differs. Takes 2 GB of memory without the models with
masks.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from mmengine.dataset import pseudo_collate
from torch import Tensor

import vit_plugin.detection  # noqa: F401  must be imported before MMDetection
from benchmarks.detectors_reference import doubled, photograph
from benchmarks.measuring.differences import relative_difference
from vit_plugin.inference.load import load
from vit_plugin.inference.trained_model import TrainedModel

LIMIT = 1e-9  # allowed difference, relative to the largest value
SCRIPT = Path(__file__).resolve().with_name('detectors_reference.py')
LARGEST_STD = 0.229  # ImageNet's, relative to 255; undoes the normalization at most
RECTANGLES = ('384,640', '512,384')
LW_DETR = dict(
    num_labels=91,
    projector_scale_factors=[2.0, 0.5],
    backbone_config=dict(
        model_type='lw_detr_vit',
        image_size=640,
        hidden_size=384,
        num_hidden_layers=10,
        num_attention_heads=12,
        window_block_indices=[0, 1, 3, 6, 7, 9],
        out_indices=[2, 4, 5, 9],
        num_windows=16,
    ),
)


class Row(NamedTuple):
    """A published model.

    Attributes:
        kind, name: arguments of ``detectors_reference.py``.
        file: the model's file in the folder that the script writes; empty for the folder itself.
        sizes: "HEIGHT,WIDTH" of each compared image.
    """

    kind: str
    name: str
    file: str
    sizes: tuple[str, ...]


def rf_detr(name: str, side: int, *rectangles: str) -> Row:
    return Row('rfdetr', name, 'published.pth', (f'{side},{side}', *(rectangles or RECTANGLES)))


def rf_detr_seg(name: str, side: int) -> Row:
    return Row('rfdetr', f'Seg{name}', 'published.pth', (f'{side},{side}',))


ROWS = {
    'RF-DETR N': rf_detr('Nano', 384),
    'RF-DETR S': rf_detr('Small', 512),
    'RF-DETR M': rf_detr('Medium', 576),
    'RF-DETR L': rf_detr('Large', 704),
    'RF-DETR Base': rf_detr('Base', 560, '392,616', '504,392'),
    'RF-DETR L of 2025': rf_detr('LargeDeprecated', 560, '392,616', '504,392'),
    'RF-DETR XL': rf_detr('XLarge', 700, '400,640', '500,380'),
    'RF-DETR 2XL': rf_detr('2XLarge', 880, '400,640', '520,400'),
    'RF-DETR-Seg N': rf_detr_seg('Nano', 312),
    'RF-DETR-Seg S': rf_detr_seg('Small', 384),
    'RF-DETR-Seg M': rf_detr_seg('Medium', 432),
    'RF-DETR-Seg L': rf_detr_seg('Large', 504),
    'RF-DETR-Seg XL': rf_detr_seg('XLarge', 624),
    'RF-DETR-Seg 2XL': rf_detr_seg('2XLarge', 768),
    # Only a square: transformers' code scrambles its windows on rectangles.
    'RF-DETR, transformers': Row(
        'transformers', 'RfDetr:' + json.dumps(dict(num_labels=91)), '', ('560,560',)
    ),
    'LW-DETR, transformers': Row(
        'transformers', 'LwDetr:' + json.dumps(LW_DETR), '', ('640,640', *RECTANGLES)
    ),
}

# COCO's ids leave 11 of 91 rows without a class. DETR's softmax would count them.
DETR = dict(num_labels=80)
TWO_STAGES = dict(two_stage=True, with_box_refine=True)


def detr(kind: str, **config: Any) -> Row:
    name = f'{kind}Detr:{json.dumps(dict(num_labels=91) | config)}'
    return Row('transformers', name, '', ('512,512', *RECTANGLES))


ROWS |= {
    'DETR R50': detr('', **DETR),
    'DETR R101-DC5': detr('', **DETR, backbone='resnet101', dilation=True),
    'Conditional DETR': detr('Conditional'),
    'Deformable DETR': detr('Deformable'),
    'Deformable DETR, one level': detr('Deformable', num_feature_levels=1, dilation=True),
    'Deformable DETR, refined': detr('Deformable', with_box_refine=True),
    'Deformable DETR, two stages': detr('Deformable', **TWO_STAGES),
}


def run_reference(python: str, row: Row, folder: Path) -> dict:
    """Write the reference's file into a folder. Returns its outputs, see `detectors_reference`."""
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    subprocess.run(
        [python, str(SCRIPT), row.kind, row.name, str(folder), *row.sizes],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return torch.load(folder / 'outputs.pt')


def outputs_of(model: torch.nn.Module, image: Tensor) -> list[Tensor]:
    """The last layer's class logits, boxes and, if the head has them, mask logits."""
    feats, head = model.extract_feat(image), model.bbox_head
    if hasattr(model, 'forward_transformer'):  # a detector of MMDetection
        shape = tuple(image.shape[-2:])
        sample = SimpleNamespace(batch_input_shape=shape, img_shape=shape)
        logits, boxes = head(**model.forward_transformer(feats, [sample]))
        return [logits[-1][..., : len(head.class_rows)], boxes[-1]]
    logits, boxes, _, _, features, _ = head(feats)
    masks = [head.masks_of(feats, features[-1])] if hasattr(head, 'masks_of') else []
    return [logits[-1][..., : len(head.class_rows)], boxes[-1], *masks]


def compare(row: Row, folder: Path, python: str) -> tuple[list[float], str]:
    """The difference at each size, and a clause on the photographs for the printed line."""
    outputs = run_reference(python, row, folder)
    trained = load(folder / row.file, device='cpu')
    model, differences = trained.model.double(), []
    for expected in outputs['sizes']:
        with torch.no_grad(), doubled():
            outputs_here = outputs_of(model, expected['image'])
        logits = expected['logits'].index_select(-1, model.bbox_head.class_rows)
        masks = [expected['masks']] if expected['masks'] is not None else []
        references = [logits, expected['boxes'], *masks]
        differences.append(max(map(relative_difference, outputs_here, references)))
    return differences, on_photographs(trained, outputs['photographs'])


def on_photographs(trained: TrainedModel, photographs: dict[str, dict[str, Tensor]]) -> str:
    """A clause on how predictions and preprocessing differ from the reference's on photographs.

    Predictions are computed from the reference's resized pixels, so that they can be equal. How
    these pixels differ from ours is reported apart.
    """
    head, wrong, count = trained.model.bbox_head, 0, 0
    gray_difference, box_difference = 0.0, 0.0
    mask_pixels_off, mask_pixels = 0, 0
    for name, expected in photographs.items():
        pixels = photograph(name)
        sample = trained.sample(np.ascontiguousarray(pixels[..., ::-1]))
        batch = trained.model.data_preprocessor(pseudo_collate([sample]), False)
        shape, (height, width) = tuple(expected['image'].shape[-2:]), pixels.shape[:2]
        if shape == batch['inputs'].shape[-2:]:  # otherwise the size differs by a pixel
            difference = float((batch['inputs'] - expected['image']).abs().max())
            gray_difference = max(gray_difference, 255 * LARGEST_STD * difference)
        metainfo = dict(img_shape=shape, batch_input_shape=shape)
        metainfo['scale_factor'] = shape[1] / width, shape[0] / height
        batch['data_samples'][0].set_metainfo(metainfo)
        with torch.no_grad(), doubled():
            (found,) = trained.model.predict(expected['image'], batch['data_samples'])
        found = found.pred_instances
        known = torch.isin(expected['labels'], head.class_rows)  # other rows have no class name
        labels = expected['labels'][known][: len(found.labels)]
        rows = head.class_rows[found.labels][: len(labels)]
        wrong += int((rows != labels).sum())
        count += len(labels)
        boxes = found.bboxes[: len(labels)]
        ends = boxes.new_tensor([width, height]).repeat(2)
        inside = expected['boxes'][known][: len(boxes)].clamp(min=0).minimum(ends)
        box_difference = max(box_difference, relative_difference(boxes, inside))
        if 'masks' in expected:
            masks = expected['masks'][known][:, 0]
            mask_pixels_off += int((found.masks[: len(labels)] != masks).sum())
            mask_pixels += masks.numel()
    if not photographs:
        return ''
    return (
        f'; {len(photographs)} photographs: {wrong} of {count} classes differ, boxes by '
        f'{box_difference:.1e}, resized pixels by up to {gray_difference:.1f} of 255'
        + (f', {mask_pixels_off:,} of {mask_pixels:,} pixels of masks' if mask_pixels else '')
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('python', help='the interpreter of the reference environment')
    parser.add_argument('--only', nargs='+', choices=ROWS, default=list(ROWS), metavar='NAME')
    args = parser.parse_args()
    warnings.simplefilter('ignore')
    worst = 0.0
    for name in args.only:
        with tempfile.TemporaryDirectory() as folder:
            differences, predictions = compare(ROWS[name], Path(folder), args.python)
        text = ', '.join(
            f'{size.replace(",", " x ")}: {difference:.1e}'
            for size, difference in zip(ROWS[name].sizes, differences, strict=True)
        )
        print(f'{name}: {text}{predictions}', flush=True)
        worst = max(worst, *differences)
    print(f'The largest difference is {worst:.1e} of the largest value; allowed are {LIMIT:.0e}.')
    sys.exit(worst > LIMIT)


if __name__ == '__main__':
    main()
