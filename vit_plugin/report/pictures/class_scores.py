"""Scores by class, from a confusion matrix or counts, and their tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vit_plugin.files.untrusted_text import escape_markdown, markdown_table

# Titles of the columns that do not have the name of their score.
TITLES = {
    'name': 'class',
    'f1': 'F1',
    'mask_AP': 'mask AP',
    'mask_AP50': 'mask AP50',
    'mask_AP75': 'mask AP75',
}
COUNT_COLUMNS = ('samples', 'objects', 'pixels')  # columns that are counts, not per cent


def class_scores(counts: np.ndarray, classes: Sequence[str] | None = None) -> dict[str, Any]:
    """The scores of a classifier, in per cent.

    A class that was never predicted has precision 0, and one without samples has recall 0, as in
    scikit-learn.

    Args:
        counts: right, true and predicted samples of each class, of shape (3, classes), see
            :func:`count_samples`.
        classes: names of the classes. Default: their numbers.

    Returns:
        ``macro``: precision, recall and F1, the mean over the classes that have samples or were
            predicted.
        ``overall``: the same over all samples; with one label per sample, all three equal the
            accuracy.
        ``per_class``: a list of dicts with name, precision, recall, F1 and the number of samples.
    """
    right, true, predicted = counts
    present = (true + predicted) > 0
    scores = _precision_recall_f1(right, true, predicted)  # (classes, 3)
    overall = _precision_recall_f1(*counts.sum(axis=1, keepdims=True))[0]

    def named(values: Iterable[float]) -> dict[str, float]:
        return dict(
            zip(
                ('precision', 'recall', 'f1'),
                (round(float(value), 4) for value in values),
                strict=True,
            )
        )

    return dict(
        macro=named(scores[present].mean(axis=0) if present.any() else np.zeros(3)),
        overall=named(overall),
        per_class=[
            dict(name=str(name), **named(row), samples=int(number))
            for name, row, number in zip(classes or range(len(true)), scores, true, strict=True)
        ],
    )


def count_samples(matrix: np.ndarray) -> np.ndarray:
    """Right, true and predicted samples of each class, of shape (3, classes).

    Args:
        matrix: counts of true (rows) and predicted (columns) classes.
    """
    return np.stack((np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)))


def map_scores(matrix: np.ndarray, classes: Sequence[str]) -> dict[str, Any]:
    """IoU and accuracy of each class of pixels, in per cent, as MMSegmentation's ``IoUMetric``.

    Args:
        matrix: pixels of true (rows) and predicted (columns) classes, which may have one more row
            and column for no class.
        classes: names of the classes.

    Returns:
        ``macro``: their means over the classes, mIoU and mAcc.
        ``overall``: the share of all pixels that are right, aAcc.
        ``per_class``: a list of dicts with name, IoU, Acc and the number of pixels. An undefined
            score is None.
    """
    right, true, predicted = count_samples(matrix)[:, : len(classes)]
    with np.errstate(invalid='ignore'):
        scores = 100 * np.stack((right / (true + predicted - right), right / true), axis=1)
    means = [
        float(np.mean(column[~np.isnan(column)])) if (~np.isnan(column)).any() else math.nan
        for column in scores.T
    ]
    return dict(
        macro=dict(IoU=_rounded(means[0]), Acc=_rounded(means[1])),
        overall=dict(Acc=_rounded(100 * right.sum() / max(true.sum(), 1))),
        per_class=[
            dict(name=str(name), IoU=_rounded(iou), Acc=_rounded(accuracy), pixels=int(number))
            for name, (iou, accuracy), number in zip(classes, scores, true, strict=True)
        ],
    )


def make_rows(scores: Mapping[str, Any]) -> list[list[str]]:
    """Rows of a table: the titles, each class, and the summaries ``macro`` and ``overall``.

    The last row has the sums of the counts.
    """
    columns = list(scores['per_class'][0])
    means = [dict(scores[name], name=name) for name in ('macro', 'overall') if scores.get(name)]
    for column in set(columns).intersection(COUNT_COLUMNS):
        means[-1][column] = sum(row[column] for row in scores['per_class'])
    titles = [TITLES.get(column, column) for column in columns]
    rows = [*scores['per_class'], *means]
    return [titles, *([_cell(row.get(column)) for column in columns] for row in rows)]


def scores_as_markdown(scores: Mapping[str, Any]) -> str:
    """The table of :func:`make_rows`, whose means are bold."""
    rows = [[*map(escape_markdown, row)] for row in make_rows(scores)]
    for row in rows[1 + len(scores['per_class']) :]:
        row[0] = f'**{row[0]}**'
    return markdown_table(rows) + '\n'


def _precision_recall_f1(right: np.ndarray, true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    precision = right / np.maximum(predicted, 1)
    recall = right / np.maximum(true, 1)
    f1 = 2 * right / np.maximum(true + predicted, 1)
    return 100 * np.stack((precision, recall, f1), axis=-1)


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(float(value), 4)


def _cell(value: Any) -> str:
    if value is None:
        return ''
    return f'{value:.2f}' if isinstance(value, float) else str(value)
