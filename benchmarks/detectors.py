"""Published detectors beside the vendors' own code, in float64, with random weights of each size.

    python benchmarks detectors PYTHON [--only NAME ...]

``PYTHON`` is that of an environment with ``rfdetr`` (with ``rfdetr-plus`` for XL and 2XL),
``transformers`` and ``torch``. It writes each file as the vendor's library does, and computes
boxes, logits and masks with the vendor's model. This package reads the file as ``infer`` does.
Compared are a square and, without masks, two rectangles, and for RF-DETR and DETR the predictions
on six photographs of scikit-image. 2 GB of memory without masks.
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

import vit_plugin.detection  # noqa: F401  before MMDetection
from benchmarks.detectors_reference import doubled, photograph
from vit_plugin.inference.load import load
from vit_plugin.inference.trained_model import TrainedModel

LIMIT = 1e-9  # allowed difference, relative to the largest value
SCRIPT = Path(__file__).resolve().with_name('detectors_reference.py')
LARGEST_STD = 0.229  # of the normalization's channels, each a share of 255
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
        kind, name: arguments of the reference's script.
        file: its file in the folder that the script writes; empty for the folder itself.
        sizes: heights and widths of the images.
    """

    kind: str
    name: str
    file: str
    sizes: tuple[str, ...]


def of_roboflow(name: str, side: int, *rectangles: str) -> Row:
    return Row('rfdetr', name, 'published.pth', (f'{side},{side}', *(rectangles or RECTANGLES)))


def with_masks(name: str, side: int) -> Row:
    return Row('rfdetr', f'Seg{name}', 'published.pth', (f'{side},{side}',))


ROWS = {
    'RF-DETR N': of_roboflow('Nano', 384),
    'RF-DETR S': of_roboflow('Small', 512),
    'RF-DETR M': of_roboflow('Medium', 576),
    'RF-DETR L': of_roboflow('Large', 704),
    'RF-DETR Base': of_roboflow('Base', 560, '392,616', '504,392'),
    'RF-DETR L of 2025': of_roboflow('LargeDeprecated', 560, '392,616', '504,392'),
    'RF-DETR XL': of_roboflow('XLarge', 700, '400,640', '500,380'),
    'RF-DETR 2XL': of_roboflow('2XLarge', 880, '400,640', '520,400'),
    'RF-DETR-Seg N': with_masks('Nano', 312),
    'RF-DETR-Seg S': with_masks('Small', 384),
    'RF-DETR-Seg M': with_masks('Medium', 432),
    'RF-DETR-Seg L': with_masks('Large', 504),
    'RF-DETR-Seg XL': with_masks('XLarge', 624),
    'RF-DETR-Seg 2XL': with_masks('2XLarge', 768),
    # Its windows are scrambled on rectangles.
    'RF-DETR, transformers': Row(
        'transformers', 'RfDetr:' + json.dumps(dict(num_labels=91)), '', ('560,560',)
    ),
    'LW-DETR, transformers': Row(
        'transformers', 'LwDetr:' + json.dumps(LW_DETR), '', ('640,640', *RECTANGLES)
    ),
}

DETR = dict(num_labels=80)  # without rows that are not classes, which its softmax counts
TWO_STAGES = dict(two_stage=True, with_box_refine=True)


def of_detr(kind: str, **config: Any) -> Row:
    name = f'{kind}Detr:{json.dumps(dict(num_labels=91) | config)}'
    return Row('transformers', name, '', ('512,512', *RECTANGLES))


ROWS |= {
    'DETR R50': of_detr('', **DETR),
    'DETR R101-DC5': of_detr('', **DETR, backbone='resnet101', dilation=True),
    'Conditional DETR': of_detr('Conditional'),
    'Deformable DETR': of_detr('Deformable'),
    'Deformable DETR, one level': of_detr('Deformable', num_feature_levels=1, dilation=True),
    'Deformable DETR, refined': of_detr('Deformable', with_box_refine=True),
    'Deformable DETR, two stages': of_detr('Deformable', **TWO_STAGES),
}


