"""Tell boxes, polygons and poses apart in YOLO labels, from all lines of a folder.

A line has a class and numbers: a box, a box with a score, a box with keypoints, or a polygon. It
does not say which of them. One line is ambiguous, but all lines of a folder have one form.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from anyfolder.errors import UnclearError

from .parsed import Fault

MIN_SHARE = 0.9  # fraction of keypoints in their box, and of boxes in the image
# Variance of size minus center, divided by that of the center. About 0.1 for polygons, see
# `_begin_with_boxes`.
MIN_SCATTER_RATIO = 0.5
TOLERANCE = 0.05  # fraction of the image by which rounded values may exceed it
COUNT = re.compile(r'\d{1,4}')  # number of keypoints, or of values per keypoint
# Keys of a layout file that reads only the box of each line. An UnclearError suggests them.
BOXES_ALONE = dict(
    format='table',
    columns=['class', 'x', 'y', 'width', 'height', '...'],
    units=['relative', 'center'],
)
MIN_LINES = 10  # fewer lines of one length say too little about their meaning


class LineForm(NamedTuple):
    """The meaning of the numbers after a class.

    Attributes:
        box_start: where the box begins in five numbers, a box and a score: 1 if the score is first,
            else 0.
        after_box: how many numbers follow each box, such as keypoints, or a score and a track
            number. 0: lines of six or more numbers are polygons.
    """

    box_start: int = 0
    after_box: int = 0

    def box_in(self, values: list[float]) -> list[float] | None:
        """The center and size of a box; empty for an invalid line, None for a polygon.

        The caller reports invalid lines.
        """
        if len(values) == 5:
            return values[self.box_start :][:4]
        if len(values) in (4, 4 + self.after_box):
            return values[:4]
        return [] if self.after_box or len(values) < 6 else None


def line_form(lines: Sequence[str], keypoints: Any = None) -> tuple[LineForm, list[Fault]]:
    """The form of the lines in a folder, by ``kpt_shape`` or inferred from all lines.

    Args:
        lines: the lines of all label files.
        keypoints: ``kpt_shape`` of the YAML file, the number of keypoints and of values per
            keypoint. ``[0, 2]`` states that there are none, so that longer lines are polygons.

    Returns:
        The form, and the lines that are read in an unusual one.

    Raises:
        InputError: if there is no ``kpt_shape``, and lines seem to be boxes with keypoints, or may
            be either a box and two values or a polygon of three points.
    """
    rows = _rows_by_length(lines)
    scored = rows.pop(5, np.zeros((0, 5)))
    box_start = int(_are_boxes(scored[:, 1:]).sum() > _are_boxes(scored).sum())
    what = 'lines with a score before the box, read as class, score, x, y, width, height'
    faults = [Fault(what, line) for line in lines if box_start and len(line.split()) == 6]
    match keypoints:  # the values of the YAML file are read as text
        case [str(points), str(values)] if COUNT.fullmatch(points) and COUNT.fullmatch(values):
            return LineForm(box_start, after_box=int(points) * int(values)), faults
    # A tracker appends a score and a track number, which is an integer.
    if {*rows} == {6} and _are_boxes(rows[6]).mean() > MIN_SHARE and not (rows[6][:, 5] % 1).any():
        return LineForm(box_start, after_box=2), faults
    # If lines differ in length, too few lines of one length make a guess unreliable.
    if len(rows) == 1 or min(map(len, rows.values()), default=0) >= MIN_LINES:
        _reject_ambiguous_lines(rows, max(lines, key=lambda line: len(line.split())))
    return LineForm(box_start), faults


def _rows_by_length(lines: Sequence[str]) -> dict[int, np.ndarray]:
    """The numbers after the class (N, values) in lines with more than a box, by their count."""
    rows = defaultdict[int, list[list[float]]](list)
    for line in lines:
        _, *values = line.split()
        with suppress(ValueError):
            numbers = [*map(float, values)]
            if len(numbers) > 4:
                rows[len(numbers)].append(numbers)
    return {length: np.array(rows_of_length) for length, rows_of_length in rows.items()}


def _are_boxes(values: np.ndarray) -> np.ndarray:
    """Whether each of some rows (N, 4 or more) begins with a box that is within the image (N)."""
    ends = np.abs(values[:, :2] - 0.5) + values[:, 2:4] / 2
    return np.max(ends, axis=-1) <= 0.5 + TOLERANCE


def _begin_with_boxes(values: np.ndarray) -> bool:
    """True if rows (N, 4 or more) begin with boxes in the image, and not with polygons.

    The first two points of a polygon, read as center and size, often give a box beyond the image.
    They are also near each other wherever the polygon is, so their difference varies far less than
    the first point.
    """
    center, size = values[:, :2], values[:, 2:4]
    scatter = (size - center).var(axis=0).sum()
    center_scatter = center.var(axis=0).sum()
    return _are_boxes(values).mean() > MIN_SHARE and scatter > MIN_SCATTER_RATIO * center_scatter


def _reject_ambiguous_lines(rows: Mapping[int, np.ndarray], longest: str) -> None:
    """Raise an ``UnclearError`` if lines are, or may be, a box and more values, not a polygon.

    Args:
        rows: see :func:`_rows_by_length`.
        longest: a line, for the message.
    """
    dimensions = [_dimensions(values) for values in rows.values()]
    if all(dimensions):
        counts = [
            (length - 4) // per_point for length, per_point in zip(rows, dimensions, strict=True)
        ]
        remedy = f'add kpt_shape: [{counts[0]}, {dimensions[0]}] to data.yaml'
        if len(rows) > 1:
            remedy = 'remove the numbers after the box in each line'
        raise UnclearError(
            f'the labels seem to be a box and {" or ".join(map(str, counts))} keypoints, '
            f'such as {longest!r}; {remedy} to read the boxes, or add kpt_shape: '
            '[0, 2] if they are polygons.',
            **BOXES_ALONE,
        )
    if {*rows} != {6}:
        return
    of_six = rows[6]  # a box and two values, or a polygon of three points
    if _are_boxes(of_six).mean() <= MIN_SHARE:
        return
    if len(of_six) < MIN_LINES or _begin_with_boxes(of_six):
        raise UnclearError(
            f'lines of a class and six numbers, such as {longest!r}, may be a box and '
            'two more values, or a polygon of three points; remove the numbers after the box, or '
            'add kpt_shape: [0, 2] to data.yaml if they are polygons.',
            **BOXES_ALONE,
        )


def _dimensions(values: np.ndarray) -> int:
    """The number of values per keypoint if keypoints follow boxes; 0 for polygons.

    Keypoints have a visibility of 0, 1 or 2, or most of them lie in the box.
    """
    center, size, after = values[:, None, :2], values[:, None, 2:4], values[:, 4:]
    if after.shape[1] % 3 == 0 and np.isin(after[:, 2::3], (0, 1, 2)).all():
        return 3
    for dimensions in (2, 3) if _begin_with_boxes(values) else ():
        if after.shape[1] % dimensions == 0:
            points = after.reshape(len(values), -1, dimensions)[..., :2]
            in_box = (np.abs(points - center) <= size / 2 + TOLERANCE).all(axis=-1)
            is_labeled = (points != 0).any(axis=-1)
            if in_box[is_labeled].sum() > MIN_SHARE * max(is_labeled.sum(), 1):
                return dimensions
    return 0
