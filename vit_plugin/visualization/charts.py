"""Measurements as pictures: the curve of a run, results of several settings and seeds."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import SERIES, color_of, new_axes, new_figure

WIDTH = 74  # characters of a small font in a line of a figure
MOST_CURVES = 12  # classes whose curves have a colour and a name
ALL = 'all'


class DetectionCurve(NamedTuple):
    """How well a class, or all, is found, in per cent.

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


def draw_learning_curve(loss: np.ndarray, iterations_per_step: float,
                        metrics: Mapping[str, Sequence[tuple[int, float]]], unit: str = 'epoch') -> Figure:
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
        left.plot(steps[window - 1:], mean, color='0.3', label=f'training loss, mean of {window} iterations')
    right = left.twinx()
    right.set_prop_cycle(color=SERIES)
    right.set_ylabel('validation metric')
    for name, points in metrics.items():
        right.plot(*zip(*points, strict=True), marker='.', label=f'{name}: {points[-1][1]:.4g}')
    left.spines.right.set_visible(True)
    right.spines.top.set_visible(False)
    handles = [line for axes in (left, right) for line in axes.get_lines() if not str(line.get_label()).startswith('_')]
    figure.legend(handles=handles, loc='outside upper center', ncols=2, frameon=False)
    return figure


def draw_detection_curves(curves: Mapping[str, DetectionCurve], best: float) -> Figure:
    """Draw precision over recall, and F1 over the score from which predictions count, at an IoU of 0.5.

    Args:
        curves: by class, and of all as ``'all'``.
        best: the score with the highest F1 of all.
    """
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    few = len(curves) <= MOST_CURVES + 1
    for number, (name, curve) in enumerate(curves.items()):
        style: dict[str, Any] = dict(color=color_of(number - 1) if few else '0.8', linewidth=1)
        texts = (f'{name}  AP50 {curve.ap50:.1f}', f'{name}  F1 {np.interp(best, curve.score, curve.f1):.1f}')
        if name == ALL:
            style = dict(color='0.1', linewidth=2, zorder=3)
        for axes, line, text in ((left, (curve.recall, curve.precision), texts[0]),
                                 (right, (curve.score, curve.f1), texts[1])):
            axes.plot(*line, label=text if few or name == ALL else None, **style)
    right.axvline(best, color='0.6', linewidth=0.8, linestyle=':')
    right.set_title(f'highest for all at a score of {best:.2f}', fontsize='small')
    left.set(xlabel='recall (%)', ylabel='precision (%)', xlim=(0, 101), ylim=(0, 101))
    right.set(xlabel='score from which a prediction counts', ylabel='F1 (%)', xlim=(0, 1), ylim=(0, 101))
    for axes in (left, right):
        axes.spines[['top', 'right']].set_visible(False)
        axes.grid(color='0.92')
        axes.legend(frameon=False, fontsize='small', loc='best')
    return figure


def draw_seeds(scores: Mapping[str, Sequence[float]], metric: str) -> Figure:
    """Draw a dot for each seed and a bar at their mean, a line for each setting.

    Args:
        scores: the metric of each seed, by the name of the setting.
        metric: name of the metric.
    """
    names = ['\n'.join(wrap(name, WIDTH // 2)) for name in scores]
    figure, axes = new_axes(6.5, 1 + 0.3 * sum(1 + name.count('\n') for name in names))
    for row, values in enumerate(scores.values()):
        if values:
            axes.plot(values, [row] * len(values), 'o', color='C0', alpha=0.6, markersize=5, markeredgewidth=0)
            axes.plot(sum(values) / len(values), row, '|', color='0.1', markersize=14, markeredgewidth=1.5)
    axes.set_yticks(range(len(scores)), names, fontsize='small')
    axes.set_xlabel(f'{metric} (dots: seeds, bar: mean)', loc='right')
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.grid(axis='x', color='0.9')
    axes.set_axisbelow(True)
    axes.spines.left.set_visible(False)
    axes.tick_params(axis='y', length=0)
    return figure


def draw_curves(curves: Mapping[str, Sequence[Sequence[tuple[float, float]]]], metric: str) -> Figure:
    """Draw a metric over the time of training: a line for each training, with a dot at its end.

    Args:
        curves: the points (seconds, value) of each training, by the name of what it is. Those of one name have one
            colour.
        metric: name of the metric.
    """
    figure, axes = new_axes(6.5, 4)
    styles: list[dict[str, Any]] = [
        dict(color=color, linestyle=line) for line in ('-', '--', ':', '-.') for color in SERIES]
    for (name, lines), style in zip(curves.items(), cycle(styles)):
        label: str | None = name
        for points in filter(None, lines):
            minutes, values = np.array(points).T * [[1 / 60], [1]]
            axes.plot(minutes, values, linewidth=1, label=label, **style)
            axes.plot(minutes[-1:], values[-1:], 'o', color=style['color'], markersize=4)
            label = None
    return _finish(figure, axes, metric)


def draw_budgets(budgets: Mapping[str, Sequence[tuple[float, Sequence[float]]]], metric: str) -> Figure:
    """Draw a metric over the length of training, as Figure 5 of arXiv:2010.11929: a dot for each seed, a line by means.

    Args:
        budgets: for each name, pairs of a length in seconds and the metric of each seed.
        metric: name of the metric.
    """
    figure, axes = new_axes(6.5, 4)
    for (name, pairs), color in zip(budgets.items(), cycle(SERIES)):
        pairs = sorted((seconds / 60, values) for seconds, values in pairs if values)
        axes.plot([minutes for minutes, _ in pairs], [sum(values) / len(values) for _, values in pairs],
                  color=color, linewidth=1, label=name)
        for minutes, values in pairs:
            axes.plot([minutes] * len(values), values, 'o', color=color, alpha=0.6, markersize=5, markeredgewidth=0)
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_formatter('{x:g}')
    return _finish(figure, axes, metric)


def _finish(figure: Figure, axes: Axes, metric: str) -> Figure:
    axes.set(xlabel='minutes of training, validations included', ylabel=metric)
    axes.grid(color='0.9')
    axes.set_axisbelow(True)
    lines, names = axes.get_legend_handles_labels()
    if names:
        figure.legend(lines, ['\n'.join(wrap(name, WIDTH)) for name in names], loc='outside upper center',
                      ncols=2 if max(map(len, names)) <= WIDTH // 2 else 1, frameon=False, fontsize='small')
    return figure
