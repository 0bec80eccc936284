"""What is said of images of another size than those that a model was trained on. Without torch."""

import math
import sys
from collections.abc import Sequence

from anyfolder.terminal import printable

FAR = 16  # times the pixels of training, from which on a wait is explained
SHOWN_SENTENCES: set[str] = set()  # sentences of :func:`say_once`


def say_once(sentence: str, of: str = '') -> None:
    """Print a sentence to stderr the first time, after the name of what it is said of."""
    if sentence not in SHOWN_SENTENCES:
        SHOWN_SENTENCES.add(sentence)
        print(printable(f'{of}: {sentence}' if of else sentence), file=sys.stderr)


def say_if_far(size: Sequence[int], usual: Sequence[int] | None, name: str = '') -> None:
    """Say that an image takes long, before it does.

    Args:
        size: its height and width as the model gets it.
        usual: those of training, if they are known.
        name: that of its file, if it is known.
    """
    if usual and (ratio := math.prod(size) / math.prod(usual)) > FAR:
        say_once(
            f'{size[1]:,} x {size[0]:,} pixels go into the model, {ratio:,.0f} times those of '
            f'{usual[1]:,} x {usual[0]:,} on which it was trained: this may take minutes. Smaller '
            'images are faster, and are what it knows.',
            name,
        )
