"""Classes in image names, as in ``cat.1.jpg`` and ``0001_cat.jpg``."""

import re
from collections.abc import Sequence
from pathlib import Path

from anyfolder.sampling import evenly_spaced

SAMPLED_NAMES = 1000  # names that are looked at, evenly spaced
MIN_MEAN_IMAGES = 2  # images per class; with fewer, each word names an image, not a class
CLASS = '[A-Za-zÀ-ÿ _-]*[A-Za-zÀ-ÿ]'
# Pattern for a layout -> regular expression that recognizes the form: cat.1 or 0001_cat. The
# expression is stricter: it demands the number, since otherwise any word would match.
FORMS = {
    f'**/{{class:{CLASS}}}*': re.compile(rf'({CLASS})[ ._(-]*[0-9]'),
    f'**/{{_:[0-9]+[ ._-]*}}{{class:{CLASS}}}.*': re.compile(rf'[0-9]+[ ._-]*({CLASS})$'),
}


def pattern_of_classes_in_names(images: Sequence[Path]) -> tuple[str, Path] | None:
    """The layout pattern for image names that contain their class, and an image that fits.

    None if there is no such pattern.
    """
    sample = [images[i] for i in evenly_spaced(len(images), SAMPLED_NAMES)]
    for pattern, form in FORMS.items():
        named = [(path, match[1]) for path in sample if (match := form.match(path.stem))]
        classes = {name for _, name in named}
        most_fit = 2 * len(named) > len(sample)
        classes_repeat = len(named) >= MIN_MEAN_IMAGES * len(classes)
        if len(classes) > 1 and most_fit and classes_repeat:
            return pattern, named[0][0]
    return None
