"""A layout: the description of a data folder in ``anyfolder.yaml``, in at most ten keys.

With a layout a folder is read as stated, and nothing is guessed. ``layouts/known`` has the layouts
of public data sets. :mod:`.layout_keys` reads the value of each key, and :mod:`.read_layout` reads
a folder by its layout.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError
from anyfolder.readers.splits import Split

from .box_units import BoxUnits
from .class_codes import ClassCodes
from .columns import MEANINGS, Columns
from .layout_formats import FORMATS, tasks_of
from .layout_keys import KEYS, choose
from .layout_yaml import read_layout_yaml
from .path_pattern import PathPattern

FILE = 'anyfolder.yaml'  # the name of a layout file in its data folder
KNOWN_FOLDER = Path(__file__).with_name('known')  # the layouts of public data sets


@dataclass(frozen=True)
class Layout:
    """The description of a folder. All attributes but the first come from the keys of its file.

    Attributes:
        file: the layout file.
        when: files by which a known layout is recognized, all of which must exist.
        task: the tasks that the labels are for. Empty: all that the format supports.
        format: how the labels are written, a key of :data:`FORMATS`.
        images: patterns of the images.
        labels: patterns of the label files.
        columns: for each table, the pattern of its files (None: all files) and its columns.
        splits: for each split, lists of images, patterns of images, or values of the field or
            column ``split``.
        classes: the name of each code.
        names: the pattern of a file with the names of further codes.
        units: the units of boxes.
        meters: meters per unit in depth maps; None if not stated.
        note: what is left out, or how to get missing labels.
    """

    file: str
    when: tuple[str, ...] = ()
    task: tuple[str, ...] = ()
    format: str = ''
    images: tuple[PathPattern, ...] = ()
    labels: tuple[PathPattern, ...] = ()
    columns: tuple[tuple[PathPattern | None, Columns], ...] = ()
    splits: Mapping[Split, tuple[str, ...]] = field(default_factory=dict)
    classes: ClassCodes | None = None
    names: PathPattern | None = None
    units: BoxUnits | None = None
    meters: float | None = None
    note: str = ''

    @property
    def title(self) -> str:
        """The data set of a known layout, or else the name of the file."""
        path = Path(self.file)
        return path.name if path.name == FILE else path.stem

    @property
    def is_known(self) -> bool:
        """Whether it is that of a public data set, of which some downloads may be missing."""
        return Path(self.file).parent == KNOWN_FOLDER

    def columns_of(self, path: str) -> Columns | None:
        """The columns of the table at a path below the folder; None if the layout has none."""
        for files, columns in self.columns:
            if files is None or files.match(path) is not None:
                return columns
        return None

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that the labels support."""
        shape = next((columns.shape for _, columns in self.columns if columns.shape), None)
        return tasks_of(self.format, self.named_columns, shape is not None)

    @cached_property
    def joining_columns(self) -> set[str]:
        """The columns that are not in :data:`MEANINGS`. They are keys that join tables."""
        return self.named_columns - MEANINGS.keys()

    @cached_property
    def named_columns(self) -> set[str]:
        """The names of the columns of all tables."""
        return {name for _, columns in self.columns for name in columns.names}


def read_layouts(file: Path) -> list[Layout]:
    """The layouts in a file, one for each YAML document. They are for different tasks.

    Raises:
        InputError: if a layout is invalid. For an unknown key or value, the message proposes the
            nearest known one.
    """
    documents = read_layout_yaml(file)
    if not documents:
        raise InputError(f'{str(file)!r} is empty; write format: and images: into it.')
    return [layout_of(content, str(file)) for content in documents]


def layout_of(content: Any, file: str) -> Layout:
    """The layout with these keys and values, as YAML has them.

    Args:
        content: a mapping; anything else is an error.
        file: the layout file, for messages.

    Raises:
        InputError: see :func:`read_layouts`.
    """
    if not isinstance(content, dict):
        raise InputError(f'{file!r} is not a mapping; write lines such as format: folders.')
    values: dict[str, Any] = {}
    for key, value in content.items():
        choose(key, KEYS, f'{file!r}')
        if value is not None:
            values |= KEYS[key](value, f'{file!r}: {key}')
    layout = Layout(file, **values)
    if not layout.format:
        raise InputError(f'{file!r} has no format; give one of {", ".join(FORMATS)}.')
    if fault := _fault(layout):
        raise InputError(f'{file!r}: {fault}.')
    return layout


def _fault(layout: Layout) -> str:
    """The missing or contradictory keys, with the remedy; empty if there are none."""
    name = layout.format
    fields = {field for pattern in layout.images for field in pattern.fields}
    needs_labels = name != 'folders'
    if needs_labels != bool(layout.labels):
        end = 'labels, the pattern of their files' if needs_labels else 'no labels; remove them'
        return f'format: {name} needs {end}'
    if name == 'folders' and 'class' not in fields:
        return "format: folders needs the field {class} in images, as in '{class}/**'"
    if name == 'table' and not layout.columns:
        return 'format: table needs columns, the names of its columns in their order'
    if name != 'table' and any(files is None for files, _ in layout.columns):
        return f'format: {name} has no columns; remove them, or name their files'
    if name in ('masks', 'objects') and not (layout.classes or layout.names):
        return f'format: {name} needs classes, the name of each value, as in {{0: sky, 255: ~}}'
    if name == 'depth' and layout.meters is None:
        return 'format: depth needs units, the meters per unit, as in units: 0.001'
    if name == 'panoptic' and (layout.splits or layout.classes or layout.names):
        return 'format: panoptic has its own classes and splits; remove classes and splits'
    if name == 'depth' and (layout.classes or layout.names):
        return 'format: depth has no classes; remove them'
    if layout.units and (
        name in ('folders', 'masks', 'objects', 'panoptic') or 'detection' not in layout.tasks
    ):
        return f'format: {name} has no boxes in any units; remove units'
    if layout.meters and name != 'depth' and 'mask' not in layout.named_columns:
        return f'format: {name} has no depth in {layout.meters:g} m; remove units'
    if wrong := {*layout.task} - {*layout.tasks}:
        return (
            f'format: {name} has no labels for task: {wrong.pop()}, but {", ".join(layout.tasks)}'
        )
    return ''
