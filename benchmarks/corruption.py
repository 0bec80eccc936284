"""Damage checkpoints in every way: each must be read correctly or rejected in one sentence.

    python benchmarks corruption [--every 1]

A checkpoint folder has each byte changed (one bit of it) and each file cut at every length, gets
files that do not belong there, and is written until a full disk or a kill at every byte. The damage
must be found, no code of a planted pickle may run, and resuming must take the previous checkpoint.
Files of other formats (.pth, .npz, .safetensors) are damaged too, and the results counted in a
table. With every byte it takes two minutes.
"""

import argparse
import builtins
import io
import json
import os
import pickle
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from vit_plugin.engine.checkpoints import safetensors_stream
from vit_plugin.engine.checkpoints.folder import write_folder
from vit_plugin.engine.checkpoints.newest import newest_checkpoint
from vit_plugin.errors import ConfigError
from vit_plugin.weights.for_mmengine import read_complete
from vit_plugin.weights.opening import Checkpoint, open_checkpoint
from vit_plugin.weights.reading.files import read_checkpoint
from vit_plugin.weights.reading.folders import FORMAT, check_complete, manifest_text
from vit_plugin.weights.reading.plain import split_tensors


def write(folder: Path, value: float) -> None:
    """Write a small checkpoint folder ``epoch_N``, which becomes the last one."""
    epoch = int(folder.name.split('_')[1])
    state = dict(
        meta=dict(epoch=epoch, iter=4 * epoch, run={}),
        state_dict=dict(weight=torch.full((3, 2), value), bias=torch.zeros(2)),
    )
    write_folder(folder, *split_tensors(state), None)
    (folder.parent / 'last_checkpoint').write_text(str(folder))


def make(work_dir: Path) -> tuple[Path, Path]:
    """Write two checkpoint folders. Returns their paths, the newest last."""
    for epoch in (1, 2):
        write(work_dir / f'epoch_{epoch}', float(epoch))
    return work_dir / 'epoch_1', work_dir / 'epoch_2'


def rejection(function: Callable[[], Any]) -> str:
    """The message of a rejection, empty if there is none."""
    try:
        function()
    except ConfigError as error:
        return str(error)
    return ''


def expect_rejection(
    work_dir: Path, what: str, damaged: str = 'epoch_2', before: str = 'epoch_1'
) -> None:
    """Assert that one line rejects the damaged checkpoint, and the one before counts as newest.

    ``what`` describes the damage in a failed assertion.
    """
    for read in (check_complete, open_checkpoint):
        said = rejection(lambda read=read: read(work_dir / damaged))
        assert damaged in said, f'{what}: {read.__name__} says {said!r}'
        assert '\n' not in said, f'{what}: {read.__name__} says {said!r}'
    assert newest_checkpoint(work_dir) == str(work_dir / before), what


def change_every_byte(work_dir: Path, every: int) -> int:
    """Change a bit of every N-th byte of all files, one at a time. Returns the number of cases."""
    _, newest = make(work_dir)
    count = 0
    for path in sorted(newest.iterdir()):
        content = path.read_bytes()
        for i in range(0, len(content), every):
            path.write_bytes(content[:i] + bytes([content[i] ^ 1 << i % 8]) + content[i + 1 :])
            expect_rejection(work_dir, f'byte {i} of {path.name} changed')
            count += 1
        path.write_bytes(content)
    assert newest_checkpoint(work_dir) == str(newest)
    return count


def cut_every_file(work_dir: Path, every: int) -> int:
    """Cut each file at every N-th length, and remove it. Returns the number of cuts."""
    _, newest = make(work_dir)
    count = 0
    for path in sorted(newest.iterdir()):
        content = path.read_bytes()
        for length in range(0, len(content), every):
            path.write_bytes(content[:length])
            expect_rejection(work_dir, f'{path.name} cut to {length}')
            count += 1
        path.unlink()
        expect_rejection(work_dir, f'{path.name} missing')
        path.write_bytes(content)
    return count


class Trap:
    """Writes a file when it is unpickled."""

    def __init__(self, canary: Path) -> None:
        self.canary = canary

    def __reduce__(self) -> tuple:
        return Path.touch, (self.canary,)


