"""Column titles in tables of images: for names, classes, groups and boxes."""

import re
from collections.abc import Sequence

# Titles of the column with the image names. The likeliest come first, since a table may have
# several: next to `file`, a column `name` or `id` has something else.
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
# Titles whose last word is one of these, as in Finding Labels and class_name. Columns such as
# ClassId are only used if there is no such title.
LABEL_TITLE_PATTERN = re.compile(
    rf'(^|[ _-])({"|".join(LABEL_TITLES)})([ _-]names?)?$', re.IGNORECASE
)
CLASS_ID_PATTERN = re.compile(
    r'(^|[ _-])(label|class|category|target)[ _-]?(id|idx|index)$', re.IGNORECASE
)
# Columns of groups that must stay in one split, such as patient_id. Image names have these words,
# too (`folder_groups`).
GROUP_WORDS = 'patient|subject|sub|participant|lesion|video|vid|clip|sequence'
GROUP_TITLE = re.compile(rf'({GROUP_WORDS})([ _-]?(id|name))?', re.IGNORECASE)
# A table with one of these columns has boxes.
BOX_TITLES = {'xmin', 'x_min', 'x1', 'bbox', 'objects'}


def label_column(columns: Sequence[str]) -> str | None:
    """The label column among all columns but the image column: by its name, or the only one."""
    if len(named := label_columns(columns)) == 1:
        return named[0]
    return columns[0] if len(columns) == 1 else None


def label_columns(columns: Sequence[str]) -> list[str]:
    """The columns with a title for labels: the first whose title is in :data:`LABEL_TITLES`.

    Without one, all columns whose title ends in such a word, or else all of class ids.
    """
    exact = [name for name in columns if name.casefold() in LABEL_TITLES][:1]
    if exact:
        return exact
    for form in (LABEL_TITLE_PATTERN, CLASS_ID_PATTERN):
        if similar := [name for name in columns if form.search(name)]:
            return similar
    return []
