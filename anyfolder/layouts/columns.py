"""The columns of a table: the names that a layout gives them, and their meaning."""

from collections.abc import Mapping
from dataclasses import dataclass

REST, NOTHING = '...', '_'  # the remaining values of a line, and a value that is not needed
CORNERS = ('x1', 'y1', 'x2', 'y2', 'x3', 'y3', 'x4', 'y4')  # corners of a turned box
COLORS = ('red', 'green', 'blue')
# Columns with a meaning. Other columns join the rows of several tables.
MEANINGS = {
    'image': 'the name of an image, with folders and suffix or without',
    'class': 'its class, or that of an object',
    'classes': 'several classes in a value; with titles, columns of 0 and 1, one for each class',
    'flags': '0 or 1 for each class in the order of classes: the rest of a line, or one value',
    'split': 'its split',
    'group': 'images of one group stay in one split',
    'mask': 'the file of its mask, or of its depth map',
    **dict.fromkeys(('left', 'top', 'right', 'bottom'), 'an edge of a box'),
    **dict.fromkeys(('x', 'y', 'width', 'height'), 'of a box, see units'),
    'box': 'the four numbers of a box in one value, see units',
    'points': 'x, y, x, y, ... of a polygon: the rest of a line, or one value',
    **dict.fromkeys(CORNERS, 'a corner of a box that may be rotated'),
    'ignored': '1 for an object that is neither trained on nor counted',
    'valid': '0 for such an object',
    **dict.fromkeys(('image_width', 'image_height'), 'of the image in pixels'),
    'code': 'the code of a class, in a table of classes',
    'name': 'of a class, in a table of classes',
    'color': 'of a class in masks, in a table of classes',
    **dict.fromkeys(COLORS, 'a part of such a color'),
}
# The sets of columns that define a box or a polygon. A table has one of them.
SHAPES = (
    ('left', 'top', 'right', 'bottom'),
    ('left', 'top', 'width', 'height'),
    ('x', 'y', 'width', 'height'),
    ('box',),
    ('points',),
    CORNERS,
)
OF_SHAPES = set[str]().union(*SHAPES)
LISTS = ('points', 'flags')  # columns that take the rest of a line
NUMBERS = {*OF_SHAPES, 'image_width', 'image_height', *COLORS} - {'box', 'points'}


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        order: the column names from left to right, for a table without a header.
        titles: the title of each column in the header, for a table with a header.
        flags: titles of columns of 0 and 1, one for each class.
    """

    order: tuple[str, ...] = ()
    titles: Mapping[str, str] | None = None
    flags: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """The columns that are needed."""
        found = {*self.order, *(self.titles or ()), *['classes'] * bool(self.flags)}
        return found - {REST, NOTHING}

    @property
    def shape(self) -> tuple[str, ...] | None:
        """The set of :data:`SHAPES` among the columns."""
        return next((shape for shape in SHAPES if self.names.issuperset(shape)), None)
