"""What a sweep has found."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from vit_plugin.engine.report import RECORD
from vit_plugin.errors import ConfigError
from vit_plugin.visualization import draw_budgets, draw_curves, draw_seeds
from vit_plugin.writing import replacing, write_text

from .grid import Member, Sweep, as_text
from .running import is_finished

LENGTHS = ('train_cfg.max_epochs', 'train_cfg.max_iters')  # of the training


class Row(NamedTuple):
    """The members of the same config and settings.

    Attributes:
        config: path of the config.
        values: the settings.
        scores: the metric by seed, of the finished members.
        curves: the points (seconds of training, metric) of each validation, by seed.
        seconds: mean seconds of a training.
    """
    config: str
    values: dict[str, Any]
    scores: dict[int, float]
    curves: dict[int, list[tuple[float, float]]]
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
        The name of the metric, and a row for each combination of config and grid. A member that has recorded nothing
        has no score, see :func:`silent`.

    Raises:
        ConfigError: if a record has other metrics, and not this one.
    """
    rows: dict[str, Row] = {}
    seconds: dict[str, list[float]] = {}
    for member in sweep.members:
        key = json.dumps([member.config, member.values])
        rows.setdefault(key, Row(member.config, member.values, {}, {}, None))
        if is_finished(member) and (record := _record(member)):
            scores = record['max' if best else 'last']
            metric = metric or next(iter(scores))
            if metric not in scores:
                raise ConfigError(f'--metric {metric}: {str(member.folder)!r} has recorded {", ".join(scores)}; give '
                                  'one of them.')
            rows[key].scores[member.seed] = scores[metric]
            clock = dict(record.get('clock', ()))  # records of earlier versions have none
            rows[key].curves[member.seed] = [(clock[step], value) for step, value in record['history'][metric]
                                             if step in clock]
            seconds.setdefault(key, []).append(record['seconds'])
    return metric or 'metric', [row._replace(seconds=mean(seconds[key]) if key in seconds else None)
                                for key, row in rows.items()]


def _record(member: Member) -> dict[str, Any] | None:
    """What a member has recorded; None if there is no metric in it."""
    path = member.folder / RECORD
    if not path.is_file():
        return None
    record = json.loads(path.read_text())
    return record if record['last'] else None


def silent(sweep: Sweep) -> dict[Path, str]:
    """The folders of the finished members that have recorded no metric, with what to do."""
    return {member.folder: 'it recorded no metric: no validation took place, or a detector found nothing; train it '
                           'longer, with a val_interval within the training'
            for member in sweep.members if is_finished(member) and not _record(member)}


def settings(rows: Sequence[Row]) -> list[dict[str, str]]:
    """The settings of each row as texts. The config is one of them if there are several."""
    configs = {row.config for row in rows}
    return [{**({'config': Path(row.config).stem} if len(configs) > 1 else {}),
             **{key: as_text(value) for key, value in row.values.items()}} for row in rows]


def labels(rows: Sequence[Row]) -> list[str]:
    """A short name for each row: the settings that differ."""
    found = settings(rows)
    differ = [key for key in found[0] if len({texts[key] for texts in found}) > 1]
    return [', '.join(texts[key] if key == 'config' else f'{key.rpartition(".")[2]} {texts[key]}'
                      for key in differ or texts) or Path(row.config).stem
            for texts, row in zip(found, rows, strict=True)]


def as_markdown(metric: str, rows: Sequence[Row]) -> str:
    """A table with a row for each combination: mean, sample standard deviation, number of seeds, seconds."""
    found = settings(rows)
    lines = [[*found[0], metric, '± (seeds)', 'lowest', 'highest', 'seconds'], ['---'] * (len(found[0]) + 5)]
    for row, texts in zip(rows, found, strict=True):
        scores = row.scores.values()
        numbers = ['no score', '', '', '', ''] if not scores else [
            f'{mean(scores):.4g}', f'{"" if row.spread is None else f"{row.spread:.2g} "}({len(scores)})',
            f'{min(scores):.4g}', f'{max(scores):.4g}', f'{row.seconds:.0f}']
        lines.append([*texts.values(), *numbers])
    return '\n'.join(f'| {" | ".join(line)} |' for line in lines) + '\n'


def write_results(sweep: Sweep, metric: str, rows: Sequence[Row], failed: Mapping[Path, str]) -> list[Path]:
    """Write the results into the sweep's folder. Returns the paths.

    The files are ``results.json``, ``results.md``, ``results.png`` (all seeds of each combination) and ``curves.png``
    (the metric over the time of training; colours are configs, or combinations if there is one config). If the grid has
    the length of training, there is ``budgets.png`` (the metric over this length, a line for each config with its other
    settings).
    """
    write_text(sweep.folder / 'results.json', json.dumps(dict(
        metric=metric, failed={path.name: words for path, words in failed.items()},
        rows=[dict(row._asdict(), mean=mean(row.scores.values()) if row.scores else None, spread=row.spread)
              for row in rows]), indent=1) + '\n')
    write_text(sweep.folder / 'results.md', as_markdown(metric, rows))
    names = labels(rows)
    curves: dict[str, list[list[tuple[float, float]]]] = {}
    budgets: dict[str, list[tuple[float, list[float]]]] = {}
    for row, name in zip(rows, names, strict=True):
        config = Path(row.config).stem
        curves.setdefault(config if len(sweep.configs) > 1 else name, []).extend(row.curves.values())
        if row.seconds is not None:
            others = {key: value for key, value in row.values.items() if key not in LENGTHS}
            line = ', '.join([config, *(f'{key.rpartition(".")[2]} {as_text(value)}' for key, value in others.items())])
            budgets.setdefault(line, []).append((row.seconds, list(row.scores.values())))
    figures = {'results.png': draw_seeds({name: list(row.scores.values())
                                          for name, row in zip(names, rows, strict=True)}, metric),
               'curves.png': draw_curves(curves, metric)}
    if any(length in sweep.grid for length in LENGTHS):
        figures['budgets.png'] = draw_budgets(budgets, metric)
    for file, figure in figures.items():
        with replacing(sweep.folder / file) as path:
            figure.savefig(path)
    return [sweep.folder / name for name in ('results.json', 'results.md', *figures)]
