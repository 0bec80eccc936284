"""WebDataset's shards by random access: an index of where each sample is in its tar file.

WebDataset reads shards as streams, which cannot begin at a position. A tar file's members are plain bytes at known
places, so an index makes the shards a data set like any other, with the same samplers and exact resuming, and needs no
library. Shards should be on a file system that seeks, not behind a pipe.
"""

import glob
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vit_plugin.arguments.fields import Typed
from vit_plugin.errors import ConfigError
from vit_plugin.files.complete import replacing
from vit_plugin.registry import DATASETS

from .encoded import EncodedImages

IMAGES = ('jpg', 'jpeg', 'png', 'webp', 'bmp', 'ppm')


@DATASETS.register_module()
class WebShards(EncodedImages):
    """Images with labels in shards of WebDataset: ``000123.jpg`` and ``000123.cls`` side by side in tar files.

    Args:
        shards: a pattern of file names, ``'data/train-*.tar'``, or a list of files.
        image: endings of the images.
        label: the ending of the files with the labels, integers as text; None without labels.
        index: a file that keeps the index of the shards, ``'data/train.npz'``. It is written if it is missing or not of
            these shards. None reads the heads of all members at each start: 20 us for each.
        classes: names of the classes.
        pipeline: transforms, see :class:`~vit_plugin.data.encoded.EncodedImages`.

    Raises:
        ConfigError: if there is no shard, if one cannot be read or is compressed, or if a sample lacks its image or
            label.
    """

    def __init__(self, shards: str | Sequence[str], image: Sequence[str] = IMAGES, label: str | None = 'cls',
                 index: str | None = None, classes: Sequence[str] | None = None,
                 pipeline: Sequence[Typed | Callable] = ()) -> None:
        super().__init__(pipeline, classes)
        self._shards = sorted(glob.glob(shards)) if isinstance(shards, str) else list(shards)
        if not self._shards:
            raise ConfigError(f'shards={shards!r} matches no file in {os.getcwd()}.')
        known = Path(index) if index else None
        facts = [f'{path} {_state(path)}' for path in self._shards] + [f'{list(image)} {label}']
        rows = _read_index(known, facts) if known else None
        if rows is None:
            rows = np.concatenate([_rows_of(number, path, tuple(image), label)
                                   for number, path in enumerate(self._shards)])
            if known:
                with replacing(known) as path:
                    np.savez(path, rows=rows, facts=np.array(facts))
        self._rows = rows
        self._labelled = label is not None
        self._files: dict[tuple[int, int], int] = {}  # descriptors by process and shard

    def __len__(self) -> int:
        return len(self._rows)

    def encoded(self, index: int) -> tuple[bytes, str, int | None]:
        shard, start, size, label_start, label_size = self._rows[index].tolist()
        path = self._shards[shard]
        where = f'{path} from byte {start}'
        label = None
        if self._labelled:
            text = self._bytes(shard, label_start, label_size)
            if not text.strip().isdigit():
                raise ConfigError(f'{path!r} from byte {label_start}: the label {text[:20]!r} is not an integer.')
            label = int(text)
        return self._bytes(shard, start, size), where, label

    def _bytes(self, shard: int, start: int, size: int) -> bytes:
        key = os.getpid(), shard  # a file that is open in two processes is closed by each for itself
        if key not in self._files:
            self._files[key] = os.open(self._shards[shard], os.O_RDONLY)
        return os.pread(self._files[key], size, start)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_files': {}}


def _state(path: str) -> str:
    """What changes with a file's content."""
    try:
        found = os.stat(path)
        return f'{found.st_size} {found.st_mtime_ns}'
    except OSError as error:
        raise ConfigError(f'shards: {path!r} cannot be read ({error.strerror}).') from error


def _read_index(path: Path, facts: list[str]) -> np.ndarray | None:
    """The rows of an index, if it is one of these shards."""
    try:
        with np.load(path, allow_pickle=False) as saved:
            return saved['rows'] if saved['facts'].tolist() == facts else None
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _rows_of(number: int, path: str, images: tuple[str, ...], label: str | None) -> np.ndarray:
    """The rows (samples, 5) of a shard, int64: its number, start and size of the image, start and size of the label."""
    rows = []
    try:
        for key, members in _samples(path):
            image = next((members[ending] for ending in images if ending in members), None)
            if image is None or (label is not None and label not in members):
                lacking = label if image is not None else ' or '.join(images)
                raise ConfigError(f'{path!r}: the sample {key!r} has no {lacking}, but {", ".join(members)}; give '
                                  'image or label as the endings there.')
            rows.append((number, *image, *(members[label] if label is not None else (0, 0))))
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ConfigError(f'{path!r} is not a complete tar file without compression ({error}); unpack it with gunzip, '
                          'or take it out of shards.') from error
    return np.array(rows, np.int64).reshape(-1, 5)


def _samples(path: str) -> Iterator[tuple[str, dict[str, tuple[int, int]]]]:
    """The samples of a shard: a key, and start and size by the ending. Members of a sample follow each other."""
    before = ''
    members: dict[str, tuple[int, int]] = {}
    with tarfile.open(path, 'r:') as archive:
        for member in archive:
            vars(archive)['members'] = []  # it would keep all of them
            if not member.isfile():
                continue
            folder, _, name = member.name.rpartition('/')
            stem, _, ending = name.partition('.')
            key = f'{folder}/{stem}'
            if key != before and members:
                yield before, members
                members = {}
            before, members[ending.lower()] = key, (member.offset_data, member.size)
            if member.offset_data + member.size > os.path.getsize(path):
                raise tarfile.ReadError('unexpected end of data')
    if members:
        yield before, members
