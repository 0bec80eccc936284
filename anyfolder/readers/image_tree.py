"""Images of a data set: their paths, their sizes as displayed, and their annotations."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from anyfolder.errors import InputError
from anyfolder.limits import check_limit
from anyfolder.pixels.image_files import IMAGE_SUFFIXES, is_image, is_os_metadata, walk_files
from anyfolder.text import GUESSED

from .depth import warn_depth
from .file_contents import FileContents
from .findings import Findings
from .identity import Index, folder_of, parts_below
from .probe import Probe
from .probe_cache import NAME, ProbeCache
from .records import ImageRecord, Records
from .splits import Split, split_in, split_of

# Folders that trainings write, and files that are in them.
RUNS = ('work_dirs', 'runs', 'wandb', 'mlruns', 'lightning_logs', 'tb_logs')
OF_RUNS = {NAME, 'data_report.json', 'last_checkpoint', 'args.yaml', 'opt.yaml', 'hparams.yaml'}
MOST_HEADERS = 100_000  # images whose header is read where nothing but their size is asked


def is_run(folder: Path) -> bool:
    """True for a folder of trainings. One that has images in it may be a class of this name."""
    if not folder.is_dir():
        return False
    names = set(os.listdir(folder))
    images = any(name.lower().endswith(IMAGE_SUFFIXES) for name in names)
    return not OF_RUNS.isdisjoint(names) or (folder.name in RUNS and not images)


def _unwrapped(folder: Path, level: int = 1) -> Path:
    """The folder, or the only one in it, unless that is a split or has no subfolders."""
    check_limit(folder, 'levels of folders', level)
    entries = [entry for entry in folder.iterdir() if not (is_os_metadata(entry) or is_run(entry))]
    inner = entries[0] if len(entries) == 1 and entries[0].is_dir() else None
    if (
        inner is None
        or split_of(inner.name)
        or not any(entry.is_dir() for entry in inner.iterdir())
    ):
        return folder
    return _unwrapped(inner, level + 1)


class Tree:
    """The files of a folder: images, which are found by their names, and others.

    Args:
        folder: the folder of the data. If all of it is one folder, as where an archive was
            unpacked, that is taken.
        looks: what its images are. Default: not known.

    Attributes:
        folder: the folder.
        images, others: paths of the files.
        images_in: those in each folder, by the folders from this one on.
        looks: see above.
        index: says which image a label belongs to.
        runs: folders of trainings, which are not part of the data.
        contents: what is in the files.

    Raises:
        InputError: if there is no such folder, or if folders of two parts are one by a link.
    """

    def __init__(self, folder: str | Path, probes: ProbeCache | None = None) -> None:
        if not Path(folder).is_dir():
            raise InputError(f'there is no folder {str(folder)!r}.')
        self.folder, self.probes = _unwrapped(Path(folder)), probes or ProbeCache()
        self.images: list[Path] = []
        self.others: list[Path] = []
        self.contents = FileContents()
        self.runs: list[Path] = []
        self._parts = parts_below(self.folder)
        self._split: Callable[[str], Split | None] = cache(self._split_of)
        for path in walk_files(self.folder, self._is_run, self._check_link):
            known = str(path).lower().endswith(IMAGE_SUFFIXES)
            (self.images if known or is_image(path) else self.others).append(path)
        # NAME.npy beside NAME.jpg is a cache of its pixels.
        if arrays := {path for path in self.images if str(path).lower().endswith('.npy')}:
            taken = {path.with_suffix('') for path in self.images if path not in arrays}
            caches = {path for path in arrays if path.with_suffix('') in taken}
            self.images = [path for path in self.images if path not in caches]
            self.others = sorted([*self.others, *caches])
        self._find_images()

    def _find_images(self) -> None:
        self.images_in: dict[tuple[str, ...], list[Path]] = defaultdict(list)
        for path in self.images:
            self.images_in[self.parts(path)].append(path)
        self.index = Index(self.folder, self.images)

    def limited_to(self, images: Sequence[Path], others: Sequence[Path]) -> 'Tree':
        """The same folder as if it had only these of its files."""
        tree = copy(self)
        tree.images, tree.others = list(images), list(others)
        tree._find_images()
        return tree

    def _is_run(self, folder: Path) -> bool:
        found = is_run(folder)
        if found:
            self.runs.append(folder)
        return found

    def _check_link(self, link: Path, first: Path) -> None:
        own, other = (
            split_of(place.name) or self.split(place) if self.folder in place.parents else None
            for place in (link, first)
        )
        if own and own != other:
            raise InputError(
                f'{str(link)!r} and {str(first)!r} are one folder by a link, so that no '
                'image is of one part alone; name the images of each part in train.txt and '
                'val.txt, or remove the link.'
            )

    def resolve(
        self, name: str, file: Path, split: Split | None, findings: Findings, lost: str = ''
    ) -> Path | None:
        """The image that a file names. Where several fit, it is rejected.

        Where there is none, that is noted in the words ``lost``, or else rejected.
        """
        found = self.index.match(name, file, split)
        if len(found) == 1:
            return found[0]
        if lost and not found:
            findings.warn(lost, name)
        elif not found:
            findings.reject(
                f'images of {str(file)!r} are not there, or are in another part of the data',
                f'put them into {str(self.folder)!r}',
                repr(name),
            )
        return self.index.only(found, f'{name!r} of {file}', findings)

    def record(
        self, path: Path, said_by: Path, split: Split | None = None, **more: Any
    ) -> ImageRecord:
        """An image, in the part that is given, or in that of its annotation, or of itself."""
        own = split or self.split(said_by) or self.split(path)
        return ImageRecord(path, own, origin=str(said_by), **more)

    def parts(self, path: Path) -> tuple[str, ...]:
        """The folders between the data's and a file."""
        return self._parts(folder_of(path))

    def split(self, path: Path) -> Split | None:
        """The part of the data set that one of its folders stands for."""
        return self._split(folder_of(path))

    def split_said(self, file: Path) -> Split | None:
        """The part of all images that a file lists, by its name or a folder of it."""
        return split_in(file.stem) or self.split(file)

    def _split_of(self, place: str) -> Split | None:
        return next((split for part in self._parts(place) if (split := split_of(part))), None)


