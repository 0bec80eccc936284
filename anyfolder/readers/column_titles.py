"""Column titles in tables of images: for names, classes, groups and boxes."""

import re
from collections.abc import Sequence

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
# Titles such as Finding Labels and class_name; ClassId is used if there is none of these.
LABEL_TITLE = re.compile(rf'(^|[ _-])({"|".join(LABEL_TITLES)})([ _-]names?)?$', re.IGNORECASE)
CLASS_ID_TITLE = re.compile(
    r'(^|[ _-])(label|class|category|target)[ _-]?(id|idx|index)$', re.IGNORECASE
)
# Columns of groups that must stay in one split, such as patient_id.
GROUP_WORDS = 'patient|subject|sub|participant|lesion|video|vid|clip|sequence'
GROUP_TITLE = re.compile(rf'({GROUP_WORDS})([ _-]?(id|name))?', re.IGNORECASE)
BOX_TITLES = {'xmin', 'x_min', 'x1', 'bbox', 'objects'}


def label_column(columns: Sequence[str]) -> str | None:
    """The label column among all columns but the image column: by its name, or the only one."""
    if len(named := label_columns(columns)) == 1:
        return named[0]
    return columns[0] if len(columns) == 1 else None


def label_columns(columns: Sequence[str]) -> list[str]:
    """The columns with a title for labels: the first that is one of :data:`LABEL_TITLES`.

    Without it, all that contain one, or else all of class ids.
    """
    exact = [name for name in columns if name.casefold() in LABEL_TITLES][:1]
    if exact:
        return exact
    for form in (LABEL_TITLE, CLASS_ID_TITLE):
        if similar := [name for name in columns if form.search(name)]:
            return similar
    return []
