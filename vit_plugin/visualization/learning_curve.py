"""The learning curve of a run."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from .style import SERIES


def draw_learning_curve(loss: np.ndarray, iterations_per_step: float,
                        metrics: Mapping[str, Sequence[tuple[int, float]]], unit: str = 'epoch') -> Figure:
    """Draw training loss and validation metrics over epochs or iterations.

    Args:
        loss: training loss of every iteration, of shape (iterations,).
        iterations_per_step: number of iterations in one step of the axis.
        metrics: for each name, the points (step, value).
        unit: name of a step, used as the label of the axis.
    """
    figure = Figure(figsize=(8, 4.5), dpi=120, layout='constrained')
    left = figure.add_subplot()
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
    right.spines[['top']].set_visible(False)
    left.spines[['top']].set_visible(False)
    handles = [line for axes in (left, right) for line in axes.get_lines() if not str(line.get_label()).startswith('_')]
    figure.legend(handles=handles, loc='outside upper center', ncols=2, frameon=False)
    return figure
