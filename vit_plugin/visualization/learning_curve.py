"""The learning curve of a run."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure


def draw_learning_curve(loss: np.ndarray, iterations_per_epoch: float,
                        metrics: Mapping[str, Sequence[tuple[int, float]]]) -> Figure:
    """Training loss and validation metrics over epochs.

    Args:
        loss: training loss of every iteration, of shape (iterations,).
        iterations_per_epoch: to place them on the axis of epochs.
        metrics: for each name the points (epoch, value).
    """
    figure = Figure(figsize=(8, 4.5), dpi=120, layout='constrained')
    left = figure.add_subplot()
    left.set(xlabel='epoch', ylabel='training loss')
    epochs = (np.arange(len(loss)) + 1) / iterations_per_epoch
    left.plot(epochs, loss, color='0.8', linewidth=0.6)
    window = max(int(iterations_per_epoch), 1)
    if len(loss) >= window:
        mean = np.convolve(loss, np.full(window, 1 / window), mode='valid')
        left.plot(epochs[window - 1:], mean, color='0.3', label='training loss, mean of one epoch')
    right = left.twinx()
    right.set_ylabel('validation metric')
    for name, points in metrics.items():
        right.plot(*zip(*points, strict=True), marker='.', label=f'{name}: {points[-1][1]:.2f}')
    right.spines[['top']].set_visible(False)
    left.spines[['top']].set_visible(False)
    handles = [line for axes in (left, right) for line in axes.get_lines() if not line.get_label().startswith('_')]
    figure.legend(handles=handles, loc='outside upper center', ncols=3, frameon=False)
    return figure
