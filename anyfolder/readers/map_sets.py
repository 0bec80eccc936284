"""Find folders of maps next to folders of images, and those with the labels.

The kind of a folder is determined by its name, or else by its pixels. Maps are distinguished by the
folders that their image does not have, such as ``mask`` and ``1st_manual`` in DRIVE.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import combinations
from pathlib import Path

from anyfolder.errors import UnclearError
from anyfolder.sampling import evenly_spaced

from .findings import Findings
from .identity import FOLDER_KINDS
from .image_tree import Tree
from .map_looks import are_nearly_the_same, have_same_regions, is_label_map
from .name_keys import first_word, keys_of
from .named_folders import Folders
from .splits import split_of, without_split

MAX_FOLDER_GROUPS = 64  # maximum number of groups of folders whose pixels are sampled
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

    Only folders that share names with another one are checked, and only a few of many folders in
    one folder.
    """
    groups = defaultdict[str, list[Folders]](list)
    folders = sorted(folders)
    for place in folders:
        key = '/'.join(place) if len(folders) <= MAX_FOLDER_GROUPS else _without_splits(place)[:1]
        groups[str(key)].append(place)
    if len(groups) > MAX_FOLDER_GROUPS:
        return []
    found: list[Path] = []
    for places in groups.values():
        images = [image for place in places for image in tree.images_in[place]]
        if all(map(is_label_map, (images[i] for i in evenly_spaced(len(images), FILES_PER_GROUP)))):
            found += images
    return found


def _without_splits(folders: Folders) -> Role:
    return tuple(part for part in folders if not split_of(part))


def share_names(tree: Tree, folders: Sequence[Folders]) -> bool:
    """True if two folders have images of the same names, except for words that all have.

    For a name such as ``3_hair``, the first word is enough, since an image can have several maps.
    """
    places = [folders[i] for i in evenly_spaced(len(folders), MAX_FOLDER_GROUPS)] if folders else []
    names = []
    for place in places:
        keys = keys_of(tree.images_in[place][:NAMES_PER_FOLDER]).values()
        words = {key for key in keys if key}
        names.append((words, {*map(first_word, words)}))
    return any(
        2 * len(one[i] & other[i]) > min(len(one[i]), len(other[i])) > 1
        for one, other in combinations(names, 2)
        for i in (0, 1)
    )


def role_of(map_: Path, image: Path, tree: Tree) -> Role:
    """The folders that a map has and its image does not, except splits."""
    own = {part.casefold() for part in tree.parts(image)}
    return tuple(part for part in _without_splits(tree.parts(map_)) if part.casefold() not in own)


def choose_labels(maps: MapsByRole, findings: Findings) -> Role:
    """The labels among several maps of each image.

    Maps that are nearly the same for all images contain no labels, and maps that only differ from
    others in values or colors are redundant.

    Raises:
        InputError: if several remain, or none.
    """
    roles = sorted(maps, key=lambda role: (kind_by_name(role) != 'mask', -len(maps[role]), role))
    constant = [role for role in roles if are_nearly_the_same([*maps[role].values()])]
    left = [role for role in roles if role not in constant] or roles
    what = 'maps left out, since they are nearly the same for all images, like a field of view'
    _leave_out({role: maps[role] for role in roles if role not in left}, what, findings)
    first, *others = left
    for role in others:
        both = [image for image in maps[role] if image in maps[first]]
        own, known = ([maps[one][image] for image in both] for one in (role, first))
        if not both or not have_same_regions(own, known):
            image = next(iter(both), next(iter(maps[role])))
            examples = [
                maps[one].get(image, next(iter(maps[one].values()))) for one in (first, role)
            ]
            raise UnclearError(
                f'which maps are the labels of {str(image)!r}: {str(examples[0])!r} or '
                f'{str(examples[1])!r}? Keep those, and move the others out of the folder.',
                pairs=[*maps[first].items()],
            )
        what = 'maps left out, since they repeat the others'
        _leave_out({role: maps[role]}, what, findings)
    return first


def _leave_out(maps: MapsByRole, what: str, findings: Findings) -> None:
    findings.warn_all(what, (map_ for own in maps.values() for map_ in own.values()))