def read_sizes(
    tree: Tree, records: Records, findings: Findings, most: int | None = None
) -> Records:
    """The images that can be read, with what is seen of them. The others are noted.

    Args:
        tree: the files of the folder.
        records: the images. Those whose size is known are not looked at again.
        findings: what is noticed.
        most: images of which all headers are read. Of more, some have no size then.
    """
    new = [record for record in records if record.bands is None]
    probes = tree.probes.at([record.path for record in new], most is None or len(new) <= most)
    deep: dict[int, list[tuple[Path, Probe]]] = {}
    unread = set()
    for record, probe in zip(new, probes, strict=True):
        if probe is None:
            continue
        if probe.fault:
            findings.warn(
                'images left out, since they cannot be read', f'{record.path} ({probe.fault})'
            )
        else:
            width, height = probe.size
            record.size, record.bands, record.digest = (width, height), probe.bands, probe.digest
            if probe.bits > 8:
                deep.setdefault(probe.bits, []).append((record.path, probe))
        if probe.fault or probe.bits > 16:
            unread.add(id(record))
    for bits, found in deep.items():
        window = warn_depth(bits, found, findings, len(found) == sum(map(bool, probes)))
        tree.probes.window = window or tree.probes.window
    kept = [record for record in records if id(record) not in unread]
    if unread and not (deep or any(any(record.size) for record in kept)):
        first = next(probe.fault for probe in probes if probe)
        raise InputError(
            f'none of {len(unread)} images can be read, such as {str(records[0].path)!r} '
            f'({first}); look at how they were saved.'
        )
    return kept


def warn_unused(
    tree: Tree, records: Records, used: Iterable[Path | None], findings: Findings
) -> None:
    """Note the files of a folder that were not read, by suffix, and the unused images."""
    of_images = chain.from_iterable((record.path, record.mask) for record in records)
    read = set(map(str, chain(of_images, used)))
    for name in sorted(read & GUESSED.keys()):
        what, line = GUESSED[name]
        findings.warn(what, f'{line!r} in {name}')
    findings.warn_all(
        'folders of trainings left out', (path.relative_to(tree.folder) for path in tree.runs)
    )
    for path in tree.others:
        if str(path) not in read:
            suffix = path.suffix.lower() or 'without a suffix'
            findings.warn(f'files left out, {suffix}', path.relative_to(tree.folder))
    findings.warn_all(
        'images left out, of which nothing is said or which are in no list',
        (path.relative_to(tree.folder) for path in tree.images if str(path) not in read),
    )


def with_right_size(records: Records, findings: Findings) -> Records:
    """The images whose annotated size matches the file or is missing. Others are rejected."""
    kept = []
    for record in records:
        width, height = record.stated
        apart = max(abs(width - record.size[0]), abs(height - record.size[1]))
        if not width or apart <= 1:
            if width and apart:
                findings.warn(
                    'sizes a pixel off in the annotation, taken from the files', record.origin
                )
            kept.append(record)
            continue
        what = 'images have another size than their annotation says'
        remedy = 'make the sizes and boxes those of the files'
        if (height, width) == record.size:
            what = 'images have the sides that their annotation says the other way round'
            remedy = (
                'save the images upright, as `mogrify -auto-orient` does, or turn the annotation'
            )
        findings.reject(
            what,
            remedy,
            f'{record.path} with {record.size[0]} x {record.size[1]} pixels, and '
            f'{width:g} x {height:g} in {record.origin}',
        )
    return kept
