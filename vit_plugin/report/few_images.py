"""A note at the end of a run that was validated on few images: how uncertain its accuracy is."""

import math
from collections.abc import Mapping, Sequence

FEW_VALIDATED = 50  # images; the interval around 80 % of 50 is 22 points wide
Z = 1.96  # 95 % of a normal distribution are within this many standard deviations
ACCURACY = 'accuracy/top1'


def wilson_interval(share: float, count: int) -> tuple[float, float]:
    """The 95 % confidence interval of a share (0 to 1) measured on ``count`` images.

    E. B. Wilson, Journal of the American Statistical Association 22 (1927).
    """
    spread = Z**2 / count
    middle = (share + spread / 2) / (1 + spread)
    half = Z * math.sqrt(share * (1 - share) / count + spread / (4 * count)) / (1 + spread)
    return max(middle - half, 0.0), min(middle + half, 1.0)


def note_on_few_images(
    count: int, history: Mapping[str, Sequence[tuple[int, float]]], by_best: bool = True
) -> str:
    """A sentence about a run that was validated on few images; empty if they were enough.

    Args:
        count: images to validate.
        history: the points (epoch or iteration, value in per cent) of each metric.
        by_best: whether the weights are those of the best validation, instead of the last ones.
    """
    if not history or not 0 < count < FEW_VALIDATED:
        return ''
    decide = 'images decide' if count > 1 else 'image decides'
    text = f'{count} validation {decide} little, so compare models on more'
    if points := history.get(ACCURACY):
        values = [value for _, value in points]
        score = max(values) if by_best else values[-1]
        low, high = wilson_interval(score / 100, count)
        text += (
            f': {score:.0f} % top-1 of them can be {100 * low:.0f} to {100 * high:.0f} % of other '
            'images (95 % confidence)'
        )
        if by_best and len(points) > 1:
            text += f', and lower still as the best of {len(points)} validations'
    return f'{text}.'
