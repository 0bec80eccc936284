"""The split of each image by a layout: fields and columns, lists of images, or patterns."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from anyfolder.errors import InputError
from anyfolder.readers.findings import Findings
from anyfolder.readers.splits import SPLITS, Split, split_of

from .columns import Columns
from .layout import Layout
from .layout_files import LayoutImages, MatchedFile, matching
from .layout_keys import FILE_MARKS
from .path_pattern import PathPattern
from .table_rows import rows_in

LIST_COLUMNS = Columns(('image',))  # the columns of a list without an entry in `columns`


class LayoutSplits:
    """The split of each image.

    Each item of the key ``splits`` is a value of the field or column ``split``, or else a pattern
    of images or of lists of images.

    Args:
        layout: the layout with the splits.
        folder: the folder of the layout.
        images: the images.
        others: the other files in the folder.
        values: the values of the field or column ``split`` for each image.
        findings: collects the lines of lists that name no image, or several.

    Attributes:
        lists: the lists of images that were read.
        split_of_image: the split of each image that has one.

    Raises:
        InputError: for a value that is not a split, or an item of ``splits`` that is neither a
            value, a list nor a pattern of images.
    """

    def __init__(
        self,
        layout: Layout,
        folder: Path,
        images: LayoutImages,
        others: Sequence[Path],
        values: Mapping[Path, Sequence[str]],
        findings: Findings,
    ) -> None:
        self._layout, self._folder, self._images = layout, folder, images
        self._others, self._findings = others, findings
        self.lists: list[Path] = []
        stated: dict[Path, set[Split]] = defaultdict(set)
        used_values = dict.fromkeys(chain.from_iterable(values.values()))
        # If `splits` name all values that occur, the others are of parts that are not there.
        named = {item for items in layout.splits.values() for item in items}
        self._may_lack_values = bool(used_values) and used_values.keys() <= named
        for split, items in layout.splits.items():
            for item in items:
                if item not in used_values:  # so it is a pattern of images or of lists
                    for path in self._images_of_item(item, split):
                        stated[path].add(split)
        split_of_value = {value: self._split_of(value) for value in used_values}
        for path, values_of_image in values.items():
            for value in values_of_image:
                if split := split_of_value[value]:
                    stated[path].add(split)
        # If an image has several splits, the one furthest from training is used.
        self.split_of_image = {
            path: max(splits, key=SPLITS.index) for path, splits in stated.items()
        }

    def _split_of(self, value: str) -> Split | None:
        """The split that a value stands for: by ``splits``, else as a word such as train2017.

        None if ``splits`` does not have the value.
        """
        if not self._layout.splits:
            if split := split_of(value):
                return split
            raise InputError(
                f'{self._layout.file!r}: the split {value!r} is not train, val or test; add '
                f'splits, as in splits: {{train: {value}}}.'
            )
        named = (split for split, items in self._layout.splits.items() if value in items)
        return next(named, None)

    def _images_of_item(self, item: str, split: Split) -> Iterator[Path]:
        """The images that a pattern matches, or else those in the lists that it matches."""
        pattern = [PathPattern(item, f'{self._layout.file!r}: splits: {split}')]
        if images := list(matching(self._folder, self._images.of_path, pattern)):
            yield from (image.path for image in images)
            return
        lists = list(matching(self._folder, self._others, pattern))
        if not lists and self._may_lack_values and not {*FILE_MARKS} & {*item}:
            self._findings.warn('values of splits that no labeled image has', item)
        elif not lists and '*' not in item:
            raise InputError(
                f'{self._layout.file!r}: splits: {split}: {item!r} is not an existing list, '
                'a pattern of images, or a value of a field or column split; correct it.'
            )
        elif not lists and not self._layout.is_known:
            self._findings.warn('patterns of splits that match no image and no list', item)
        self.lists += [file.path for file in lists]
        for file in lists:
            yield from self._images_in_list(file)

    def _images_in_list(self, file: MatchedFile) -> Iterator[Path]:
        """The images that a list names."""
        columns = self._layout.columns_of(file.relative_path) or LIST_COLUMNS
        for position, row in rows_in(file.path, columns):
            name = row.get('image', '') if row else ''
            if image := self._images.resolve(name, file, self._findings, 'lines', position):
                yield image
