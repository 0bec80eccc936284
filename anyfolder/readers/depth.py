"""The bit depth of images: warn if 16-bit images would look dark or pale in 8 bits.

Training reads photographs with 8 bits per value: of 16 bits, the upper ones. A camera of 12 bits
only fills the lower ones, so its images would be nearly black. A window, the values to read as
black and white, corrects this. (For maps of depth in meters see :mod:`.depth_range`.)
"""

from collections.abc import Sequence
from math import ceil, log2
from pathlib import Path

from anyfolder.wording import option

from .findings import Findings
from .probe import Probe

MIN_CONTRAST = 64  # between the lowest and the highest value in the upper 8 bits
LOSSY_FACTOR = 1.01  # factor by which a lossy format may exceed the highest value


def check_bit_depth(
    bits: int, images: Sequence[tuple[Path, Probe]], findings: Findings, all_have_bits: bool
) -> tuple[float, float] | None:
    """Warn if the upper 8 of 16 bits have little contrast, and reject images of 32 bits.

    Args:
        bits: the bits per value, 16 or 32.
        images: the images with this many bits, some of which were decoded.
        findings: collects the images, with a window that would show them.
        all_have_bits: whether all images have this many bits.

    Returns:
        The window (black, white) with which all images must be read, if they need one.
    """
    paths, ranges = (
        [path for path, _ in images],
        [probe.values for _, probe in images if probe.values],
    )
    if not ranges:
        return None
    low, high = float(min(end[0] for end in ranges)), float(max(end[1] for end in ranges))
    black, white = low, high
    if high > 1 and 0 <= low < high / 4:  # black is 0, and white the end of the used bits
        black, white = 0.0, float(2 ** ceil(log2(high / LOSSY_FACTOR + 1)) - 1)
    window = f'({black:.10g}, {white:.10g})'
    if bits > 16:
        for path in paths:
            what = f'images have {bits} bits per value, which cannot be read as photographs'
            remedy = f'save them with 8 or 16 bits, where {window} becomes black and white'
            findings.reject(what, remedy, str(path))
    elif low == high:  # a window of one value cannot be applied
        what = f'dark or pale images of {bits} bits, with the value {low:g} alone where decoded'
        findings.warn_all(what, paths)
        return None
    elif not _has_contrast(low, high):
        findings.warn_all(
            f'dark or pale images of {bits} bits, with values from {low:g} to {high:g}, '
            + (
                option('window', window)
                if all_have_bits
                else 'of which the upper 8 bits are read; save all with the same number of bits'
            ),
            paths,
        )
        return (black, white) if all_have_bits else None
    narrow = [path for path, probe in images if probe.values and not _has_contrast(*probe.values)]
    if bits <= 16 and 2 * len(narrow) >= len(ranges):
        what = f'dark or pale images of {bits} bits next to others; save all with one range'
        findings.warn_all(what, narrow)
    return None


def _has_contrast(low: float, high: float) -> bool:
    """True if values of 16 bits differ enough in their upper 8 bits."""
    return (high - low) / 257 >= MIN_CONTRAST  # 65535 / 257 = 255
