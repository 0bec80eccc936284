"""Choose the colors of classes so that people with and without color blindness can tell them apart.

    python benchmarks palette

The first are Okabe and Ito's colors (https://jfly.uni-koeln.de/color/) without black and yellow,
which mark errors. Each further color is the one of a grid in sRGB that is farthest from all before
it (Glasbey et al., doi:10.1002/col.20327). The distance of two colors is their distance in OKLab
(https://bottosson.github.io/posts/oklab/), the smallest of four: as seen with normal vision and
with protanopia, deuteranopia and tritanopia (Machado et al., doi:10.1109/TVCG.2009.113, severity
1). The result is the table in ``anyfolder.pictures.palette``.
"""

import argparse

import numpy as np

from anyfolder.pictures.palette import OKABE_ITO

AVOIDED = ('#000000', '#FFFFFF', '#F0E442', '#808080')  # of errors, and of gray photographs
LIGHTNESS = (0.42, 0.86)  # range in OKLab: not close to black, and legible on white
STEPS = 18  # values of each primary in the grid
# Matrices of linear sRGB as seen with normal vision, protanopia, deuteranopia and tritanopia.
VISIONS = np.array(
    [
        np.eye(3),
        [
            (0.152286, 1.052583, -0.204868),
            (0.114503, 0.786281, 0.099216),
            (-0.003882, -0.048116, 1.051998),
        ],
        [
            (0.367322, 0.860646, -0.227968),
            (0.280085, 0.672501, 0.047413),
            (-0.011820, 0.042940, 0.968881),
        ],
        [
            (1.255528, -0.076749, -0.178779),
            (-0.078411, 0.930809, 0.147602),
            (0.004733, 0.691367, 0.303900),
        ],
    ]
)
# OKLab's matrices: from linear sRGB to responses of the cones, and from their cube roots to Lab.
CONES = np.array(
    [
        (0.4122214708, 0.5363325363, 0.0514459929),
        (0.2119034982, 0.6806995451, 0.1073969566),
        (0.0883024619, 0.2817188376, 0.6299787005),
    ]
)
TO_LAB = np.array(
    [
        (0.2104542553, 0.7936177850, -0.0040720468),
        (1.9779984951, -2.4285922050, 0.4505937099),
        (0.0259040371, 0.7827717662, -0.8086757660),
    ]
)


def as_seen(colors: np.ndarray) -> np.ndarray:
    """sRGB from 0 to 255 (N, 3) in OKLab, by each of :data:`VISIONS` (4, N, 3)."""
    parts = colors / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    seen = np.einsum('vij,nj->vni', VISIONS, linear).clip(0, 1)
    return np.cbrt(seen @ CONES.T) @ TO_LAB.T


def parse_colors(colors: tuple[str, ...]) -> np.ndarray:
    """Colors as ``#rrggbb`` -> sRGB from 0 to 255 (N, 3)."""
    return np.array([list(bytes.fromhex(color[1:])) for color in colors], float)


def least_distances(colors: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The distances (N, M) of colors from others, to those who see the smallest difference."""
    pairs = as_seen(colors)[:, :, None] - as_seen(others)[:, None]
    distances: np.ndarray = np.linalg.norm(pairs, axis=-1).min(axis=0)
    return distances


def choose_colors(count: int) -> list[str]:
    """Choose this number of colors, as ``#RRGGBB``."""
    steps = np.linspace(0, 255, STEPS).round()
    grid = np.stack(np.meshgrid(steps, steps, steps, indexing='ij'), axis=-1).reshape(-1, 3)
    lightness = as_seen(grid)[0, :, 0]
    grid = grid[(lightness > LIGHTNESS[0]) & (lightness < LIGHTNESS[1])]
    colors = list(OKABE_ITO)
    nearest = least_distances(grid, parse_colors((*OKABE_ITO, *AVOIDED))).min(axis=1)
    while len(colors) < count:
        best = int(nearest.argmax())
        colors.append('#' + bytes(grid[best].astype(np.uint8)).hex().upper())
        nearest = np.minimum(nearest, least_distances(grid, grid[best][None])[:, 0])
    return colors


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument('--count', type=int, default=24)
    colors = choose_colors(parser.parse_args().count)
    for number, color in enumerate(colors):
        before = parse_colors((*colors[:number], *AVOIDED))
        distance = least_distances(parse_colors((color,)), before).min()
        print(f'{color}  {distance:.3f} from those before')


if __name__ == '__main__':
    main()