def plant(work_dir: Path) -> int:
    """Add or replace files by others that do not belong there. Returns the number of cases."""
    _, newest = make(work_dir)
    canary, outside = work_dir / 'canary', work_dir / 'outside'
    trap = pickle.dumps(Trap(canary))
    shutil.copytree(newest, outside)
    shard = newest / 'shard-00001.safetensors'
    content, manifest = shard.read_bytes(), (newest / 'manifest.json').read_text()
    fields = json.loads(manifest)
    fields.pop('sha256')  # manifest_text adds that of its text

    def replace_by_link(path: Path) -> None:
        path.unlink()
        path.symlink_to(outside / path.name)

    damages: dict[str, Callable[[], Any]] = {
        'a pickle as .metadata': lambda: (newest / '.metadata').write_bytes(trap),
        'a pickle as a shard': lambda: (newest / 'shard-00002.safetensors').write_bytes(trap),
        'a pickle as extra.pth': lambda: (newest / 'extra.pth').write_bytes(trap),
        'a pickle in place of the shard': lambda: shard.write_bytes(trap),
        'a pickle in place of the manifest': lambda: (newest / 'manifest.json').write_bytes(trap),
        'another shard': lambda: shutil.copy(shard, newest / 'shard-00002.safetensors'),
        'a folder': lambda: (newest / 'more').mkdir(),
        'a link in place of the shard': lambda: replace_by_link(shard),
        'a link in place of the manifest': lambda: replace_by_link(newest / 'manifest.json'),
        'another version': lambda: (newest / 'manifest.json').write_text(
            manifest_text({**fields, 'version': 2})
        ),
        'another format': lambda: (newest / 'manifest.json').write_text(
            manifest_text({**fields, 'format': 'other'})
        ),
        'a manifest that is a list': lambda: (newest / 'manifest.json').write_text('[]'),
        'a manifest that is deep': lambda: (newest / 'manifest.json').write_text('[' * 100_000),
        'no version': lambda: (newest / 'manifest.json').write_text(json.dumps({'format': FORMAT})),
        "another program's folder": lambda: (
            shutil.rmtree(newest),
            newest.mkdir(),
            (newest / 'mp_rank_00').touch(),
        ),
    }
    for what, damage in damages.items():
        damage()
        expect_rejection(work_dir, what)
        shutil.rmtree(newest)
        shutil.copytree(outside, newest)
        assert shard.read_bytes() == content
        assert newest_checkpoint(work_dir) == str(newest), what
    assert not canary.exists(), 'code ran'
    return len(damages)


class Killed(BaseException):
    """Simulates a kill: no handler of exceptions in the package catches it."""


@contextmanager
def dying_after(size: int, error: BaseException) -> Iterator[None]:
    """Within this context, writing a checkpoint folder fails with an error after ``size`` bytes."""
    remaining = size

    class File:
        def __init__(self, *args: Any) -> None:
            self._file = builtins.open(*args)  # noqa: SIM115

        def write(self, block: Any) -> None:
            nonlocal remaining
            self._file.write(bytes(block)[:remaining])
            remaining -= len(block)
            if remaining < 0:
                self._file.flush()
                raise error

        def __enter__(self) -> 'File':
            return self

        def __exit__(self, *args: Any) -> None:
            self._file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    # A global of the module hides the builtin from it.
    safetensors_stream.open = File
    try:
        yield
    finally:
        del safetensors_stream.open


def end_at_every_byte(work_dir: Path, every: int) -> int:
    """End the writing of a third checkpoint after every N-th byte. Returns the number of cases."""
    _, newest = make(work_dir)
    size = sum(path.stat().st_size for path in newest.iterdir())
    count = 0
    for end in range(0, size, every):
        for error in (OSError(28, 'No space left on device'), Killed()):
            with dying_after(end, error), suppress(Killed):
                said = rejection(lambda: write(work_dir / 'epoch_3', 3.0))
                assert 'No space left on device' in said, f'{end} of {size} bytes: {said!r}'
            assert not (work_dir / 'epoch_3').exists()
            assert newest_checkpoint(work_dir) == str(newest)
            count += 1
    write(work_dir / 'epoch_3', 3.0)
    assert newest_checkpoint(work_dir) == str(work_dir / 'epoch_3')
    assert not (work_dir / '.epoch_3.saving').exists()
    return count


def _zipped(content: bytes, compression: int) -> bytes:
    """The members of an archive, packed again with this compression."""
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(packed, 'w', compression) as new,
    ):
        for name in old.namelist():
            new.writestr(name, old.read(name))
    return packed.getvalue()


