"""Build a listing from a reader's draft, by the same steps for every task.

A reader provides a :class:`Draft`, and a function that compares annotations with the pixels.
:func:`build_listing` does the rest, in this order:

1. images get the split of lists such as ``test.txt`` (:mod:`.split_lists`),
2. unused files are noted,
3. images are probed, and left out if they cannot be read or have another size,
4. annotations are compared with the pixels, by the reader's function,
5. images are assigned to splits, with a tenth held out if there are none for validation,
6. enough images must remain to train on, since each earlier step can remove some,
7. classes without training data are dropped.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from anyfolder.errors import InputError

from .division import assign_splits, check_classes, furthest
from .findings import Findings
from .identity import Index
from .image_sizes import read_sizes, with_right_size
from .image_tree import Tree
from .listing import Listing
from .records import ImageRecord, Instance, Parts, Records
from .split_lists import Lists, read_lists
from .unused_files import warn_unused

SHOWN_CLASSES = 5  # names in a message


class Task(NamedTuple):
    """The minimum to train on.

    Attributes:
        unit: the item with a class, in the singular, for messages.
        has: the label that a training image must have, with its article.
        least: the minimum number of classes. 0: there are no classes, as in depth.
        why: the reason for the minimum, which ends the message.
        fixed: whether classes without training data stay, since their numbers are in files.
    """

    unit: str
    has: str
    least: int = 1
    why: str = ''
    fixed: bool = False


BOXES = Task('object', 'a box')
SEGMENTS = Task('segment', 'a segment')
MASKS = Task('class of a mask', 'a labeled pixel', fixed=True)
DEPTH = Task('map', 'a depth map', least=0)
ONE_LABEL = Task('image', 'a class', least=2, why='a classifier needs two or more')
SEVERAL_LABELS = Task('image', 'a class')


@dataclass
class Draft:
    """The labels that a reader found in a folder, before they are compared with the images.

    Attributes:
        task: the minimum that must remain to train on.
        form: the format of the folder in words, as in :class:`~.listing.Listing`.
        tree: its files.
        records: the images, whose size is not known yet. The split is that of a folder or an
            annotation, or None.
        names: the class names in the order of their numbers. Empty: in alphabetical order. A reader
            that only knows them from the pixels sets them in its comparison.
        used: files that were read in addition to images and masks; they are not lists either.
        listed: the images that lists may name. Default: all in the folder.
        lists: the lists, if the reader has already read them.
        headers: above this number of images, only the headers of a sample are read. Default: all.
        group: returns the group of an image of which a tenth is held out. Default: one group.
        hint: the remedy if too little remains, such as a file that could not be read.
    """

    task: Task
    form: str
    tree: Tree
    records: Records
    names: Sequence[str] = ()
    used: Iterable[Path | None] = ()
    listed: Index | None = None
    lists: Lists | None = None
    headers: int | None = None
    group: Callable[[ImageRecord], str] = field(default=lambda record: '')
    hint: str = 'add some'


def build_listing(
    draft: Draft,
    findings: Findings,
    compare: Callable[[Records], Records] = lambda records: records,
) -> Listing:
    """Compare a reader's draft with the images, and assign these to splits.

    Args:
        draft: the labels that the reader found.
        findings: collects repairs, omissions and errors.
        compare: takes the images with their sizes, compares the annotations with the pixels, and
            returns the images that stay. It may change them, and the names of the draft.

    Returns:
        The listing. The reader sets the fields of single tasks (``masks``, ``stuff``,
        ``multi_label``).

    Raises:
        InputError: if there is an error that is not to be left out, if no image can be read, if
            there are no training images, if too few classes remain to train on, or if a class of
            the validation or test split has no training data.
    """
    tree, records, used = draft.tree, draft.records, [*draft.used]
    lists = draft.lists
    if lists is None:
        lists = read_lists(tree, findings, draft.listed, {*used})
    records = apply_lists(records, lists)
    warn_unused(tree, records, [*used, *lists.files], findings)
    records = read_sizes(tree, records, findings, draft.headers)
    records = with_right_size(records, findings)
    objects = sum(len(record.instances) for record in records)
    records = compare(records)
    findings.check(objects)
    if to_train := [record for record in records if record.split in (None, 'train')]:
        _check_remains(draft, to_train, records, findings)
    parts, held_out = assign_splits(records, tree, findings, draft.group)
    _check_remains(draft, parts['train'], records, findings)
    known = check_classes(parts, held_out, findings)
    if held_out:
        _leave_out_unknown(draft.task, parts, known, findings)
    classes = _classes(draft, known, findings)
    return Listing(draft.form, tree.folder, classes, parts, held_out, findings)


def apply_lists(records: Records, lists: Lists) -> Records:
    """Give images the split of a list, or their own if that is further from training.

    If a list names the images of a split, others are not in this split and are left out.
    """
    if not (lists.splits or lists.groups):
        return records
    listed, kept = {*lists.splits.values()}, []
    for record in records:
        if stated := lists.splits.get(record.path):
            record.split = furthest([record.split, stated])
        elif (record.split or 'train') in listed:
            continue
        record.group = record.group or lists.groups.get(record.path, '')
        kept.append(record)
    return kept


def _check_remains(draft: Draft, train: Records, records: Records, findings: Findings) -> None:
    """Raise an ``InputError`` if the training images have too few of the classes."""
    task, learned = draft.task, _classes_of(train)
    if len(learned) >= task.least:
        return
    rows = [f'{what}: {count}' for what, count, _ in findings.rows()]
    if others := sorted(_classes_of(records) - learned):
        rows.append(f'only for validation or test: {", ".join(map(repr, others[:SHOWN_CLASSES]))}')
    reasons = f' ({"; ".join(rows)})' if rows else ''
    folder = repr(str(draft.tree.folder))
    if not learned:
        raise InputError(f'no image of {folder} to train on has {task.has}{reasons}; {draft.hint}.')
    names = ' and '.join(map(repr, sorted(learned)))
    count = 'one class' if len(learned) == 1 else f'{len(learned)} classes'
    raise InputError(
        f'{folder} has {count} to train on, {names}{reasons}, and {task.why}; {draft.hint}.'
    )


def _classes_of(records: Records) -> set[str]:
    """The classes of images, or of the objects in them except crowds."""
    names = {name for record in records for name in record.labels}
    return names | {one.name for record in records for one in record.instances if not one.crowd}


def _leave_out_unknown(task: Task, parts: Parts, known: set[str], findings: Findings) -> None:
    """Leave out held-out labels whose class has no training data."""
    what = f'{task.unit}s left out, since no other has their class'
    leave_out(parts['val'], what, lambda found: found.name not in {*known, ''}, findings)
    unknown = {name for record in parts['val'] for name in record.labels} - known
    what = 'classes with validation data, but no training data'
    findings.warn_all(what, sorted(unknown))


def leave_out(
    records: Records, what: str, leaves: Callable[[Instance], bool], findings: Findings
) -> None:
    """Remove some objects from images, and note each in these words."""
    for record in records:
        findings.warn_all(what, (found.origin for found in record.instances if leaves(found)))
        record.instances = [found for found in record.instances if not leaves(found)]


def _classes(draft: Draft, known: set[str], findings: Findings) -> tuple[str, ...]:
    """The classes in the order of their numbers. Names without training data are noted."""
    names = dict.fromkeys(draft.names or sorted(known))
    if draft.task.fixed:
        return tuple(names)
    what = f'class names left out, since no training {draft.task.unit} has them'
    findings.warn_all(what, (name for name in names if name not in known))
    return tuple(name for name in names if name in known)
