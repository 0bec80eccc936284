"""The range of depth in a folder, without values that mark pixels of unknown depth.

Unknown depth should be 0, but many programs write a huge value there, such as 65535 or 1e10. Such a
marker would become the farthest depth, so it is recognized and left out.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from anyfolder.errors import InputError, UnclearError
from anyfolder.pixels.depth_maps import read_depth
from anyfolder.sampling import evenly_spaced
from anyfolder.wording import option

from .findings import Findings
from .pixel_maps import probe_maps
from .records import ImageRecord, Records

MAX_SAMPLED_MAPS = 500  # maximum number of depth maps read, unless all are requested
MAX_BELIEVED_METERS = 500.0  # median depth in meters beyond which the unit must be wrong
MIN_MARKER_SHARE = 0.005  # share of a map's known pixels that a marker of missing depth holds
FAR_RATIO = 2.0  # smallest ratio of two successive depths with a gap between them
MAIN_PERCENT = 95.0  # percentile of depth above which a gap is looked for


class DepthRange(NamedTuple):
    """The range of depth in a folder.

    Attributes:
        scale: meters per unit.
        nearest, median, farthest: depths of known pixels, in meters.
        maps: number of maps that were sampled.
    """

    scale: float
    nearest: float
    median: float
    farthest: float
    maps: int


class MapDepth(NamedTuple):
    """Statistics of a depth map.

    Attributes:
        ends: nearest, median and farthest depth in meters; empty without a known pixel.
        believed: the same, without pixels far beyond the others.
        top: the largest depth in meters.
        marker_share: the fraction of known pixels that are not believed.
    """

    ends: tuple[float, ...] = ()
    believed: tuple[float, ...] = ()
    top: float = 0.0
    marker_share: float = 0.0


def check_scale(scale: float | None) -> None:
    """Reject meters per unit that are given as ``depth_scale``, unless they are above 0."""
    if scale is not None and not 0 < scale < math.inf:
        raise InputError(
            f'{option("depth_scale", scale)} is not a number above 0; give the meters per unit.'
        )


def check_depth(
    records: Records,
    scale: float,
    check_all: bool,
    findings: Findings,
    scale_is_stated: bool = False,
) -> tuple[Records, DepthRange]:
    """The images whose map is valid, and the range of depth.

    Args:
        records: the images, each with its map.
        scale: meters per unit.
        check_all: whether all maps are read, rather than 500.
        findings: collects invalid maps, and values that are not depth.
        scale_is_stated: whether the user stated the scale, so it is not checked.

    Raises:
        InputError: if there is no depth, if it cannot be in meters, or if maps are invalid and not
            to be left out.
    """
    count = len(records) if check_all else MAX_SAMPLED_MAPS
    chosen = [records[i] for i in evenly_spaced(len(records), count)]
    probed = [*probe_maps(chosen, lambda path: _probe(path, scale), 'depth maps', findings)]
    findings.check()
    values = _believed_ends(probed, findings)
    if not values:
        raise InputError('no depth map has a value above 0; check how they were saved.')
    nearest_of, median_of, farthest_of = np.array(values).T  # by map
    nearest, farthest = float(nearest_of.min()), float(farthest_of.max())
    median = float(np.median(median_of))
    if median > MAX_BELIEVED_METERS and not scale_is_stated:
        raise UnclearError(
            f'at {scale:g} m per unit, the median depth is {median:,.0f} m, too far for a '
            f'photograph; give {option("depth_scale")}, the meters per unit, such as 0.001 '
            'for millimeters.',
            units=f'{scale / 1000:g}',
        )
    rejected = {record.path for record in chosen} - {record.path for record, _ in probed}
    kept = [record for record in records if record.path not in rejected]
    return kept, DepthRange(scale, nearest, median, farthest, len(chosen))


def _believed_ends(
    probed: Sequence[tuple[ImageRecord, MapDepth]], findings: Findings
) -> list[tuple[float, ...]]:
    """Nearest, median and farthest depth of each map that has a known pixel.

    A value that marks unknown depth in one map marks it in all.
    """
    markers = {depth.top for _, depth in probed if depth.marker_share}
    values = []
    for record, depth in probed:
        ends = depth.believed if depth.top in markers else depth.ends
        if depth.marker_share:
            what = 'depth maps with values far beyond the others, taken as pixels without depth'
            findings.warn(
                what, f'{100 * depth.marker_share:.2g} % up to {depth.top:g} m in {record.mask}'
            )
        if ends:
            values.append(ends)
        else:
            findings.warn('depth maps without a known pixel', record.mask)
    return values


def _probe(path: Path, scale: float) -> tuple[Sequence[int], MapDepth]:
    """The shape (H, W) of a map, and its statistics."""
    depth = read_depth(path, scale)
    known = np.sort(depth[depth > 0])
    if not known.size:
        return depth.shape, MapDepth()
    believed = known
    while (nearer := _without_top(believed)) is not None:
        believed = nearer
    top, share = float(known[-1]), 1 - len(believed) / len(known)
    if known[0] == known[-1]:
        believed = known[:0]  # one value, which may mark unknown depth as in other maps
        share = 0.0
    return depth.shape, MapDepth(_ends(known), _ends(believed), top, share)


def _without_top(known: np.ndarray) -> np.ndarray | None:
    """Sorted depths without markers of unknown depth, None if there are no markers.

    The largest depth is a marker if many pixels share it and it is far from the others. If the
    largest depth is beyond any photograph, all depths beyond a gap are markers.
    """
    top = known[-1]
    below = known[known < top]
    if not below.size:
        return None
    main = np.percentile(below, MAIN_PERCENT)
    is_shared = len(known) - len(below) >= MIN_MARKER_SHARE * len(known)
    if is_shared and top >= FAR_RATIO * main:
        return _up_to_gap(below, main)
    nearer = _up_to_gap(known, main) if top > MAX_BELIEVED_METERS > FAR_RATIO * main else known
    return nearer if len(nearer) < len(known) else None


def _up_to_gap(values: np.ndarray, main: float) -> np.ndarray:
    """Sorted values up to the first one above ``main`` that is far from the next lower one.

    At such edges, antialiasing mixes the marker with real depths.
    """
    tail = values[values >= main]
    gaps = np.flatnonzero(tail[1:] >= FAR_RATIO * tail[:-1])
    return values[values <= tail[gaps[0]]] if gaps.size else values


def _ends(values: np.ndarray) -> tuple[float, ...]:
    return (float(values[0]), float(np.median(values)), float(values[-1])) if values.size else ()
