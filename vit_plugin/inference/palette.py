"""The color of each class, the same in every picture, chart and legend."""

import colorsys

# Okabe and Ito's without black and yellow: told apart by color-blind people, and legible on white.
SERIES = ('#0072B2', '#D55E00', '#009E73', '#CC79A7', '#E69F00', '#56B4E9')
LIGHTNESS = (0.3, 0.6, 0.45)  # of the classes after these, in turns
GOLDEN_RATIO = 0.618034  # its multiples spread over the circle of hues, however many there are

Color = tuple[int, int, int]  # red, green and blue, 0 to 255


def color_of(label: int) -> Color:
    """The color of a class by its number."""
    if label < len(SERIES):
        red, green, blue = bytes.fromhex(SERIES[label][1:])
        return red, green, blue
    hue = label * GOLDEN_RATIO % 1
    parts = colorsys.hls_to_rgb(hue, LIGHTNESS[label % len(LIGHTNESS)], 0.8)
    red, green, blue = (round(255 * part) for part in parts)
    return red, green, blue


def hex_of(label: int) -> str:
    """The color of a class as ``#rrggbb``."""
    return '#' + bytes(color_of(label)).hex()
