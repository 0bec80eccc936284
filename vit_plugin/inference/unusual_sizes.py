"""What is said of images of another size than those that a model was trained on. Without torch."""

import math
import sys
from collections.abc import Sequence
from functools import cache

FAR = 16  # times the pixels of training, from which on a wait is explained


@cache
def say_once(sentence: str) -> None:
    """Print a sentence to stderr, where it was not printed before."""
    print(sentence, file=sys.stderr)


def say_if_far(size: Sequence[int], usual: Sequence[int] | None) -> None:
    """Say that an image takes long, before it does.

    Args:
        size: its height and width as the model gets it.
        usual: those of training, if they are known.
    """
    if usual and (ratio := math.prod(size) / math.prod(usual)) > FAR:
        say_once(
            f'An image of {size[1]:,} x {size[0]:,} pixels goes into the model, {ratio:,.0f} times '
            f'those of {usual[1]:,} x {usual[0]:,} on which it was trained: this may take minutes. '
            'Smaller images are faster, and are what it knows.'
        )
