"""Find text files with the class of one image each, for a hint to the user."""

from pathlib import Path

from anyfolder.errors import InputError, UnclearError
from anyfolder.sampling import evenly_spaced

from .findings import Findings
from .image_tree import Tree
from .paired_files import pair_files

MAX_TEXTS = 50  # texts that are read


def check_texts(tree: Tree) -> None:
    """Raise an ``UnclearError`` if texts may contain the classes of most images."""
    if pairs := texts_of_classes(tree):
        image, text = pairs[0]
        raise UnclearError(
            f'{str(text)!r} may have the class of {str(image)!r}, as others do for their images; '
            'put the images of each class into a folder with its name.',
            format='table',
            pairs=pairs,
            columns=['class'],
        )


def texts_of_classes(tree: Tree) -> list[tuple[Path, Path]]:
    """The images with their texts, if these seem to be classes; otherwise empty.

    They do if most images have a text, each is one line, and each line is in two texts on average.
    """
    texts = [file for file in tree.others if file.suffix.lower() == '.txt']
    discarded = Findings()
    matches = pair_files(tree.index, {file: [file.stem] for file in texts}, discarded)
    pairs = [(image, file) for file, image in matches.image_of.items()]
    if 2 * len(pairs) <= len(tree.images):
        return []
    chosen = [pairs[i][1] for i in evenly_spaced(len(pairs), MAX_TEXTS)]
    try:
        contents = [
            tuple(line for line in tree.contents.lines(file) if line.strip()) for file in chosen
        ]
    except InputError:  # notes in another encoding
        return []
    are_shared = 2 <= len({*contents}) <= len(contents) / 2
    return pairs if are_shared and all(len(lines) == 1 for lines in contents) else []
