"""The color of each class, the same in every picture, chart and legend."""

import colorsys

# Colors that color-blind people can tell apart, and that are legible on white: Okabe and Ito's
# without black and yellow, which mark errors, then those that `python benchmarks palette` chooses.
OKABE_ITO = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9')
SERIES = (
    *OKABE_ITO,
    *(
        '#872D00',
        '#4B4B69',
        '#A5E1B4',
        '#B400FF',
        '#B4B487',
        '#A54B3C',
        '#7800A5',
        '#A578FF',
        '#69D2FF',
    ),
    *(
        '#2D00E1',
        '#E1C369',
        '#875A78',
        '#96C3C3',
        '#C32DC3',
        '#B478D2',
        '#00F0E1',
        '#E1783C',
        '#A5004B',
    ),
)
# For the classes after those of SERIES: the lightness, which alternates, and the saturation.
LIGHTNESS, SATURATION = (0.3, 0.6, 0.45), 0.8
GOLDEN_RATIO = 0.618034  # its multiples spread evenly over the hue circle, however many there are

Color = tuple[int, int, int]  # red, green and blue, 0 to 255


def color_of(label: int) -> Color:
    """The color of a class by its number."""
    if label < len(SERIES):
        red, green, blue = bytes.fromhex(SERIES[label][1:])
        return red, green, blue
    hue = label * GOLDEN_RATIO % 1
    parts = colorsys.hls_to_rgb(hue, LIGHTNESS[label % len(LIGHTNESS)], SATURATION)
    red, green, blue = (round(255 * part) for part in parts)
    return red, green, blue


def hex_of(label: int) -> str:
    """The color of a class as ``#rrggbb``."""
    return '#' + bytes(color_of(label)).hex()
