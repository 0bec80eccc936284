"""Find folders of maps next to folders of images, and the maps that are the labels.

A map has a value for each pixel of an image: a class, an object, or the field of view. The kind of
a folder, images or maps, is determined by its name, or else by the pixels of its files. If an image
has several maps, they are distinguished by their role: the folders that a map has and its image
does not, such as ``mask`` and ``1st_manual`` in DRIVE.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

from anyfolder.errors import UnclearError
from anyfolder.sampling import evenly_spaced

from .addresses import FOLDER_KINDS
from .findings import Findings
from .image_tree import Tree
from .map_looks import are_nearly_the_same, have_same_regions, is_label_map
from .name_keys import first_word, keys_of
from .named_folders import Folders
from .splits import split_of, without_split

MAX_FOLDER_GROUPS = 64  # maximum number of folders, or groups of them, that are sampled
FILES_PER_GROUP = 3  # files sampled from each group
NAMES_PER_FOLDER = 50  # number of names compared with those of other folders
Kind = str  # 'image', 'mask', 'other' or empty
Role = tuple[str, ...]  # the folders of a map that its image does not have
MapsByRole = Mapping[Role, Mapping[Path, Path]]  # by image


@cache
def kind_by_name(folders: Folders) -> Kind:
    """The kind of files by their folders, the innermost first; empty if no folder has one."""
    for part in reversed(folders):
        for kind, names in FOLDER_KINDS.items():
            if kind != 'label' and not names.isdisjoint({part.casefold(), without_split(part)}):
                return kind
    return ''


def label_maps(tree: Tree, folders: Iterable[Folders]) -> list[Path]:
    """The files in the folders whose pixels are those of label maps.

    A few files of each folder are probed. If there are many folders, those below one top folder are
    probed as one, and if there are many top folders, none is.
    """
    groups = defaultdict[str, list[Folders]](list)
    folders = sorted(folders)
    for folder in folders:
        key = '/'.join(folder) if len(folders) <= MAX_FOLDER_GROUPS else _without_splits(folder)[:1]
        groups[str(key)].append(folder)
    if len(groups) > MAX_FOLDER_GROUPS:
        return []
    maps: list[Path] = []
    for group in groups.values():
        images = [image for folder in group for image in tree.images_in[folder]]
        sample = [images[i] for i in evenly_spaced(len(images), FILES_PER_GROUP)]
        if all(map(is_label_map, sample)):
            maps += images
    return maps


def _without_splits(folders: Folders) -> Role:
    return tuple(part for part in folders if not split_of(part))


def share_names(tree: Tree, folders: Sequence[Folders]) -> bool:
    """True if two folders have most names in common, apart from words that all names of one have.

    For a name such as ``3_hair``, the first word is enough, since an image can have several maps.
    """
    sample = [folders[i] for i in evenly_spaced(len(folders), MAX_FOLDER_GROUPS)] if folders else []
    names_in = []  # the names in each folder, and their first words
    for folder in sample:
        keys = keys_of(tree.images_in[folder][:NAMES_PER_FOLDER]).values()
        names = {key for key in keys if key}
        names_in.append((names, {*map(first_word, names)}))
    return any(
        2 * len(first & second) > min(len(first), len(second)) > 1
        for names_of_two in combinations(names_in, 2)
        for first, second in zip(*names_of_two, strict=True)
    )


def role_of(map_: Path, image: Path, tree: Tree) -> Role:
    """The folders that a map has and its image does not, except splits."""
    of_image = {part.casefold() for part in tree.parts(image)}
    of_map = _without_splits(tree.parts(map_))
    return tuple(part for part in of_map if part.casefold() not in of_image)


def choose_labels(maps: MapsByRole, findings: Findings) -> Role:
    """The role of the labels, if images have several maps.

    Maps that are nearly the same for all images contain no labels, unless all are such. Maps that
    only differ from others in values or colors are redundant. Both are noted.

    Raises:
        InputError: if maps of several roles remain.
    """
    roles = sorted(maps, key=lambda role: (kind_by_name(role) != 'mask', -len(maps[role]), role))
    constant = [role for role in roles if are_nearly_the_same([*maps[role].values()])]
    candidates = [role for role in roles if role not in constant] or roles
    what = 'maps left out, since they are nearly the same for all images, like a field of view'
    for role in roles:
        if role not in candidates:
            findings.warn_all(what, maps[role].values())
    first, *others = candidates
    for role in others:
        both = [image for image in maps[role] if image in maps[first]]
        if not both or not have_same_regions(
            [maps[role][image] for image in both], [maps[first][image] for image in both]
        ):
            image = next(iter(both), next(iter(maps[role])))
            examples = [
                maps[of_role].get(image, next(iter(maps[of_role].values())))
                for of_role in (first, role)
            ]
            raise UnclearError(
                f'which maps are the labels of {str(image)!r}: {str(examples[0])!r} or '
                f'{str(examples[1])!r}? Keep those, and move the others out of the folder.',
                pairs=[*maps[first].items()],
            )
        findings.warn_all('maps left out, since they repeat the others', maps[role].values())
    return first
