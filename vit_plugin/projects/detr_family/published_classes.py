"""The classes of a published detector, and the rows of its layers that do not stand for a class."""

from collections.abc import Mapping

from mmengine.logging import print_log

from vit_plugin.weights.published import DEFAULT_CLASS_PREFIX, Published

COCO_ROWS = (91, 90, 80)  # numbers of class rows for COCO
NO_CLASS = ('N/A', '__background__')  # rows among COCO's 91 that are not a class


class DetectorClasses:
    """The classes of a detector and the rows of its classification layers without a class.

    Args:
        rows: number of rows.
        names: the known names of rows. If there are none: COCO's names if the number of rows
            matches, else numbers for all rows but the last. COCO's 80 names for 91 rows are taken
            as those of COCO's rows.
    """

    def __init__(self, rows: int, names: Mapping[int, str]) -> None:
        coco = coco_names()
        known = [name for name in coco if name not in NO_CLASS]
        if not names or (rows == len(coco) and [*names.values()] == known):
            by_rows = {len(coco): coco, len(coco) - 1: coco[1:], len(known): known}
            if rows in by_rows:
                print_log(f"The classes are taken as COCO's, since there are {rows}.", 'current')
            numbers = [f'class {i}' for i in range(max(rows - 1, 1))]  # the last row is not a class
            names = dict(enumerate(by_rows.get(rows, numbers)))
        used = {i: names[i] for i in range(rows) if names.get(i, NO_CLASS[0]) not in NO_CLASS}
        self.names = list(used.values())
        self.unused = [row for row in range(rows) if row not in used]


def stated_names(published: Published) -> dict[int, str]:
    """The stated class names, by number.

    Default names do not count as stated if there are as many as COCO has.
    """
    names = published.names
    is_default = all(name.startswith(DEFAULT_CLASS_PREFIX) for name in names.values())
    return {} if is_default and len(names) in COCO_ROWS else names


def coco_names() -> list[str]:
    """The names of COCO's 91 categories by number, with ``NO_CLASS`` for unused ones."""
    from torchvision.models.detection import FasterRCNN_ResNet50_FPN_Weights

    return list(FasterRCNN_ResNet50_FPN_Weights.COCO_V1.meta['categories'])
