"""Read depth maps from files: 16-bit PNG, TIFF and NumPy arrays."""

from pathlib import Path

import cv2
import numpy as np

from anyfolder.limits import read_within

from .arrays import read_array
from .image_headers import check_decoding_cost

# Meters per unit for which depth of 8 bits is plausible: it reaches at least a meter (255 units),
# in steps of less than a meter. With other scales, the file is probably a picture.
PLAUSIBLE_8_BIT_SCALES = 1 / 255, 1.0
DEPTH_SUFFIXES = ('.png', '.npy', '.tif', '.tiff', '.exr')


def read_depth(path: str | Path, scale: float = 1.0) -> np.ndarray:
    """The depth (H, W) of each pixel in meters, in float32; 0 if unknown.

    Unknown depth is 0, negative, infinite or NaN in the file, or the largest value of its integer
    type, as written by cameras and renderers.

    Args:
        path: a file with one value for each pixel.
        scale: meters per unit.

    Raises:
        ValueError: if it cannot be read (OpenCV's wheels do not read EXR), if it does not have one
            number for each pixel, or if it is a PNG of 8 bits and the scale is not plausible for
            depth.
        OSError: if the file cannot be opened.
    """
    path = Path(path)
    if path.suffix.lower() == '.npy':
        with open(path, 'rb') as file:
            values = read_array(file)
    elif path.suffix.lower() == '.exr':
        raise ValueError('EXR is not read; save the depth as .npy, or as a TIFF of 32 bits')
    else:
        content = read_within(path, 'bytes of an image')
        check_decoding_cost(content)
        values = cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_UNCHANGED)
    if values is None or values.dtype.kind not in 'uif':
        raise ValueError('it is damaged, or does not contain numbers')
    values = values.squeeze()
    if values.ndim != 2:
        raise ValueError(f'it has the shape {values.shape}, not one value for each pixel')
    is_8_bit = path.suffix.lower() == '.png' and values.dtype == np.uint8
    if is_8_bit and not PLAUSIBLE_8_BIT_SCALES[0] <= scale < PLAUSIBLE_8_BIT_SCALES[1]:
        raise ValueError(
            'it has 8 bits, as pictures have; depth in PNG has 16, unless the meters of a value '
            'are given'
        )
    depth = values.astype(np.float32) * np.float32(scale)
    known = np.isfinite(depth) & (depth > 0)
    if values.dtype.kind in 'ui':
        known &= values != np.iinfo(values.dtype).max
    return np.where(known, depth, np.float32(0))
