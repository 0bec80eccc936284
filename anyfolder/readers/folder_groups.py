"""Images that belong together, such as the slices of a patient or frames of a video.

If no split is given, images of one such folder must not be in both training and validation: they
look alike, so the validation would be too optimistic. Folders are such groups if

1. they are on one level, and are neither splits nor named for a kind of file (``images``),
2. there are :data:`MIN_GROUPS` or more, with two images each on average,
3. the name of each has a digit: ``patient_007``, ``2011_09_26``, ``clip3``,
4. they are not classes: at least half of the classes are in several of them.

The outermost level of such folders is used. Without one, file names can show groups, as in
``vid01_frame001.png``: those of the first of :data:`NAME_FORMS` that matches most of the names and
gives at least two images per group on average. If there are fewer groups, or other folders, their
images are divided one by one, and a note says so.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from anyfolder.sampling import evenly_spaced

from .addresses import ANY_KIND
from .column_titles import GROUP_WORDS
from .findings import Findings
from .image_tree import Tree
from .records import ImageRecord, Records
from .splits import split_of

MIN_GROUPS = 5  # with fewer, one held-out group would be a large fraction of the images
MIN_MEAN_IMAGES = 2  # images per folder on average; with fewer, many folders have one image
NUMBERED = re.compile(r'(.*\d.*?)[ ._-]+\d+\.\w+$')  # a number after a name with a digit
SAMPLED_NAMES = 200  # names in a sample, most of which must have one form
DIGIT = re.compile(r'\d')
# Groups in file names, each with an example.
NAME_FORMS = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        # The file of a video, as by VoTT and Roboflow: `clip1.mp4` of clip1.mp4#t=12.jpg, and
        # `clip1_mp4` of clip1_mp4-12_jpg.rf.3f2a.jpg.
        r'(.*[^\W_].*?[._](?:mp4|avi|mov))[-_#.]',
        # A video before its frame: `vid01` of vid01_frame001.png.
        r'(.*[^\W_].*?)[ ._-]*(?<![^\W\d_])(?:frames?|frm)[ ._-]*\d',
        # A numbered word: `patient_12` of patient_12_slice3.png.
        rf'((?:.*(?<![^\W\d_]))?(?:{GROUP_WORDS})[ ._-]*\d+)\D',
        # An image that Roboflow augmented: `cat_jpg` of cat_jpg.rf.3f2a.jpg.
        r'(.+)\.rf\.',
    )
)

Folders = dict[str, Records]


def find_groups(records: Records, tree: Tree, findings: Findings) -> set[str]:
    """Set each image's group to its folder, or to the common part of its name, if these are groups.

    If any image has a group already, none is set.

    Args:
        records: the images to divide.
        tree: the files of the folder.
        findings: collects the groups that stay whole, or those that are divided.

    Returns:
        The groups with a class that is in no other group. They must be in training.
    """
    if any(record.group for record in records):
        return set()
    levels = [folders for folders in _levels(records, tree) if _may_be_groups(folders)]
    for folders in levels:
        if len(folders) >= MIN_GROUPS and all(map(DIGIT.search, folders)):
            what = 'folders kept whole in train or val, since each may be of one patient or video'
            return _set_groups(folders, what, findings)
    names = _group_by_names(records, NAME_FORMS)
    if len(names) >= MIN_GROUPS:
        what = (
            'images kept together in train or val, since their names show one video, patient or '
            'augmented image'
        )
        return _set_groups(names, what, findings)
    what = (
        'image names that begin alike, divided between train and val; if they belong to one '
        "patient or video, write {group} for their common part in a layout's images"
    )
    findings.warn_all(what, names or _group_by_names(records, [NUMBERED]))
    if levels:
        what = (
            'folders whose images are divided between train and val; if each has one patient or '
            "video, write {group} for the folder in a layout's images"
        )
        findings.warn_all(what, levels[0])
    return set()


def _set_groups(groups: Folders, what: str, findings: Findings) -> set[str]:
    """Set the group of images, and return the groups with a class that is in no other group."""
    findings.warn_all(what, groups)
    for name, images in groups.items():
        for record in images:
            record.group = name
    return {*_folders_with_unique_class(groups)}


def _group_by_names(records: Records, forms: Sequence[re.Pattern[str]]) -> Folders:
    """The images by a common part of their names: by the first form that makes them groups.

    Empty if no form does.
    """
    sample = [records[i].path.name for i in evenly_spaced(len(records), SAMPLED_NAMES)]
    for form in forms:
        if 2 * sum(form.match(name) is not None for name in sample) <= len(sample):
            continue
        groups: Folders = defaultdict(list)
        for record in records:
            if match := form.match(record.path.name):
                groups[match[1]].append(record)
        if _may_be_groups(groups):
            return groups
    return {}


def _levels(records: Records, tree: Tree) -> Iterator[Folders]:
    """The images by folder for each level, from the outermost on, as long as all have a folder."""
    all_parts = {tree.parts(record.path) for record in records}
    distinctive = {parts: _distinctive_names(parts) for parts in all_parts}
    for level in range(min(map(len, distinctive.values()), default=0)):
        folders: Folders = defaultdict(list)
        for record in records:
            folders[distinctive[tree.parts(record.path)][level]].append(record)
        yield folders


def _distinctive_names(parts: Sequence[str]) -> list[str]:
    """The names of folders that are neither splits nor named for a kind of file."""
    return [name for name in parts if name.casefold() not in ANY_KIND and not split_of(name)]


def _may_be_groups(folders: Folders) -> bool:
    """True if folders have enough images, and at least half of the classes are in several."""
    images = sum(map(len, folders.values()))
    if len(folders) < 2 or images < MIN_MEAN_IMAGES * len(folders):
        return False
    classes = {name for records in folders.values() for name in _classes_of(records)}
    unique_classes = len([*_folders_with_unique_class(folders)])
    return not classes or 2 * unique_classes <= len(classes)


def _folders_with_unique_class(folders: Folders) -> Iterator[str]:
    """The folder of each class that is in only one folder, once for each such class."""
    folders_of_class = defaultdict[str, list[str]](list)
    for folder, records in folders.items():
        for name in _classes_of(records):
            folders_of_class[name].append(folder)
    yield from (names[0] for names in folders_of_class.values() if len(names) == 1)


def _classes_of(records: Sequence[ImageRecord]) -> set[str]:
    """The classes of images, and of the objects in them except crowds."""
    names = {name for record in records for name in record.labels}
    return names | {
        instance.name for record in records for instance in record.instances if not instance.crowd
    }
