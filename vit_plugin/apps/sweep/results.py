"""What a sweep has found."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from vit_plugin.engine.report import RECORD
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import replacing, write_text
from vit_plugin.visualization import draw_budgets, draw_curves, draw_seeds

from .grid import Member, Sweep, as_text

LENGTHS = ('train_cfg.max_epochs', 'train_cfg.max_iters')  # of the training


class Row(NamedTuple):
    """The members of the same config and settings.

    Attributes:
        config: path of the config.
        values: the settings.
        scores: the metric by seed, of the finished members.
        curves: the points (seconds of training, metric) of each validation, by seed.
        seconds: mean seconds of a training.
        mean, spread: of the scores, and their sample standard deviation. None for too few scores.
    """
    config: str
    values: dict[str, Any]
    scores: dict[int, float]
    curves: dict[int, list[tuple[float, float]]]
    seconds: float | None
    mean: float | None
    spread: float | None


def collect(sweep: Sweep, metric: str | None = None, best: bool = False) -> tuple[str, list[Row], dict[Path, str]]:
    """Read the metrics of the finished members.

    Args:
        sweep: the sweep.
        metric: name of the metric. Default: the first that is recorded.
        best: whether to take the largest value over all validations, which flatters, in place of the last.

    Returns:
        The name of the metric, a row for each combination of config and grid, and the folders of the finished members
        that have recorded no metric, with what to do.

    Raises:
        ConfigError: if a record has other metrics, and not this one.
    """
    rows, silent = [], {}
    for i, (config, values) in enumerate(sweep.combinations):
        scores, curves, seconds = {}, {}, []
        for member in sweep.members[i * sweep.seeds:(i + 1) * sweep.seeds]:
            if not member.is_finished:
                continue
            record = _record(member)
            if record is None:
                silent[member.folder] = ('it recorded no metric: no validation took place, or a detector found '
                                         'nothing; train it longer, with a val_interval within the training')
                continue
            found = record['max' if best else 'last']
            metric = metric or next(iter(found))
            if metric not in found:
                raise ConfigError(f'--metric {metric}: {str(member.folder)!r} has recorded {", ".join(found)}; give '
                                  'one of them.')
            clock = dict(record['clock'])
            scores[member.seed] = found[metric]
            curves[member.seed] = [(clock[step], value) for step, value in record['history'][metric]]
            seconds.append(record['seconds'])
        rows.append(Row(config, values, scores, curves, mean(seconds) if seconds else None,
                        mean(scores.values()) if scores else None, stdev(scores.values()) if len(scores) > 1 else None))
    return metric or 'metric', rows, silent


def _record(member: Member) -> dict[str, Any] | None:
    """What a member has recorded; None if there is no metric in it."""
    path = member.folder / RECORD
    record = json.loads(path.read_text()) if path.is_file() else dict(last={})
    return record if record['last'] else None


def settings(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The settings of each row by name. The config is one of them if there are several, or no grid."""
    named = len({row.config for row in rows}) > 1 or not rows[0].values
    return [{**({'config': Path(row.config).stem} if named else {}),
             **{key: as_text(value) for key, value in row.values.items()}} for row in rows]


def label(settings: Mapping[str, str]) -> str:
    """Settings in one short text."""
    return ', '.join(value if key == 'config' else f'{key.rpartition(".")[2]} {value}'
                     for key, value in settings.items())


def as_markdown(metric: str, rows: Sequence[Row]) -> str:
    """A table with a row for each combination: mean, sample standard deviation, number of seeds, seconds."""
    found = settings(rows)
    lines = [[*found[0], metric, '± (seeds)', 'lowest', 'highest', 'seconds'], ['---'] * (len(found[0]) + 5)]
    for row, texts in zip(rows, found, strict=True):
        scores = row.scores.values()
        cells = ['no score', '', '', '', ''] if not scores else [
            f'{row.mean:.4g}', f'{"" if row.spread is None else f"{row.spread:.2g} "}({len(scores)})',
            f'{min(scores):.4g}', f'{max(scores):.4g}', f'{row.seconds:.0f}']
        lines.append([*texts.values(), *cells])
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
    seeds: dict[str, list[float]] = {}
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    budgets: dict[str, list[tuple[float, list[float]]]] = {}
    for row, texts in zip(rows, settings(rows), strict=True):
        scores = [*row.scores.values()]
        seeds[label(texts)] = scores
        curves.setdefault(texts.get('config', label(texts)), []).extend(row.curves.values())
        if row.seconds is not None:
            others = label({key: text for key, text in texts.items() if key not in LENGTHS})
            budgets.setdefault(others or Path(row.config).stem, []).append((row.seconds, scores))
    figures = {'results.png': draw_seeds(seeds, metric), 'curves.png': draw_curves(curves, metric)}
    if any(length in sweep.grid for length in LENGTHS):
        figures['budgets.png'] = draw_budgets(budgets, metric)
    for file, figure in figures.items():
        with replacing(sweep.folder / file) as path:
            figure.savefig(path)
    return [sweep.folder / name for name in ('results.json', 'results.md', *figures)]
