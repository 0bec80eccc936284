"""What a sweep has found."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from vit_plugin.engine.validation_record import RECORD
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import replacing, write_text
from vit_plugin.visualization import draw_budgets, draw_curves, draw_seeds

from .grid import Sweep, as_text

LENGTHS = ('train_cfg.max_epochs', 'train_cfg.max_iters')  # of the training


class Row(NamedTuple):
    """The finished runs of the same config and settings."""
    settings: dict[str, str]  # as text; the config is one of them if there are several, or no grid
    scores: dict[int, float]  # the metric by seed
    curves: dict[int, list[tuple[float, float]]]  # (seconds of training, metric) of each validation, by seed
    seconds: float | None  # mean of a training; None without runs


def collect(sweep: Sweep, metric: str | None = None, best: bool = False) -> tuple[str, list[Row], dict[Path, str]]:
    """Read the metrics of the finished runs.

    Args:
        sweep: the sweep.
        metric: name of the metric. Default: the first that is recorded.
        best: whether to take the largest value over all validations, which flatters, in place of the last.

    Returns:
        The name of the metric, a row for each combination of config and grid, and the folders of the finished runs
        that have recorded no metric, with what to do.

    Raises:
        ConfigError: if a record has other metrics, and not this one.
    """
    rows, without = [], {}
    for runs in sweep.combinations:
        scores, curves, seconds = {}, {}, []
        for run in (run for run in runs if run.is_finished):
            path = run.folder / RECORD
            record = json.loads(path.read_text()) if path.is_file() else dict(last={})
            if not record['last']:
                without[run.folder] = ('it recorded no metric: no validation took place, or a detector found '
                                       'nothing; train it longer, with a val_interval within the training')
                continue
            found, clock = record['max' if best else 'last'], dict(record['clock'])
            metric = metric or next(iter(found))
            if metric not in found:
                raise ConfigError(f'--metric {metric}: {str(run.folder)!r} has recorded {", ".join(found)}; give '
                                  'one of them.')
            scores[run.seed] = found[metric]
            curves[run.seed] = [(clock[step], value) for step, value in record['history'][metric]]
            seconds.append(record['seconds'])
        texts = {key: as_text(value) for key, value in runs[0].values.items()}
        if len(sweep.configs) > 1 or not texts:
            texts = {'config': Path(runs[0].config).stem, **texts}
        rows.append(Row(texts, scores, curves, mean(seconds) if seconds else None))
    return metric or 'metric', rows, without


def as_markdown(metric: str, rows: Sequence[Row]) -> str:
    """A table with a row for each combination: mean, sample standard deviation, number of seeds, seconds."""
    lines = [[*rows[0].settings, metric, '± (seeds)', 'lowest', 'highest', 'seconds'],
             ['---'] * (len(rows[0].settings) + 5)]
    for row in rows:
        scores = row.scores.values()
        spread = f'{stdev(scores):.2g} ' if len(scores) > 1 else ''
        cells = ['no score', '', '', '', ''] if not scores else [
            f'{mean(scores):.4g}', f'{spread}({len(scores)})', f'{min(scores):.4g}', f'{max(scores):.4g}',
            f'{row.seconds:.0f}']
        lines.append([*row.settings.values(), *cells])
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines) + '\n'


def write_results(sweep: Sweep, metric: str, rows: Sequence[Row], failed: Mapping[Path, str]) -> list[Path]:
    """Write the results into the sweep's folder. Returns the paths.

    The files are ``results.json``, ``results.md``, ``results.png`` (all seeds of each combination) and ``curves.png``
    (the metric over the time of training; colours are configs, or combinations if there is one config). If the grid has
    the length of training, there is ``budgets.png`` (the metric over this length, a line for each combination of the
    other settings).
    """
    write_text(sweep.folder / 'results.json', json.dumps(dict(
        metric=metric, failed={path.name: why for path, why in failed.items()},
        rows=[row._asdict() for row in rows]), indent=1) + '\n')
    write_text(sweep.folder / 'results.md', as_markdown(metric, rows))
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    budgets: dict[str, list[tuple[float, list[float]]]] = {}
    for row in rows:
        curves.setdefault(row.settings.get('config', label(row.settings)), []).extend(row.curves.values())
        if row.seconds is not None:
            others = label({key: text for key, text in row.settings.items() if key not in LENGTHS})
            budgets.setdefault(others or Path(sweep.configs[0]).stem, []).append((row.seconds, [*row.scores.values()]))
    figures = {'results.png': draw_seeds({label(row.settings): [*row.scores.values()] for row in rows}, metric),
               'curves.png': draw_curves(curves, metric)}
    if any(length in sweep.grid for length in LENGTHS):
        figures['budgets.png'] = draw_budgets(budgets, metric)
    for file, figure in figures.items():
        with replacing(sweep.folder / file) as path:
            figure.savefig(path)
    return [sweep.folder / name for name in ('results.json', 'results.md', *figures)]


def label(settings: Mapping[str, str]) -> str:
    """Settings in one short text."""
    return ', '.join(value if key == 'config' else f'{key.rpartition(".")[2]} {value}'
                     for key, value in settings.items())
