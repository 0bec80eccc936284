"""What a sweep has found."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from vit_plugin.errors import ConfigError
from vit_plugin.visualization import draw_seeds
from vit_plugin.writing import replacing, write_text

from ..report import RECORD
from .grid import Sweep, as_text
from .running import is_finished


class Row(NamedTuple):
    """The members of the same settings.

    Attributes:
        values: the settings.
        scores: the metric by seed, of the finished members.
        seconds: mean seconds of a training.
    """
    values: dict[str, Any]
    scores: dict[int, float]
    seconds: float | None

    @property
    def spread(self) -> float | None:
        """The sample standard deviation over the seeds; None for fewer than two."""
        return stdev(self.scores.values()) if len(self.scores) > 1 else None


def collect(sweep: Sweep, metric: str | None = None, best: bool = False) -> tuple[str, list[Row]]:
    """Read the metrics of the finished members.

    Args:
        sweep: the sweep.
        metric: name of the metric. Default: the first that is recorded.
        best: whether to take the largest value over all validations, which flatters, in place of the last.

    Returns:
        The name of the metric, and a row for each combination of the grid.

    Raises:
        ConfigError: if a record has no such metric.
    """
    rows: dict[str, Row] = {}
    seconds: dict[str, list[float]] = {}
    for member in sweep.members:
        key = json.dumps(member.values)
        rows.setdefault(key, Row(member.values, {}, None))
        if is_finished(member):
            record = json.loads((member.folder / RECORD).read_text())
            scores = record['max' if best else 'last']
            metric = metric or next(iter(scores), None)
            if metric not in scores:
                raise ConfigError(f'--metric {metric}: {str(member.folder)!r} has recorded {", ".join(scores)}; give '
                                  'one of them.')
            rows[key].scores[member.seed] = scores[metric]
            seconds.setdefault(key, []).append(record['seconds'])
    return metric or 'metric', [row._replace(seconds=mean(seconds[key]) if key in seconds else None)
                                for key, row in rows.items()]


def as_markdown(metric: str, rows: Sequence[Row]) -> str:
    """A table with a row for each combination: mean, sample standard deviation, number of seeds, seconds."""
    keys = list(rows[0].values)
    lines = [[*keys, metric, '± (seeds)', 'lowest', 'highest', 'seconds'], ['---'] * (len(keys) + 5)]
    for row in rows:
        scores = row.scores.values()
        found = ['none finished', '', '', '', ''] if not scores else [
            f'{mean(scores):.4g}', f'{"" if row.spread is None else f"{row.spread:.2g} "}({len(scores)})',
            f'{min(scores):.4g}', f'{max(scores):.4g}', f'{row.seconds:.0f}']
        lines.append([as_text(value) for value in row.values.values()] + found)
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines) + '\n'


def write_results(sweep: Sweep, metric: str, rows: Sequence[Row], failed: Mapping[Path, str]) -> list[Path]:
    """Write ``results.json``, ``results.md`` and ``results.png`` into the sweep's folder. Returns their paths."""
    paths = [sweep.folder / f'results.{suffix}' for suffix in ('json', 'md', 'png')]
    write_text(paths[0], json.dumps(dict(
        metric=metric, failed={path.name: words for path, words in failed.items()},
        rows=[dict(values=row.values, scores=row.scores, mean=mean(row.scores.values()) if row.scores else None,
                   spread=row.spread, seconds=row.seconds) for row in rows]), indent=1) + '\n')
    write_text(paths[1], as_markdown(metric, rows))
    shared = {key for key in rows[0].values if len({as_text(row.values[key]) for row in rows}) == 1}
    with replacing(paths[2]) as path:
        draw_seeds({', '.join(f'{key.rpartition(".")[2]} {as_text(value)}' for key, value in row.values.items()
                              if key not in shared or len(shared) == len(row.values)): list(row.scores.values())
                    for row in rows}, metric).savefig(path)
    return paths
