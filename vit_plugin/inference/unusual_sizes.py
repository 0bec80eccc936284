"""Messages about images much larger than those that a model was trained on. Without torch."""

import math
import sys
from collections.abc import Sequence

from anyfolder.terminal import printable

FAR = 16  # a wait is explained from this multiple of the pixels in training
SHOWN_SENTENCES: set[str] = set()  # sentences that :func:`say_once` has printed


def say_once(sentence: str, of: str = '') -> None:
    """Print a sentence to stderr once, after the name of its subject."""
    if sentence not in SHOWN_SENTENCES:
        SHOWN_SENTENCES.add(sentence)
        print(printable(f'{of}: {sentence}' if of else sentence), file=sys.stderr)


def say_if_far(size: Sequence[int], usual: Sequence[int] | None, name: str = '') -> None:
    """Announce that an image will take long.

    Args:
        size: height and width of the model's input.
        usual: height and width in training, if they are known.
        name: name of the file, if it is known.
    """
    if usual and (ratio := math.prod(size) / math.prod(usual)) > FAR:
        say_once(
            f'{size[1]:,} x {size[0]:,} pixels go into the model, {ratio:,.0f} times those of '
            f'{usual[1]:,} x {usual[0]:,} on which it was trained: this may take minutes. Smaller '
            'images are faster, and closer to its training.',
            name,
        )
