"""Charts of a run: its learning curve, and the precision and F1 of a detector."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from anyfolder.pictures.palette import SERIES, hex_of

from .style import charts

MAX_NAMED_CURVES = 12  # classes with a colored and named curve
SHOWN_LOSS_QUANTILE = 0.98  # quantile of the losses at the top of their chart


class DetectionCurve(NamedTuple):
    """Precision, recall and F1 of a class, or of all, in per cent.

    Attributes:
        recall, precision: points of the precision-recall curve, whose area is AP50, of shape (R,).
        score, f1: F1 at each score threshold, of shape (S,).
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
    """Draw the training loss and, below it, validation metrics over epochs or iterations.

    Args:
        loss: training loss of every iteration, of shape (iterations,).
        iterations_per_step: number of iterations in one step of the axis.
        metrics: for each name, the points (step, value).
        unit: name of a step, used as the label of the axis.
    """
    figure, (above, below) = charts(9, 6, rows=2, sharex=True, height_ratios=(1, 1.3))
    above.set_ylabel('training loss')
    below.set(xlabel=unit, ylabel='validation metric')
    steps = (np.arange(len(loss)) + 1) / iterations_per_step
    above.plot(steps, loss, color='0.8', linewidth=0.6, label='each iteration')
    # Smooth over an epoch or a twentieth of the run (up to 100 iterations), whichever is longer.
    # But not over more than a tenth of the run, to follow a falling loss.
    window = min(max(int(iterations_per_step), min(100, len(loss) // 20)), len(loss) // 10)
    if window > 1:
        mean = np.convolve(loss, np.full(window, 1 / window), mode='valid')
        middles = np.convolve(steps, np.full(window, 1 / window), mode='valid')
        above.plot(middles, mean, color='0.2', label=f'mean of {window} around it')
        if (finite := loss[np.isfinite(loss)]).size:
            # The first steps can be so high that nothing else would be visible.
            above.set_ylim(min(finite.min(), 0), 1.05 * np.quantile(finite, SHOWN_LOSS_QUANTILE))
    below.locator_params(axis='x', integer=True)
    below.set_prop_cycle(color=SERIES)
    for name, points in metrics.items():
        below.plot(*zip(*points, strict=True), marker='.', label=f'{name}: {points[-1][1]:.2f}')
    for axes in (above, below):
        if axes.lines:
            axes.legend(frameon=False, fontsize='small', loc='upper left', bbox_to_anchor=(1, 1))
    return figure


def draw_detection_curves(
    mean: DetectionCurve,
    by_class: Mapping[int, DetectionCurve],
    classes: Sequence[str],
    best_score: float,
) -> Figure:
    """Draw precision over recall, and F1 over the score threshold, at an IoU of 0.5.

    Args:
        mean: the curve of all classes together.
        by_class: the curves of classes with objects, by their numbers.
        classes: the names of all classes.
        best_score: the score with the highest F1 of all.
    """
    figure, (left, right) = charts(11, 4.5, columns=2)

    def draw(curve: DetectionCurve, name: str | None, **style: Any) -> None:
        f1 = np.interp(best_score, curve.score, curve.f1)
        labels = (
            (f'{name}  AP50 {curve.ap50:.1f}', f'{name}  F1 {f1:.1f}') if name else (None, None)
        )
        left.plot(curve.recall, curve.precision, label=labels[0], **style)
        right.plot(curve.score, curve.f1, label=labels[1], **style)

    draw(mean, 'all', color='0.1', linewidth=2, zorder=3)
    are_named = len(by_class) <= MAX_NAMED_CURVES
    for number, curve in by_class.items():
        if are_named:
            draw(curve, classes[number], color=hex_of(number), linewidth=1)
        else:
            draw(curve, None, color='0.8', linewidth=1)
    right.axvline(best_score, color='0.6', linewidth=0.8, linestyle=':')
    right.set_title(f'highest for all at a score of {best_score:.2f}', fontsize='small')
    left.set(xlabel='recall (%)', ylabel='precision (%)', xlim=(0, 101), ylim=(0, 101))
    right.set(
        xlabel='score from which a prediction counts', ylabel='F1 (%)', xlim=(0, 1), ylim=(0, 101)
    )
    for axes in (left, right):
        axes.legend(frameon=False, fontsize='small', loc='best')
    return figure
