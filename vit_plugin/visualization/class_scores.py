"""Precision, recall and F1 of each class, from a confusion matrix."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def class_scores(matrix: np.ndarray, classes: Sequence[str] | None = None) -> dict[str, Any]:
    """The scores of a classifier, in percent.

    A class that was never predicted has precision 0, and one without samples has recall 0, as in scikit-learn.

    Args:
        matrix: counts of true (rows) and predicted (columns) classes.
        classes: names of the classes. Default: their numbers.

    Returns:
        ``macro``: precision, recall and F1, the mean over the classes that have samples or were predicted.
        ``overall``: the same of all samples together, which for one label per sample all equal the accuracy.
        ``per_class``: a list of dicts with name, precision, recall, F1 and the number of samples.
    """
    right, true, predicted = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    precision, recall = right / np.maximum(predicted, 1), right / np.maximum(true, 1)
    f1 = 2 * right / np.maximum(true + predicted, 1)
    present = (true + predicted) > 0
    scores = 100 * np.stack((precision, recall, f1), axis=1)  # (classes, 3)
    accuracy = 100 * right.sum() / max(matrix.sum(), 1)

    def named(values: Iterable[float]) -> dict[str, float]:
        return dict(zip(('precision', 'recall', 'f1'), (round(float(value), 4) for value in values), strict=True))

    return dict(
        macro=named(scores[present].mean(axis=0) if present.any() else np.zeros(3)),
        overall=named([accuracy] * 3),
        per_class=[dict(name=str(name), **named(row), samples=int(number))
                   for name, row, number in zip(classes or range(len(matrix)), scores, true, strict=True)])


def as_markdown(scores: dict[str, Any]) -> str:
    """A table with a row for each class, then the mean of the classes and all samples together."""
    rows = [*scores['per_class'], dict(name='**macro**', **scores['macro'], samples=''),
            dict(name='**overall**', **scores['overall'], samples=sum(one['samples'] for one in scores['per_class']))]
    lines = ['| class | precision | recall | F1 | samples |', '|---|---|---|---|---|']
    lines += [f'| {row["name"]} | {row["precision"]:.2f} | {row["recall"]:.2f} | {row["f1"]:.2f} | {row["samples"]} |'
              for row in rows]
    return '\n'.join(lines) + '\n'