def reference(python: str, row: Row, folder: Path) -> dict:
    """The reference's file and outputs, written into a folder."""
    environment = {name: value for name, value in os.environ.items() if name != 'PYTHONPATH'}
    subprocess.run(
        [python, str(SCRIPT), row.kind, row.name, str(folder), *row.sizes],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return torch.load(folder / 'outputs.pt')


def apart(found: torch.Tensor, wanted: torch.Tensor) -> float:
    """The largest difference, over the largest value."""
    return float((found - wanted).abs().max() / wanted.abs().max())


def outputs_of(model: torch.nn.Module, image: Tensor) -> list[Tensor]:
    """The logits of the classes, the boxes, and the masks if there are any."""
    feats, head = model.extract_feat(image), model.bbox_head
    if hasattr(model, 'forward_transformer'):  # of MMDetection
        shape = tuple(image.shape[-2:])
        sample = SimpleNamespace(batch_input_shape=shape, img_shape=shape)
        logits, boxes = head(**model.forward_transformer(feats, [sample]))
        return [logits[-1][..., : len(head.class_rows)], boxes[-1]]
    logits, boxes, _, _, features, _ = head(feats)
    masks = [head.masks_of(feats, features[-1])] if hasattr(head, 'masks_of') else []
    return [logits[-1][..., : len(head.class_rows)], boxes[-1], *masks]


def compare(row: Row, folder: Path, python: str) -> tuple[list[float], str]:
    """The difference of each size, and a sentence on the photographs."""
    outputs = reference(python, row, folder)
    trained = load(folder / row.file, device='cpu')
    model, differences = trained.model.double(), []
    for one in outputs['sizes']:
        with torch.no_grad(), doubled():
            found = outputs_of(model, one['image'])
        wanted = one['logits'].index_select(-1, model.bbox_head.class_rows), one['boxes']
        masks = [one['masks']] if one['masks'] is not None else []
        differences.append(max(map(apart, found, [*wanted, *masks])))
    return differences, on_photographs(trained, outputs['photographs'])


def on_photographs(trained: TrainedModel, theirs: dict[str, dict[str, Tensor]]) -> str:
    """How predictions for their resized pixels differ, and how these pixels differ from ours."""
    head, wrong, count = trained.model.bbox_head, 0, 0
    gray_difference, box_difference = 0.0, 0.0
    mask_pixels_off, mask_pixels = 0, 0
    for name, wanted in theirs.items():
        pixels = photograph(name)
        sample = trained.sample(np.ascontiguousarray(pixels[..., ::-1]))
        mine = trained.model.data_preprocessor(pseudo_collate([sample]), False)
        shape, (height, width) = tuple(wanted['image'].shape[-2:]), pixels.shape[:2]
        if shape == mine['inputs'].shape[-2:]:  # otherwise the size differs by a pixel
            apart_by = float((mine['inputs'] - wanted['image']).abs().max())
            gray_difference = max(gray_difference, 255 * LARGEST_STD * apart_by)
        facts = dict(img_shape=shape, batch_input_shape=shape)
        facts['scale_factor'] = shape[1] / width, shape[0] / height
        mine['data_samples'][0].set_metainfo(facts)
        with torch.no_grad(), doubled():
            (found,) = trained.model.predict(wanted['image'], mine['data_samples'])
        found = found.pred_instances
        known = torch.isin(wanted['labels'], head.class_rows)  # other rows have no class name
        labels = wanted['labels'][known][: len(found.labels)]
        ours = head.class_rows[found.labels][: len(labels)]
        wrong += int((ours != labels).sum())
        count += len(labels)
        boxes = found.bboxes[: len(labels)]
        ends = boxes.new_tensor([width, height]).repeat(2)
        inside = wanted['boxes'][known][: len(boxes)].clamp(min=0).minimum(ends)
        box_difference = max(box_difference, apart(boxes, inside))
        if 'masks' in wanted:
            masks = wanted['masks'][known][:, 0]
            mask_pixels_off += int((found.masks[: len(labels)] != masks).sum())
            mask_pixels += masks.numel()
    if not theirs:
        return ''
    return (
        f'; {len(theirs)} photographs: {wrong} of {count} classes differ, boxes by '
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
