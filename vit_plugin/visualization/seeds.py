"""Results of several settings, with several seeds each."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from .style import SERIES, new_figure

WIDTH = 74  # characters of a small font beside each other in a figure


def draw_seeds(scores: Mapping[str, Sequence[float]], metric: str) -> Figure:
    """Draw a dot for each seed and a bar at their mean, a line for each setting.

    Args:
        scores: the metric of each seed, by the name of the setting.
        metric: name of the metric.
    """
    names = ['\n'.join(wrap(name, WIDTH // 2)) for name in scores]
    figure = new_figure(6.5, 1 + 0.3 * sum(1 + name.count('\n') for name in names))
    axes = figure.add_subplot()
    for row, values in enumerate(scores.values()):
        if values:
            axes.plot(values, [row] * len(values), 'o', color='C0', alpha=0.6, markersize=5, markeredgewidth=0)
            axes.plot(sum(values) / len(values), row, '|', color='0.1', markersize=14, markeredgewidth=1.5)
    axes.set_yticks(range(len(scores)), names, fontsize='small')
    axes.set_xlabel(f'{metric} (dots: seeds, bar: mean)', loc='right')
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.grid(axis='x', color='0.9')
    axes.set_axisbelow(True)
    axes.spines[['top', 'right', 'left']].set_visible(False)
    axes.tick_params(axis='y', length=0)
    return figure


def draw_curves(curves: Mapping[str, Sequence[Sequence[tuple[float, float]]]], metric: str) -> Figure:
    """Draw a metric over the time of training: a line for each training, with a dot at its end.

    Args:
        curves: the points (seconds, value) of each training, by the name of what it is. Those of one name have one
            colour.
        metric: name of the metric.
    """
    figure = new_figure(6.5, 4)
    axes = figure.add_subplot()
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
    figure = new_figure(6.5, 4)
    axes = figure.add_subplot()
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
    axes.spines[['top', 'right']].set_visible(False)
    lines, names = axes.get_legend_handles_labels()
    if names:
        figure.legend(lines, ['\n'.join(wrap(name, WIDTH)) for name in names], loc='outside upper center',
                      ncols=2 if max(map(len, names)) <= WIDTH // 2 else 1, frameon=False, fontsize='small')
    return figure
