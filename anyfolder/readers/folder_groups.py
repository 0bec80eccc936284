"""Images that belong together, such as the slices of a patient or frames of a video.

If no split is given, images of one such folder must not be in both training and validation: they
look alike, so the validation would be too optimistic. Folders are such groups if

1. they are on one level, and are neither splits nor named for a kind of file (``images``),
2. there are :data:`LEAST_GROUPS` or more, with two images each on average,
3. the name of each has a digit: ``patient_007``, ``2011_09_26``, ``clip3``,
4. they are not classes: most classes are in several of them.

The outermost level of such folders counts. Otherwise, file names can show groups, as in
``vid01_frame001.png``: the first of :data:`NAME_FORMS` counts that puts most images in groups of
two or more. Other folders, and fewer groups, are divided and noted.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from anyfolder.sampling import evenly_spaced

from .column_titles import GROUP_WORDS
from .findings import Findings
from .identity import ANY_KIND
from .image_tree import Tree
from .records import ImageRecord, Records
from .splits import split_of

LEAST_GROUPS = 5  # a tenth of fewer folders would be a large fraction of the images
MEAN_IMAGES = 2  # in a folder, below which it is that of a single image
NUMBERED = re.compile(r'(.*\d.*?)[ ._-]+\d+\.\w+$')  # a number after a name with a digit
SAMPLED_NAMES = 200  # files, most of which must have one form
DIGIT = re.compile(r'\d')
# Groups in file names: a video before its frame (as VoTT, Roboflow and video tools name them), a
# numbered word, and an image augmented by Roboflow.
NAME_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        r'(.*[^\W_].*?[._](?:mp4|avi|mov))[-_#.]',
        r'(.*[^\W_].*?)[ ._-]*(?<![^\W\d_])(?:frames?|frm)[ ._-]*\d',
        rf'((?:.*(?<![^\W\d_]))?(?:{GROUP_WORDS})[ ._-]*\d+)\D',
        r'(.+)\.rf\.',
    )
)

Folders = dict[str, Records]


def find_groups(records: Records, tree: Tree, findings: Findings) -> set[str]:
    """Set the group of images to the name of their folder, or of their video, if these are groups.

    Images with a group keep it.

    Args:
        records: the images to divide.
        tree: the files of the folder.
        findings: collects the groups that stay whole, or those that are divided.

    Returns:
        The groups that are the only ones with some class, which only training can use.
    """
    if any(record.group for record in records):
        return set()
    levels = [found for found in _levels(records, tree) if _may_be_groups(found)]
    for folders in levels:
        if len(folders) >= LEAST_GROUPS and all(map(DIGIT.search, folders)):
            what = 'folders kept whole in train or val, like those of a patient or a video'
            return _kept_whole(folders, what, findings)
    names = _by_names(records, NAME_FORMS)
    if len(names) >= LEAST_GROUPS:
        what = (
            'images kept together in train or val, as of one video, patient or augmented image by '
            'their names'
        )
        return _kept_whole(names, what, findings)
    what = (
        'image names that begin alike, divided between train and val; if they belong to one '
        "patient or video, write {group} for their common part in a layout's images"
    )
    findings.warn_all(what, names or _by_names(records, [NUMBERED]))
    if levels:
        what = (
            'folders whose images are divided between train and val; if each has one patient or '
            "video, write {group} for the folder in a layout's images"
        )
        findings.warn_all(what, levels[0])
    return set()


def _kept_whole(groups: Folders, what: str, findings: Findings) -> set[str]:
    """Set the group of images, and return the groups that are the only ones with some class."""
    findings.warn_all(what, groups)
    for name, found in groups.items():
        for record in found:
            record.group = name
    return {*_only_folders(groups)}


def _by_names(records: Records, forms: Sequence[re.Pattern[str]]) -> Folders:
    """The images by their common name parts, by the first form that makes them groups."""
    for form in forms:
        some = [records[i].path.name for i in evenly_spaced(len(records), SAMPLED_NAMES)]
        if 2 * sum(map(bool, map(form.match, some))) <= len(some):
            continue
        groups: Folders = defaultdict(list)
        for record in records:
            if found := form.match(record.path.name):
                groups[found[1]].append(record)
        if _may_be_groups(groups):
            return groups
    return {}


def _levels(records: Records, tree: Tree) -> Iterator[Folders]:
    """The images by folder for each level, from the outermost on, as long as all have a folder."""
    own = {parts: _telling(parts) for parts in {tree.parts(record.path) for record in records}}
    for level in range(min(map(len, own.values()), default=0)):
        folders: Folders = defaultdict(list)
        for record in records:
            folders[own[tree.parts(record.path)][level]].append(record)
        yield folders


def _telling(parts: Sequence[str]) -> list[str]:
    """The names of the folders that distinguish images."""
    return [name for name in parts if name.casefold() not in ANY_KIND and not split_of(name)]


def _may_be_groups(folders: Folders) -> bool:
    images = sum(map(len, folders.values()))
    if len(folders) < 2 or images < MEAN_IMAGES * len(folders):
        return False
    classes = {name for found in folders.values() for name in _classes_of(found)}
    return not classes or 2 * len([*_only_folders(folders)]) <= len(classes)


def _only_folders(folders: Folders) -> Iterator[str]:
    """The folder of each class that is in only one folder."""
    places = defaultdict[str, list[str]](list)
    for folder, found in folders.items():
        for name in _classes_of(found):
            places[name].append(folder)
    yield from (where[0] for where in places.values() if len(where) == 1)


def _classes_of(records: Sequence[ImageRecord]) -> set[str]:
    """The classes of images, or of the objects in them."""
    names = {name for record in records for name in record.labels}
    return names | {one.name for record in records for one in record.instances if not one.crowd}