STATE = {'weight': torch.arange(64.0).reshape(8, 8), 'bias': torch.ones(8)}
SUFFIXES = {
    '.pth': lambda path: torch.save(STATE, path),
    '.npz': lambda path: np.savez(path, **{name: value.numpy() for name, value in STATE.items()}),
    '.safetensors': lambda path: safetensors.torch.save_file(STATE, path),
}
COMPRESSIONS = {
    zipfile.ZIP_STORED: 'stored',
    zipfile.ZIP_DEFLATED: 'deflated',
    zipfile.ZIP_BZIP2: 'bzip2',
    zipfile.ZIP_LZMA: 'lzma',
}
# Memory-mapped as by infer, read into memory, and as a checkpoint to resume.
READERS: dict[str, Callable[[Path], Any]] = {
    'mapped': lambda path: open_checkpoint(path).weights,
    'read': lambda path: Checkpoint('x.pth', read_checkpoint(path)).weights,
    'whole': lambda path: Checkpoint('x.pth', read_complete(str(path))).weights,
}


# 'lacking' has some of the tensors, all correct. 'else' is a wrong value or another error.
RESULTS = ('right', 'rejected', 'lacking', 'else')


def result(read: Callable[[Path], Any], path: Path) -> str:
    """The result of reading a damaged file of ``STATE``: a column of :data:`RESULTS`.

    Missing tensors are not an error yet: loading them into a model rejects them.
    """
    try:
        tensors = dict(read(path))
        right = tensors.keys() <= STATE.keys() and all(
            torch.equal(tensors[name], STATE[name]) for name in tensors
        )
    except ConfigError as error:
        return 'rejected' if '\n' not in str(error) else 'else'
    except Exception:
        return 'else'
    if not right:
        return 'else'
    return 'right' if len(tensors) == len(STATE) else 'lacking'


def damage_files(work_dir: Path, every: int) -> dict[str, Counter[str]]:
    """Change bytes of files, one at a time, and compress archives.

    Returns the numbers of results, those of all readers together, for each kind of case.
    """
    counts: dict[str, Counter[str]] = {}

    def count(case: str, path: Path, content: bytes) -> None:
        path.write_bytes(content)
        counts.setdefault(case, Counter()).update(result(read, path) for read in READERS.values())

    for suffix, save in SUFFIXES.items():
        path = work_dir / f'x{suffix}'
        save(path)
        content = path.read_bytes()
        for i in range(0, len(content), every):
            count(
                f'{suffix}, a byte changed',
                path,
                content[:i] + bytes([content[i] ^ 1 << i % 8]) + content[i + 1 :],
            )
        for compression in COMPRESSIONS if suffix != '.safetensors' else ():
            packed = _zipped(content, compression)
            name = COMPRESSIONS[compression]
            count(f'{suffix}, packed again ({name})', path, packed)
            for i in range(0, len(packed), every):
                count(
                    f'{suffix}, packed again ({name}), a byte changed',
                    path,
                    packed[:i] + bytes([packed[i] ^ 1 << i % 8]) + packed[i + 1 :],
                )
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description='Damage a checkpoint folder in every way.')
    parser.add_argument(
        '--every', type=int, default=1, help='try every N-th byte; default: %(default)s'
    )
    every = parser.parse_args().every
    counts = []
    for damage in (change_every_byte, cut_every_file, end_at_every_byte):
        with tempfile.TemporaryDirectory() as folder:
            counts.append(damage(Path(folder), every))
    with tempfile.TemporaryDirectory() as folder:
        counts.append(plant(Path(folder)))
    print(
        '{} changed bytes, {} cuts, {} ends while writing, {} planted things: all rejected in a '
        'sentence, the one before taken, no code run'.format(*counts)
    )
    print('|', ' | '.join(('damaged file', 'read', *RESULTS)), '|')
    print('|---|' + '--:|' * (len(RESULTS) + 1))
    with tempfile.TemporaryDirectory() as folder:
        for case, results in damage_files(Path(folder), every).items():
            columns = (results[column] for column in RESULTS)
            cells = map(str, (case, results.total(), *columns))
            print('|', ' | '.join(cells), '|')


if __name__ == '__main__':
    os.environ.setdefault('OMP_NUM_THREADS', '1')
    main()
