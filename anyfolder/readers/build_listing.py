"""From what a reader found in a folder to its listing, by the same steps for every task.

A reader says what it found as a :class:`Draft`, and how its annotations are compared with the
pixels. :func:`build_listing` does the rest, in this order:

1. lists such as ``test.txt`` say the split of images (:mod:`.split_lists`),
2. files that nothing was read from are named,
3. the images are probed, and those that cannot be read or have another size are left out,
4. annotations are compared with the pixels, by the reader's function,
5. images are assigned to splits, a tenth held out where none are to validate,
6. what remains must be enough to train on, since each step before may take images away,
7. classes are those that have something to train on.
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
    """What must be there to train on.

    Attributes:
        unit: what has a class, in the singular, for messages.
        has: what an image to train on must have, with its article.
        least: the number of classes to train on. 0: there are no classes, as in depth.
        why: after the sentence that there are fewer, the reason and the remedy.
        fixed: whether all classes stay, with something to train on or not, since their numbers
            stand in files.
    """

    unit: str
    has: str
    least: int = 1
    why: str = ''
    fixed: bool = False


BOXES = Task('object', 'a box')
SEGMENTS = Task('segment', 'a segment')
MASKS = Task('class of a mask', 'a labeled pixel', fixed=True)
DEPTH = Task('map', 'a map of depth', least=0)
ONE_LABEL = Task('image', 'a class', least=2, why='a classifier needs two or more')
SEVERAL_LABELS = Task('image', 'a class')


@dataclass
class Draft:
    """What a reader found in a folder, before it is compared with the images.

    Attributes:
        task: what must remain to train on.
        form: what the folder is, in words, as in :class:`~.listing.Listing`.
        tree: its files.
        records: the images, whose size is not known yet. A split is that of a folder or of an
            annotation, None where these say none.
        names: of the classes, in the order of their numbers. Nothing: in the order of the alphabet.
            A reader that only knows them from the pixels sets them while it compares.
        used: files that were read besides the images and the masks; they are no lists either.
        listed: the images that lists may name. Default: all of the folder.
        lists: where the reader needed them, the lists that it has read.
        headers: above this number of images, only the headers of a sample are read. Default: all.
        group: what a tenth is held out of, for each image. Default: all.
        hint: the remedy where too little remains, such as a file that could not be read.
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
    """Compare what a reader found with the images, and assign these to splits.

    Args:
        draft: what the reader found.
        findings: gets what is repaired, left out or wrong.
        compare: takes the images with their sizes, compares the annotations with the pixels, and
            gives the images that stay. It may change them, and the names of the draft.

    Returns:
        The listing. Fields of one task (``masks``, ``stuff``, ``multi_label``) are the reader's.

    Raises:
        InputError: if something is wrong and not to be left out, if no image can be read, if there
            is none to train on, if too few classes remain to train on, or if a class of the
            validation or test has nothing to train on.
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
    """Give images the split of a list, or the one furthest from training of that and their own.

    Where a list names the images of a split, others are not of it and are left out.
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
    """Raise a ``InputError`` if the images to train on have too few classes of all images."""
    task, learned = draft.task, _classes_of(train)
    if len(learned) >= task.least:
        return
    rows = [f'{what}: {count}' for what, count, _ in findings.rows()]
    if others := sorted(_classes_of(records) - learned):
        rows.append(f'to validate or test alone: {", ".join(map(repr, others[:SHOWN_CLASSES]))}')
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
    """The classes of images, or of the objects in them that are no crowds."""
    names = {name for record in records for name in record.labels}
    return names | {one.name for record in records for one in record.instances if not one.crowd}


def _leave_out_unknown(task: Task, parts: Parts, known: set[str], findings: Findings) -> None:
    """Leave out what was held out and has a class without anything to train on."""
    what = f'{task.unit}s left out, of a class of which no other is there'
    leave_out(parts['val'], what, lambda found: found.name not in {*known, ''}, findings)
    unknown = {name for record in parts['val'] for name in record.labels} - known
    what = 'classes of which there is nothing to train on, only to validate'
    findings.warn_all(what, sorted(unknown))


def leave_out(
    records: Records, what: str, leaves: Callable[[Instance], bool], findings: Findings
) -> None:
    """Take some objects out of images, and note each in these words."""
    for record in records:
        findings.warn_all(what, (found.origin for found in record.instances if leaves(found)))
        record.instances = [found for found in record.instances if not leaves(found)]


def _classes(draft: Draft, known: set[str], findings: Findings) -> tuple[str, ...]:
    """The classes in the order of their numbers. Names that have nothing to train on are noted."""
    names = dict.fromkeys(draft.names or sorted(known))
    if draft.task.fixed:
        return tuple(names)
    what = f'names of classes left out, which no {draft.task.unit} to train on has'
    findings.warn_all(what, (name for name in names if name not in known))
    return tuple(name for name in names if name in known)
