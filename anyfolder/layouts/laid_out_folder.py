"""A folder read by its layout: images, labels, splits, groups and classes."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.pixels.image_files import IMAGE_SUFFIXES
from anyfolder.readers.build_listing import Draft, Task
from anyfolder.readers.findings import Findings
from anyfolder.readers.formats.json_values import stated_size
from anyfolder.readers.image_tree import Tree
from anyfolder.readers.records import ImageRecord
from anyfolder.readers.split_lists import Lists
from anyfolder.text import read_lines

from .class_codes import ClassCodes
from .columns import COLORS
from .layout import Layout
from .layout_files import LayoutImages, MatchedFile, matching
from .layout_rows import ROW_MISFIT, ImageRows, LayoutRows
from .layout_splits import LayoutSplits
from .path_pattern import PathPattern
from .table_rows import rows_in

# The formats whose labels have numbers of classes rather than names.
NUMBERED_FORMATS = ('yolo', 'xview', 'masks', 'objects')


class LaidOutFolder:
    """A folder whose files are interpreted by a layout.

    Args:
        layout: the layout of the folder.
        folder: the folder that the layout's patterns are relative to.
        tree: the files of the folder.
        findings: collects omissions and errors.

    Attributes:
        labels: the label files.
        images: the images.
        label_fields: for each image, the fields in the path of its label file, such as its split,
            unless that file is a table. Filled by :meth:`add_label_fields`, before :meth:`draft` is
            called.

    Raises:
        InputError: if the layout names files that do not exist.
    """

    def __init__(self, layout: Layout, folder: Path, tree: Tree, findings: Findings) -> None:
        self.layout, self.folder, self.tree, self.findings = layout, folder, tree, findings
        self.label_fields: dict[Path, Mapping[str, str]] = {}
        self._label_splits: dict[Path, list[str]] = {}  # a split for each label file
        self._used: list[Path] = []
        files = [*tree.images, *tree.others]
        self.labels = self.matching_files('labels', layout.labels, files) if layout.labels else []
        label_paths = {file.path for file in self.labels}
        candidates = [path for path in tree.images if path not in label_paths]
        patterns = layout.images or (PathPattern('**', layout.file),)
        # If no image matches, all may have been saved in another format.
        if not any(matching(folder, candidates, patterns)):
            patterns = [_with_any_suffix(pattern, layout.file) for pattern in patterns]
        self.images = LayoutImages(self.matching_files('images', patterns, candidates))

    def matching_files(
        self, key: str, patterns: Sequence[PathPattern], paths: Iterable[Path]
    ) -> list[MatchedFile]:
        """The files among ``paths`` that match the patterns of a key.

        Raises:
            InputError: if there are none.
        """
        matches = list(matching(self.folder, paths, patterns))
        if not matches:
            texts = ' and '.join(repr(pattern.text) for pattern in patterns)
            remedy = self.layout.note or f'Correct {key} in {self.layout.file!r}, or add the files.'
            raise InputError(
                f'{str(self.folder)!r}, read as {self.layout.title}, has no file {texts}. {remedy}'
            )
        return matches

    @cached_property
    def codes(self) -> ClassCodes:
        """The codes of all classes: those in the layout, and those in the file that it names."""
        layout, stated = self.layout, self.layout.classes
        are_numbers = layout.format in NUMBERED_FORMATS or 'mask' in layout.named_columns
        if stated and are_numbers:
            stated = stated.counted_from_0()
        if layout.names is None:
            return stated or ClassCodes()
        files = self.matching_files('classes', (layout.names,), self.tree.others)
        self._used += [file.path for file in files]
        in_files = [self._codes_in(file) for file in files]
        codes = _joined([one.counted_from_0() for one in in_files] if are_numbers else in_files)
        return codes.merged_with(stated)

    def _codes_in(self, file: MatchedFile) -> ClassCodes:
        """The class codes in a file: a name on each line, from 0 on, or a table by ``columns``."""
        columns = self.layout.columns_of(file.relative_path)
        if columns is None or 'name' not in columns.names:
            return ClassCodes.of_names(read_lines(file.path), str(file.path))
        names: dict[str, str | None] = {}
        for number, (position, row) in enumerate(rows_in(file.path, columns)):
            if row is None:
                self.findings.reject(*ROW_MISFIT, position)
                continue
            has_colors = row.keys() >= {*COLORS}
            color = ' '.join(row[name] for name in COLORS) if has_colors else row.get('color')
            # Without a column of codes or colors, classes are numbered from 0.
            code, name = row.get('code') or color or str(number), row.get('name') or None
            if names.setdefault(code, name) != name:
                what, remedy = 'codes of classes have two names', 'keep one of them'
                where = f'{code!r}: {names[code]!r} and {name!r}, {position}'
                self.findings.reject(what, remedy, where)
        return ClassCodes.of_codes(names, str(file.path))

    @cached_property
    def rows(self) -> dict[Path, ImageRows]:
        """The rows of tables for each image; empty if the labels are not in tables."""
        tables = self.labels if self.layout.format == 'table' else []
        rows = LayoutRows(
            self.layout, tables, self.image_of_label_file, self.image_named, self.findings
        )
        return rows.of_image

    def image_of_label_file(self, file: MatchedFile) -> Path | None:
        """The image whose fields equal those of a label file.

        A file without an image is noted in the findings, one with several images is rejected.
        """
        images = self.images.of_file(file)
        if not images:
            what = 'label files left out, since they match no image by the layout'
            self.findings.warn(what, file.path)
        elif len(images) > 1:
            self.findings.reject(
                'label files match several images',
                'distinguish these by fields in images and labels',
                f'{file.path}: {images[0].path} and {images[1].path}',
            )
        return images[0].path if len(images) == 1 else None

    def add_label_fields(self, path: Path, fields: Mapping[str, str]) -> None:
        """Keep the fields of a label file of an image, and the splits of all of its label files."""
        self.label_fields[path] = fields
        if fields.get('split'):
            self._label_splits.setdefault(path, []).append(fields['split'])

    def image_named(self, name: str, file: MatchedFile) -> Path | None:
        """The image of a name in a label file, see :meth:`.LayoutImages.resolve`."""
        return self.images.resolve(name, file, self.findings)

    def draft(self, task: Task, records: Mapping[Path, ImageRecord]) -> Draft:
        """The labeled images with their splits and groups. Images without a label are noted.

        Args:
            task: see :class:`~anyfolder.readers.build_listing.Draft`.
            records: the images that have labels, by their paths.
        """
        layout = self.layout
        fields_of = {path: self._fields_of(path) for path in records}
        values = {path: self._splits_of(path) for path in records}
        splits = LayoutSplits(
            layout, self.folder, self.images, self.tree.others, values, self.findings
        )
        for path, record in records.items():
            fields = fields_of[path]
            record.split, record.group = splits.split_of_image.get(path), _group_of(fields)
            if not any(record.stated_size):
                record.stated_size = stated_size(
                    fields.get('image_width'), fields.get('image_height')
                )
        self._check_groups(records.values())
        self.findings.warn_all(
            'images left out, since they have no label by the layout',
            (path for path in self.images.of_path if path not in records),
        )
        if layout.note:
            self.findings.warn(f'read as {layout.title} unpacks', layout.note)
        used = [Path(layout.file), *(file.path for file in self.labels), *self._used, *splits.lists]
        records = [*records.values()]
        return Draft(task, layout.title, self.tree, records, used_files=used, lists=Lists())

    def _fields_of(self, path: Path) -> Mapping[str, str]:
        """The fields of an image, such as its split: from its path, or else from its labels."""
        rows = self.rows.get(path)
        in_labels = {**self.label_fields.get(path, {}), **(rows.fields if rows else {})}
        return {**in_labels, **self.images.of_path[path].fields}

    def _splits_of(self, path: Path) -> Sequence[str]:
        """The values of ``split`` of an image: that in its path, or else all in its labels."""
        if in_path := self.images.of_path[path].fields.get('split'):
            return [in_path]
        rows = self.rows.get(path)
        in_labels = [*self._label_splits.get(path, ()), *(rows.splits if rows else ())]
        return list(dict.fromkeys(in_labels))

    def _check_groups(self, records: Collection[ImageRecord]) -> None:
        """Reject images of one group in two splits."""
        first: dict[str, ImageRecord] = {}
        has_train = any(record.split == 'train' for record in records)
        for record in records:
            # If some images are assigned to training, those without a split are left out.
            if not record.group or (record.split is None and has_train):
                continue
            other = first.setdefault(record.group, record)
            if (other.split or 'train') != (record.split or 'train'):
                self.findings.reject(
                    'images of one group are in several splits',
                    'put each group into one split, or remove group from the layout',
                    f'{record.group!r}: {other.path} and {record.path}',
                )


def _joined(codes: Sequence[ClassCodes]) -> ClassCodes:
    """The codes of several files, such as a copy of the same file for each split.

    Raises:
        InputError: if two files name a code differently.
    """
    first, *others = codes
    for other in others:
        for code, name in other.names.items():
            if first.names.setdefault(code, name) != name:
                raise InputError(
                    f'{first.file!r} and {other.file!r} name the class {code!r} differently, '
                    f'{first.names[code]!r} and {name!r}; keep one of these files, or name it in '
                    'classes.'
                )
        first.ranges += other.ranges
    return first


def _group_of(fields: Mapping[str, str]) -> str:
    """The group of an image, from the fields named ``group`` or, for example, ``group_sign``."""
    return '/'.join(fields[name] for name in sorted(fields) if name.partition('_')[0] == 'group')


def _with_any_suffix(pattern: PathPattern, file: str) -> PathPattern:
    """The pattern with ``.*`` instead of its image suffix, if it ends with one."""
    for suffix in IMAGE_SUFFIXES:
        if pattern.text.lower().endswith(suffix):
            return PathPattern(f'{pattern.text[: -len(suffix)]}.*', file)
    return pattern
