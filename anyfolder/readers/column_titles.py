"""Column titles in tables of images: for names, classes, groups and boxes."""

import re
from collections.abc import Sequence

# Titles of the column with the image names. A table may have several: next to `file`, a column
# `name` or `id` has something else. So the likeliest come first. (In `table_columns`, columns whose
# values have the suffix of an image precede all others.)
IMAGE_TITLES = (
    'file',
    'filename',
    'file_name',
    'image',
    'image_id',
    'imageid',
    'image_name',
    'path',
    'img',
    'name',
    'id',
)
LABEL_TITLES = (
    'label', 'labels', 'class', 'classes', 'category', 'target', 'tags', 'species', 'breed',
    'choice',  # Label Studio's
)  # fmt: skip
# Titles that end in one of these words, or in it and `name`: Finding Labels, class_name.
LABEL_TITLE_PATTERN = re.compile(
    rf'(^|[ _-])({"|".join(LABEL_TITLES)})([ _-]names?)?$', re.IGNORECASE
)
# Columns of numbers in place of names, such as ClassId. They are the labels only if no other title
# is one for labels.
CLASS_ID_PATTERN = re.compile(
    r'(^|[ _-])(label|class|category|target)[ _-]?(id|idx|index)$', re.IGNORECASE
)
# Words for groups of images that must stay in one split, such as those of a patient. They are in
# titles of columns and, for `folder_groups`, in names of files and folders.
GROUP_WORDS = 'patient|subject|sub|participant|lesion|video|vid|clip|sequence'
# For whole titles, such as patient_id: use `fullmatch`.
GROUP_TITLE_PATTERN = re.compile(rf'({GROUP_WORDS})([ _-]?(id|name))?', re.IGNORECASE)
# A table with one of these columns has boxes.
BOX_TITLES = {'xmin', 'x_min', 'x1', 'bbox', 'objects'}


def label_column(columns: Sequence[str]) -> str | None:
    """The label column, by its title; or the only column. None if it is unclear.

    Args:
        columns: the titles of all columns but the image column.
    """
    if len(named := label_columns(columns)) == 1:
        return named[0]
    return columns[0] if len(columns) == 1 else None


def label_columns(columns: Sequence[str]) -> list[str]:
    """The columns with a title for labels, several if it is unclear which has them.

    The first column whose whole title is in :data:`LABEL_TITLES`. Without one, all that fit
    :data:`LABEL_TITLE_PATTERN`; without these, all that fit :data:`CLASS_ID_PATTERN`.
    """
    exact = [name for name in columns if name.casefold() in LABEL_TITLES][:1]
    if exact:
        return exact
    for pattern in (LABEL_TITLE_PATTERN, CLASS_ID_PATTERN):
        if similar := [name for name in columns if pattern.search(name)]:
            return similar
    return []
