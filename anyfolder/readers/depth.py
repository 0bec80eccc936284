"""Images of more than 8 bits per value, and the range of their values."""

from collections.abc import Sequence
from math import ceil, log2
from pathlib import Path

from anyfolder.wording import option

from .findings import Findings
from .probe import Probe

CONTRAST = 64  # out of 255, between the lowest and the highest value
ROUNDED = 1.01  # by which a lossy format may exceed the highest value


def warn_depth(
    bits: int, found: Sequence[tuple[Path, Probe]], findings: Findings, alone: bool
) -> tuple[float, float] | None:
    """Note the range of values if the upper 8 bits would be dark, and reject 32 bits.

    Args:
        bits: the bits per value, 16 or 32.
        found: the images with this many bits, some of which were decoded.
        findings: collects the window that shows them.
        alone: whether all images have this many bits.

    Returns:
        The window with which all images must be read, if they need one.
    """
    paths, ends = [path for path, _ in found], [probe.values for _, probe in found if probe.values]
    if not ends:
        return None
    low, high = float(min(end[0] for end in ends)), float(max(end[1] for end in ends))
    least, most = low, high
    if high > 1 and 0 <= low < high / 4:  # black is 0, and white the end of the used bits
        least, most = 0.0, float(2 ** ceil(log2(high / ROUNDED + 1)) - 1)
    window = f'({least:.10g}, {most:.10g})'
    if bits > 16:
        for path in paths:
            what = f'images have {bits} bits per value, which cannot be read as photographs'
            remedy = f'save them with 8 or 16 bits, where {window} becomes black and white'
            findings.reject(what, remedy, str(path))
    elif not _has_contrast(low, high):
        findings.warn_all(
            f'dark or pale images of {bits} bits, with values from {low:g} to {high:g}, '
            + (
                option('window', window)
                if alone
                else 'of which the upper 8 bits are read; save all with the same number of bits'
            ),
            paths,
        )
        return (least, most) if alone else None
    narrow = [path for path, probe in found if probe.values and not _has_contrast(*probe.values)]
    if bits <= 16 and 2 * len(narrow) >= len(ends):
        what = f'dark or pale images of {bits} bits next to others; save all with one range'
        findings.warn_all(what, narrow)
    return None


def _has_contrast(low: float, high: float) -> bool:
    return (high - low) / 257 >= CONTRAST
