"""Classes in image names, as in ``cat.1.jpg`` and ``0001_cat.jpg``."""

import re
from collections.abc import Sequence
from pathlib import Path

from anyfolder.sampling import evenly_spaced

SAMPLED_NAMES = 1000  # number of images that are probed
MEAN_IMAGES = 2  # images per class below which words name single images
CLASS = '[A-Za-zÀ-ÿ _-]*[A-Za-zÀ-ÿ]'
# The pattern for a layout, and a regular expression for such names.
FORMS = {
    f'**/{{class:{CLASS}}}*': re.compile(rf'({CLASS})[ ._(-]*[0-9]'),
    f'**/{{_:[0-9]+[ ._-]*}}{{class:{CLASS}}}.*': re.compile(rf'[0-9]+[ ._-]*({CLASS})$'),
}


def class_in_names(images: Sequence[Path]) -> tuple[str, Path] | None:
    """The pattern of images whose names contain their class, and an example; otherwise None."""
    sample = [images[i] for i in evenly_spaced(len(images), SAMPLED_NAMES)]
    for pattern, form in FORMS.items():
        named = [(path, found[1]) for path in sample if (found := form.match(path.stem))]
        classes = {name for _, name in named}
        enough = 2 * len(named) > len(sample) and len(named) >= MEAN_IMAGES * len(classes)
        if len(classes) > 1 and enough:
            return pattern, named[0][0]
    return None
