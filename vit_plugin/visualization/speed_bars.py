"""Bars that compare speeds."""

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure


def draw_speed_bars(speeds: Mapping[str, Mapping[str, float]], unit: str, reference: str) -> Figure:
    """Draw the speeds as bars, with one group for each case. The numbers on the bars are the speeds.

    Args:
        speeds: for each case, the speed of each implementation.
        unit: unit of the speeds.
        reference: the implementation whose bar has length 1.
    """
    names = list(dict.fromkeys(name for group in speeds.values() for name in group))
    figure = Figure(figsize=(8, 1 + 0.3 * sum(len(group) + 1 for group in speeds.values())), dpi=120,
                    layout='constrained')
    axes = figure.add_subplot()
    ticks, row = [], 0.
    for group in speeds.values():
        rows = np.arange(row, row + len(group))
        ticks.append(rows.mean())
        row += len(group) + 1
        for y, (name, speed) in zip(rows, group.items(), strict=True):
            bar = axes.barh(y, speed / group[reference], 0.9, color=f'C{names.index(name)}', label=name)
            axes.bar_label(bar, [f'{speed:.3g}'], padding=3, fontsize='small')
    axes.axvline(1, color='0.5', linewidth=0.6, zorder=0)
    axes.set_yticks(ticks, speeds)
    axes.invert_yaxis()
    axes.set(xlabel=f'speed relative to {reference} (on the bars: {unit})')
    axes.margins(x=0.1)
    axes.spines[['top', 'right']].set_visible(False)
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles, loc='outside upper center', ncols=4, frameon=False)
    return figure
