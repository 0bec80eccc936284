"""The files of a run that a hub folder publishes, each checked to be what its name says.

A folder may come from someone else: a link in it could publish a private file.
"""

import io
import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from PIL import Image
from pydantic import Field
from typing_extensions import NotRequired

from vit_plugin.arguments import fits
from vit_plugin.arguments.fields import OpenDict
from vit_plugin.errors import ConfigError, first_line
from vit_plugin.report.pictures.class_scores import COUNT_COLUMNS
from vit_plugin.weights.reading.shards import INDEX, shard_files

Name = Annotated[str, Field(max_length=200, pattern=r'^[^\n\r]*$')]
Count = Annotated[int, Field(ge=0)]
Number = Annotated[float, Field(allow_inf_nan=True)]


class Metrics(OpenDict):
    """``metrics.json``, as far as a card shows it."""

    last: dict[Name, Number]
    best: dict[Name, Number]
    epochs: NotRequired[Count]
    iterations: NotRequired[Count]
    seconds: NotRequired[float]


class ClassScores(OpenDict):
    """``classes.json``."""

    per_class: Annotated[list[dict[Name, Name | Number | None]], Field(min_length=1)]
    macro: dict[Name, Number | None]
    overall: NotRequired[dict[Name, Number | None] | None]


class ReportedSplit(OpenDict):
    """A split of the data in a report."""

    images: Count
    by_class: dict[Name, Count]


class ReportedFinding(OpenDict):
    """A kind of omission or repair. Its examples are file names, which are not published."""

    what: Name
    count: Count


class DataReport(OpenDict):
    """``data_report.json``, as far as a card shows it."""

    form: Name
    classes: list[Name]
    parts: dict[Name, ReportedSplit]
    findings: list[ReportedFinding]


RUN_FILE_SCHEMAS = {
    'metrics.json': Metrics,
    'classes.json': ClassScores,
    'data_report.json': DataReport,
}


def check_not_linked(source: str, path: str) -> None:
    """Check that a checkpoint found in a folder is a regular file in it, not a link.

    Raises:
        ConfigError: if it is a link, or one of its shards is.
    """
    source, file = os.path.expanduser(source), Path(path)
    # A file that the user has named may be a link.
    if not os.path.isdir(source) or not file.parent.samefile(source):
        return
    shards = shard_files(file).values() if file.name == INDEX else ()
    for name in (file.name, *sorted({*shards})):
        if file.with_name(name).is_symlink():
            raise _refused(file.with_name(name), 'a link')


def read_json(folder: Path, name: str) -> dict[str, Any]:
    """The content of a file of :data:`RUN_FILE_SCHEMAS`, empty if the file is missing.

    Raises:
        ConfigError: see :func:`read_regular_file`, and if the content does not fit its schema.
    """
    content = read_regular_file(folder, name)
    if content is None:
        return {}
    values: Any = None
    with suppress(ValueError, RecursionError):  # not JSON, or nested too deeply
        values = json.loads(content)
    if not (fits(RUN_FILE_SCHEMAS[name], values) and _is_complete(name, values)):
        raise _refused(folder / name, f'not the {name} that a run writes')
    return values


def _is_complete(name: str, values: Mapping[str, Any]) -> bool:
    """Whether content that fits its schema has all entries that a card reads together."""
    if name == 'metrics.json':
        counts = {'epochs', 'iterations', 'seconds'}
        return values['last'].keys() <= values['best'].keys() and (
            counts <= values.keys() or counts.isdisjoint(values)
        )
    if name == 'data_report.json':
        classes = {*values['classes']}
        return all(classes <= split['by_class'].keys() for split in values['parts'].values())
    if name == 'classes.json':  # the counts of its first row are added up
        rows = values['per_class']
        counts = {column for column in COUNT_COLUMNS if column in rows[0]}
        return not counts or (
            bool(values['macro'] or values.get('overall'))
            and all(isinstance(row.get(column), int) for row in rows for column in counts)
        )
    return True


def read_picture(folder: Path, name: str) -> bytes | None:
    """A PNG picture, re-encoded without metadata; None if the file is missing.

    Raises:
        ConfigError: see :func:`read_regular_file`, and if it is not a PNG.
    """
    content = read_regular_file(folder, name)
    if content is None:
        return None
    written = io.BytesIO()
    try:
        with Image.open(io.BytesIO(content), formats=['PNG']) as image:
            Image.fromarray(np.asarray(image.convert('RGBA'))).save(written, 'PNG')
    except Exception as error:  # a damaged file can raise any error in a reader
        raise _refused(folder / name, f'no PNG ({first_line(error)})') from error
    return written.getvalue()


def read_regular_file(folder: Path, name: str) -> bytes | None:
    """The content of a file, or None if it is missing.

    Raises:
        ConfigError: if it is a link, a device or the like.
    """
    path = folder / name
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise _refused(path, 'a link' if stat.S_ISLNK(mode) else 'not a regular file')
    return path.read_bytes()


def _refused(path: Path, what: str) -> ConfigError:
    return ConfigError(
        f'{str(path)!r} is {what}, and only files that the run wrote into its folder are '
        'published; remove it, or put the file in its place.'
    )
