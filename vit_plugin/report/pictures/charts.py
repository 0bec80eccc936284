"""Measurements as pictures: the curves of a run."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from vit_plugin.inference.palette import SERIES, hex_of

from .style import (
    new_axes,
    new_figure,
)

MOST_CURVES = 12  # classes whose curves have a color and a name
ALL = 'all'


class DetectionCurve(NamedTuple):
    """Precision, recall and F1 of a class, or of all, in per cent.

    Attributes:
        recall, precision: points of the curve that AP50 is the area of, of shape (R,).
        score, f1: the F1 if predictions count from this score on, of shape (S,).
        ap50: average precision at an IoU of 0.5.
    """

    recall: np.ndarray
    precision: np.ndarray
    score: np.ndarray
    f1: np.ndarray
    ap50: float


def draw_learning_curve(
    loss: np.ndarray,
    iterations_per_step: float,
    metrics: Mapping[str, Sequence[tuple[int, float]]],
    unit: str = 'epoch',
) -> Figure:
    """Draw training loss and validation metrics over epochs or iterations.

    Args:
        loss: training loss of every iteration, of shape (iterations,).
        iterations_per_step: number of iterations in one step of the axis.
        metrics: for each name, the points (step, value).
        unit: name of a step, used as the label of the axis.
    """
    figure, left = new_axes(8, 4.5)
    left.set(xlabel=unit, ylabel='training loss')
    steps = (np.arange(len(loss)) + 1) / iterations_per_step
    left.plot(steps, loss, color='0.8', linewidth=0.6)
    window = max(int(iterations_per_step), min(100, len(loss) // 20), 1)
    if len(loss) >= window > 1:
        mean = np.convolve(loss, np.full(window, 1 / window), mode='valid')
        left.plot(
            steps[window // 2 :][: len(mean)],  # the middle of each window
            mean,
            color='0.3',
            label=f'training loss, mean of {window} iterations',
        )
    right = left.twinx()
    right.set_prop_cycle(color=SERIES)
    right.set_ylabel('validation metric')
    for name, points in metrics.items():
        right.plot(*zip(*points, strict=True), marker='.', label=f'{name}: {points[-1][1]:.4g}')
    left.spines.right.set_visible(True)
    right.spines.top.set_visible(False)
    handles = [
        line
        for axes in (left, right)
        for line in axes.get_lines()
        if not str(line.get_label()).startswith('_')
    ]
    figure.legend(handles=handles, loc='outside upper center', ncols=2, frameon=False)
    return figure


def draw_detection_curves(curves: Mapping[str, DetectionCurve], best: float) -> Figure:
    """Draw precision over recall, and F1 over the score threshold, at an IoU of 0.5.

    Args:
        curves: by class, and of all as ``'all'``.
        best: the score with the highest F1 of all.
    """
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    few = len(curves) <= MOST_CURVES + 1
    for number, (name, curve) in enumerate(curves.items()):
        style: dict[str, Any] = dict(color=hex_of(number - 1) if few else '0.8', linewidth=1)
        texts = (
            f'{name}  AP50 {curve.ap50:.1f}',
            f'{name}  F1 {np.interp(best, curve.score, curve.f1):.1f}',
        )
        if name == ALL:
            style = dict(color='0.1', linewidth=2, zorder=3)
        for axes, line, text in (
            (left, (curve.recall, curve.precision), texts[0]),
            (right, (curve.score, curve.f1), texts[1]),
        ):
            axes.plot(*line, label=text if few or name == ALL else None, **style)
    right.axvline(best, color='0.6', linewidth=0.8, linestyle=':')
    right.set_title(f'highest for all at a score of {best:.2f}', fontsize='small')
    left.set(xlabel='recall (%)', ylabel='precision (%)', xlim=(0, 101), ylim=(0, 101))
    right.set(
        xlabel='score from which a prediction counts', ylabel='F1 (%)', xlim=(0, 1), ylim=(0, 101)
    )
    for axes in (left, right):
        axes.spines[['top', 'right']].set_visible(False)
        axes.grid(color='0.92')
        axes.legend(frameon=False, fontsize='small', loc='best')
    return figure
