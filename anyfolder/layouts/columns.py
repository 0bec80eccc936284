"""The columns of a table: the names that a layout gives them, and their meaning."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

IGNORED_REST = '...'  # all further values of a line, which are not read
NOTHING = '_'  # a value that is not needed
CORNERS = ('x1', 'y1', 'x2', 'y2', 'x3', 'y3', 'x4', 'y4')  # corners of a rotated box
COLORS = ('red', 'green', 'blue')
# Columns with a meaning. Any other name is a key by which the rows of several tables are joined.
MEANINGS = {
    'image': 'the name of an image, with folders and suffix or without',
    'class': 'its class, or that of an object',
    # In a layout for a table with a header, the value may be a list of titles, one for each class.
    'classes': 'several classes in one value, or a column of 0 and 1 for each class',
    'flags': '0 or 1 for each class in the order of classes: the rest of a line, or one value',
    'split': 'its split',
    'group': 'images of one group stay in one split',
    'mask': 'the file of its mask, or of its depth map',
    **dict.fromkeys(('left', 'top', 'right', 'bottom'), 'an edge of a box'),
    **dict.fromkeys(('x', 'y', 'width', 'height'), 'a number of a box; see the key `units`'),
    'box': 'the four numbers of a box in one value; see the key `units`',
    'points': 'x, y, x, y, ... of a polygon: the rest of a line, or one value',
    **dict.fromkeys(CORNERS, 'a corner of a box that may be rotated'),
    'ignored': '1 for an object that is neither trained on nor counted',
    'valid': '0 for an ignored object',
    **dict.fromkeys(('image_width', 'image_height'), 'a side of the image in pixels'),
    'code': 'the code of a class, in a table of classes',
    'name': 'the name of a class, in a table of classes',
    'color': 'the color of a class in masks, in a table of classes',
    **dict.fromkeys(COLORS, 'a component of the color of a class, in a table of classes'),
}
# The sets of columns that define a box or a polygon. If a table has several sets, a row with the
# first of them has an object. Its polygon is preferred to its box.
SHAPES = (
    ('left', 'top', 'right', 'bottom'),
    ('left', 'top', 'width', 'height'),
    ('x', 'y', 'width', 'height'),
    ('box',),
    ('points',),
    CORNERS,
)
SHAPE_COLUMNS = set[str]().union(*SHAPES)
TAKE_REST = ('points', 'flags')  # columns that take all further values of a line
# Columns of a single number each, in groups of which a row can lack all.
NUMBER_GROUPS = SHAPE_COLUMNS - {'box', 'points'}, {'image_width', 'image_height'}, {*COLORS}
NUMBER_COLUMNS = set[str]().union(*NUMBER_GROUPS)
INNER_KEY = re.compile(r'\.[^.]+$')  # in `box.x`, the key in the JSON values of the column `box`


@dataclass(frozen=True)
class Columns:
    """The columns of a table.

    Attributes:
        order: the column names from left to right, for a table without a header.
        titles: for a table with a header, the title of each column by the column's name.
        class_titles: for a table with a header, the titles of columns of 0 and 1, one for each
            class. Together they are the column ``classes``.
    """

    order: tuple[str, ...] = ()
    titles: Mapping[str, str] | None = None
    class_titles: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """The columns that are read."""
        names = {*self.order, *(self.titles or ())} - {IGNORED_REST, NOTHING}
        return names | {'classes'} if self.class_titles else names

    @property
    def shape(self) -> tuple[str, ...] | None:
        """The first set of :data:`SHAPES` among the columns, or None."""
        return next((shape for shape in SHAPES if self.names.issuperset(shape)), None)
