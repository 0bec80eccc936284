"""Results of several settings, with several seeds each."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from .style import new_figure


def draw_seeds(scores: Mapping[str, Sequence[float]], metric: str) -> Figure:
    """Draw a dot for each seed and a bar at their mean, a line for each setting.

    Args:
        scores: the metric of each seed, by the name of the setting.
        metric: name of the metric.
    """
    figure = new_figure(6.5, 1 + 0.3 * len(scores))
    axes = figure.add_subplot()
    for row, values in enumerate(scores.values()):
        if values:
            axes.plot(values, [row] * len(values), 'o', color='C0', alpha=0.6, markersize=5, markeredgewidth=0)
            axes.plot(sum(values) / len(values), row, '|', color='0.1', markersize=14, markeredgewidth=1.5)
    axes.set_yticks(range(len(scores)), scores)
    axes.set(ylim=(len(scores) - 0.5, -0.5), xlabel=f'{metric} (dots: seeds, bar: mean)')
    axes.grid(axis='x', color='0.9')
    axes.set_axisbelow(True)
    axes.spines[['top', 'right', 'left']].set_visible(False)
    axes.tick_params(axis='y', length=0)
    return figure
