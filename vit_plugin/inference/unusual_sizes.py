"""Messages about images much larger than a model's training images, each printed once.

Importing it needs no torch.
"""

import math
import sys
from collections.abc import Sequence

from anyfolder.terminal import printable

LARGE_PIXEL_RATIO = 16  # a wait is explained above this multiple of the pixels in training
SHOWN_SENTENCES: set[str] = set()  # sentences that :func:`print_once` has printed


def print_once(sentence: str, subject: str = '') -> None:
    """Print a sentence to stderr once, after the name of its subject."""
    if sentence not in SHOWN_SENTENCES:
        SHOWN_SENTENCES.add(sentence)
        print(printable(f'{subject}: {sentence}' if subject else sentence), file=sys.stderr)


def announce_large_image(
    size: Sequence[int], training_size: Sequence[int] | None, name: str = ''
) -> None:
    """Announce that an image will take long, if it is far larger than those in training.

    Args:
        size: height and width of the model's input.
        training_size: height and width in training, if they are known.
        name: name of the file, if it is known.
    """
    if training_size and (ratio := math.prod(size) / math.prod(training_size)) > LARGE_PIXEL_RATIO:
        print_once(
            f'{size[1]:,} x {size[0]:,} pixels go into the model, {ratio:,.0f} times those of '
            f'{training_size[1]:,} x {training_size[0]:,} on which it was trained: this may take '
            'minutes. Smaller images are faster, and closer to its training.',
            name,
        )
