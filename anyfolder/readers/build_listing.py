"""Build a listing from a reader's draft, by the same steps for every task.

A reader provides a :class:`Draft`, and a function that compares annotations with the pixels.
:func:`build_listing` does the rest, in this order:

1. images get the split of lists such as ``test.txt`` (:mod:`.split_lists`),
2. unused files are noted,
3. images are probed, and left out if they cannot be read or have another size,
4. annotations are compared with the pixels, by the reader's function,
5. errors that were found are raised, and enough classes must remain to train on,
6. images are assigned to splits, with a tenth held out if there are none for validation,
7. enough classes must still remain, since holding out can take the last image of a class,
8. classes without training data are dropped.
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
    """The minimum that a data set needs so that it can be trained on, for one kind of label.

    Attributes:
        unit: the item with a class, in the singular; empty if no message needs it.
        required_label: the label that a training image must have, with its article; empty if no
            message needs it.
        min_classes: the minimum number of classes. 0: there are no classes, as in depth.
        reason: the reason for the minimum, which ends the message.
        keeps_unused_classes: whether classes without training data stay. The pixels of masks are
            the numbers of classes, which must not change.
    """

    unit: str = ''
    required_label: str = ''
    min_classes: int = 1
    reason: str = ''
    keeps_unused_classes: bool = False


# The tasks of drafts.
BOXES = Task('object', 'a box')
SEGMENTS = Task('segment', 'a segment')
MASKS = Task(required_label='a labeled pixel', keeps_unused_classes=True)
DEPTH = Task(min_classes=0)
ONE_LABEL = Task('image', 'a class', min_classes=2, reason='a classifier needs two or more')
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
        used_files: files that were read in addition to images and masks; they are not lists either.
        listable: the images that lists may name. Default: all in the folder.
        lists: the lists, if the reader has already read them.
        max_headers: above this number of images, only the headers of a sample are read. Default:
            all are read.
        stratum: returns the stratum of an image, such as its class; a tenth of each stratum is held
            out. Default: all images are one stratum.
        hint: the remedy if too little remains, such as a file that could not be read.
    """

    task: Task
    form: str
    tree: Tree
    records: Records
    names: Sequence[str] = ()
    used_files: Iterable[Path | None] = ()
    listable: Index | None = None
    lists: Lists | None = None
    max_headers: int | None = None
    stratum: Callable[[ImageRecord], str] = field(default=lambda record: '')
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
        compare: takes the images, whose sizes are known now, compares the annotations with the
            pixels, and returns the images that stay. It may change them, and the names of the
            draft. It is called exactly once, unless an error is raised before.

    Returns:
        The listing. The reader sets the fields of single tasks (``masks``, ``stuff``,
        ``multi_label``).

    Raises:
        InputError: if there is an error that is not to be left out, if no image can be read, if
            there are no training images, if too few classes remain to train on, or if a class of
            the validation or test split has no training data.
    """
    tree, records, used = draft.tree, draft.records, [*draft.used_files]
    lists = draft.lists
    if lists is None:
        lists = read_lists(tree, findings, draft.listable, {*used})
    records = apply_lists(records, lists)
    warn_unused(tree, records, [*used, *lists.files], findings)
    records = read_sizes(tree, records, findings, draft.max_headers)
    records = with_right_size(records, findings)
    objects = sum(len(record.instances) for record in records)
    records = compare(records)
    findings.check(objects)
    # If too few remain, the message is clearer before the images are divided.
    if to_train := [record for record in records if record.split in (None, 'train')]:
        _check_enough_classes(draft, to_train, records, findings)
    parts, held_out = assign_splits(records, tree, findings, draft.stratum)
    _check_enough_classes(draft, parts['train'], records, findings)
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


def _check_enough_classes(
    draft: Draft, train: Records, records: Records, findings: Findings
) -> None:
    """Raise an ``InputError`` if the training images have too few of the classes."""
    task, trained = draft.task, _classes_of(train)
    if len(trained) >= task.min_classes:
        return
    rows = [f'{what}: {count}' for what, count, _ in findings.rows()]
    if others := sorted(_classes_of(records) - trained):
        rows.append(f'only for validation or test: {", ".join(map(repr, others[:SHOWN_CLASSES]))}')
    reasons = f' ({"; ".join(rows)})' if rows else ''
    folder = repr(str(draft.tree.folder))
    if not trained:
        raise InputError(
            f'no image of {folder} to train on has {task.required_label}{reasons}; {draft.hint}.'
        )
    names = ' and '.join(map(repr, sorted(trained)))
    count = 'one class' if len(trained) == 1 else f'{len(trained)} classes'
    raise InputError(
        f'{folder} has {count} to train on, {names}{reasons}, and {task.reason}; {draft.hint}.'
    )


def _classes_of(records: Records) -> set[str]:
    """The classes of images, or of the objects in them except crowds."""
    names = {name for record in records for name in record.labels}
    return names | {
        instance.name for record in records for instance in record.instances if not instance.crowd
    }


def _leave_out_unknown(task: Task, parts: Parts, known: set[str], findings: Findings) -> None:
    """Leave out held-out objects whose class has no training data, and note such classes of images.

    The labels of these images stay, without a number.
    """
    what = f'{task.unit}s left out, since no training {task.unit} has their class'
    # Regions to be ignored have no name.
    leave_out(parts['val'], what, lambda instance: instance.name not in {*known, ''}, findings)
    unknown = {name for record in parts['val'] for name in record.labels} - known
    what = 'classes with validation data, but no training data'
    findings.warn_all(what, sorted(unknown))


def leave_out(
    records: Records, what: str, is_left_out: Callable[[Instance], bool], findings: Findings
) -> None:
    """Remove the objects for which ``is_left_out`` is true, and note each as ``what``."""
    for record in records:
        findings.warn_all(
            what, (instance.origin for instance in record.instances if is_left_out(instance))
        )
        record.instances = [instance for instance in record.instances if not is_left_out(instance)]


def _classes(draft: Draft, known: set[str], findings: Findings) -> tuple[str, ...]:
    """The classes in the order of their numbers.

    Names without training data are left out and noted, unless the task keeps them.
    """
    names = dict.fromkeys(draft.names or sorted(known))
    if draft.task.keeps_unused_classes:
        return tuple(names)
    what = f'class names left out, since no training {draft.task.unit} has them'
    findings.warn_all(what, (name for name in names if name not in known))
    return tuple(name for name in names if name in known)
