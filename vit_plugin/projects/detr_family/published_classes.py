"""The class names of a published detector, and the rows of its layers that stand for no class.

A classification layer may have rows for COCO's unused category ids, or a last row for "no object".
Published files often state no names, so COCO's are recognized by the number of rows.
"""

import logging
from collections.abc import Mapping

from mmengine.logging import print_log

from anyfolder.terminal import printable
from vit_plugin.weights.published import Published, are_default_names

# Rows for COCO: all category ids from 0 to 90, those from 1, or only the classes.
COCO_ROWS = (91, 90, 80)
NO_CLASS = ('N/A', '__background__')  # torchvision's names of category ids that are not a class


class DetectorClasses:
    """The classes of a detector and the rows of its classification layers without a class.

    Args:
        rows: number of rows.
        names: the stated names, by row. If there are none: COCO's names if the number of rows is in
            :data:`COCO_ROWS`, else ``'class 0'``, ... for all rows but the last. If they are COCO's
            80 names for 91 rows, each is moved to the row of its category id.

    Attributes:
        names: the names of the classes, in the order of their rows.
        unused: the rows without a class.
    """

    def __init__(self, rows: int, names: Mapping[int, str]) -> None:
        coco = coco_names()
        known = [name for name in coco if name not in NO_CLASS]
        if not names or (rows == len(coco) and [*names.values()] == known):
            by_rows = {len(coco): coco, len(coco) - 1: coco[1:], len(known): known}
            if rows in by_rows:
                print_log(f"The classes are taken as COCO's, since there are {rows}.", 'current')
            # The last row stands for no object.
            numbered = [f'class {i}' for i in range(max(rows - 1, 1))]
            names = dict(enumerate(by_rows.get(rows, numbered)))
        used = {i: names[i] for i in range(rows) if names.get(i, NO_CLASS[0]) not in NO_CLASS}
        self.names = list(used.values())
        self.unused = [row for row in range(rows) if row not in used]
        beyond = [name for i, name in names.items() if i >= rows and name not in NO_CLASS]
        if beyond:
            print_log(
                f'The layers of the detector have {rows} rows, and the file names more classes: '
                f'{printable(", ".join(beyond[:3]))} and any others are left out.',
                'current',
                logging.WARNING,
            )


def stated_names(published: Published) -> dict[int, str]:
    """The class names that a file states, by row.

    transformers' default names (``LABEL_0``, ...) are left out if their number is in
    :data:`COCO_ROWS`, so that COCO's names are taken instead.
    """
    names = published.names
    return {} if len(names) in COCO_ROWS and are_default_names(names.values()) else names


def names_of_all_rows(published: Published, rows: int) -> dict[int, str]:
    """The class names of a file of transformers, in which every row stands for a class.

    A ``config.json`` without names may have two classes with transformers' default names, which it
    then leaves out. The names are ``'class 0'``, ..., or none if COCO's fit.
    """
    numbered = {} if rows in COCO_ROWS else {i: f'class {i}' for i in range(rows)}
    return stated_names(published) or numbered


def coco_names() -> list[str]:
    """The names of COCO's category ids 0 to 90, with a name in ``NO_CLASS`` for unused ones."""
    from torchvision.models.detection import FasterRCNN_ResNet50_FPN_Weights

    return list(FasterRCNN_ResNet50_FPN_Weights.COCO_V1.meta['categories'])
