"""The record of validations: metrics in per cent, and the best value of each."""

import math
from types import SimpleNamespace

from vit_plugin.engine.validation_record import ValidationRecord, to_per_cent


def test_fractions_become_per_cent():
    assert to_per_cent(
        {
            'coco/bbox_mAP': 0.123,
            'coco/bbox_mAP_s': -1.0,
            'coco/bbox_mAP_copypaste': '0.1 0.2',
            'accuracy/top1': 50.0,
            'mIoU': 7,
            'pascal_voc/mAP': 1.0,
        }
    ) == {'coco/bbox_mAP': 12.3, 'accuracy/top1': 50, 'mIoU': 7, 'pascal_voc/mAP': 100}


def record_of(*scores: tuple[int, float, float]) -> ValidationRecord:
    """A record of validations: the iteration, an error (AbsRel), and a share (delta1)."""
    metric = SimpleNamespace(lower_is_better=('AbsRel',))
    loop = SimpleNamespace(evaluator=SimpleNamespace(metrics=[metric]))
    runner = SimpleNamespace(val_loop=loop, train_loop=None)
    rows = [{'iter': step, 'depth/AbsRel': error, 'delta1': share} for step, error, share in scores]
    return ValidationRecord(runner, dict(rows=rows, seconds=0))


def test_nan_is_never_the_best():
    record = record_of((10, math.nan, math.nan), (20, 0.1, 0.6), (30, 0.3, math.nan))
    assert [row[2:] for row in record.table()[1:]] == [['0.10', '20'], ['0.60', '20']]
    assert record_of((10, math.nan, 0.5)).table()[1][2] == 'nan'


def test_best_error_is_the_smallest():
    record = record_of((10, 0.5, 0.2), (20, 0.1, 0.6), (30, 0.3, 0.4))
    assert record.table()[1:] == [
        ['depth/AbsRel', '0.30', '0.10', '20'],
        ['delta1', '0.40', '0.60', '20'],
    ]
